// What is typed into the page of a model, or of two: the field, when its text counts, and the tokens of it.

import { h } from "../web/kit/kit.js";

const MOST_TYPED = 4000; // characters: more tokens than a page reads, and few enough to cut at every key
const PAUSE = 300; // milliseconds after a key

/** The field: a pause, or the end of a composition, tells the session what is typed. hasText: or else ids. */
export function createField(words, session, hasText) {
  const root = h("textarea", {
    class: "in-field",
    rows: 2,
    maxlength: MOST_TYPED,
    spellcheck: "false",
    "aria-label": words.field,
    placeholder: hasText ? words.fieldHint : words.fieldIds,
  });
  let [timer, isComposing] = [null, false];
  const typed = () => {
    clearTimeout(timer);
    timer = setTimeout(() => isComposing || session.type(root.value), PAUSE);
    session.set({ isTyping: true });
  };
  root.addEventListener("compositionstart", () => (isComposing = true));
  root.addEventListener("compositionend", () => ((isComposing = false), typed()));
  root.addEventListener("input", () => isComposing || typed());
  function draw() {
    const isWritten = root === document.activeElement || session.isTyping;
    if (!isWritten && root.value !== session.typed) root.value = session.typed;
  }
  return { root, draw, text: () => root.value };
}

/** The tokens of a text, with those that the tokenizer puts around every one. */
export const idsOf = ({ prefix, suffix = [] }, reader, text) => [...prefix, ...reader.encode(text), ...suffix];

/** A question with what the template of a chat puts around it. */
export const framedIn = ({ before, after }, text) => before + text.slice(0, MOST_TYPED) + after;

/**
 * What is typed as a page reads it: { ids, complaint }. complaint: why it reads nothing, or not all: { name, count },
 * or an error's message; or null.
 */
export function idsOfTyped(data, reader, text, isChat) {
  let ids;
  try {
    ids = isChat ? reader.encode(framedIn(data.chat, text)) : idsOf(data, reader, text.slice(0, MOST_TYPED));
  } catch (error) {
    return { ids: [], complaint: error.message };
  }
  if (!ids.length) return { ids, complaint: { name: "empty" } };
  if (ids.length < data.most) return { ids, complaint: null };
  return { ids: ids.slice(0, data.most - 1), complaint: { name: "long", count: ids.length } };
}
