// What a reader does with a model on its page: one text, one position, one open part, what is silent. No DOM.
// tests/inside/test_inside_session.py tries it with a runner that answers by itself.

import { createEditing } from "../web/stage/session.js";
import { framedIn, idsOfTyped } from "./field.js";
import { textOf } from "./tokens.js";

export const TEMPERATURE = 0.7; // at first: at 0, models that have learned little go in circles
export const PLAYED = 40; // tokens that are written before somebody is asked
const LONGEST = 12; // tokens of a loop
const TIMES = 3; // that it comes, and one more where it is a single token

/** What the end of a text says over and over: its ids, or null. from: the first position that counts. */
/** @type {(ids: number[], from?: number) => number[] | null} */
export function loopAt(ids, from = 0) {
  for (let length = 1; length <= LONGEST; length++) {
    const start = ids.length - length * (length === 1 ? TIMES + 1 : TIMES);
    if (start < from) return null;
    const isLoop = ids.slice(start + length).every((id, i) => id === ids[start + i]);
    if (isLoop) return ids.slice(-length);
  }
  return null;
}

/** All that can fall silent in a block. @type {(layer: number, heads: number) => string[]} */
export const partsOf = (layer, heads) => [...Array(heads).keys(), "feed"].map((part) => `${layer}.${part}`);

/** What is silent, whole blocks as one: [{ part: "head" | "feed" | "block", layer, head }], from the first block on. */
/** @type {(silenced: Set<string>, config: any) => { part: string, layer: number, head?: number }[]} */
export function silentParts(silenced, { num_hidden_layers: L, num_attention_heads: H }) {
  return Array.from({ length: L }, (_, layer) => {
    const found = partsOf(layer, H).filter((key) => silenced.has(key));
    if (found.length > H) return [{ part: "block", layer }];
    const parts = found.map((key) => key.split(".")[1]);
    return parts.map((part) =>
      part === "feed" ? { part: "feed", layer } : { part: "head", layer, head: Number(part) },
    );
  }).flat();
}

/**
 * data: what page.py wrote; reader: its tokenizer; runner: createRunner's, whose messages come to hear(). It has what
 * createEditing tells, parts "head", "feed" and "block", and
 *
 *   typed                     the text as it is in the field
 *   told                      position -> what worker.js tells of it; those that are still to be read are missing
 *   target, isAgainst         the token after the position that everything explains, and whether against the runner-up
 *   before                    what was told before the first part fell silent, or null
 *   pinned                    null, or { ids, silenced, top }: what came after another text, to compare with
 *   trial                     null, or { at, token, found, isGoing }: what was tried without each head, of found:
 *                             { layer, head, without: ln p of the token }
 *   paused                    null, or why Play has ended by itself: { loop: ids or null, count: written }
 *   isTyping, isBusy          whether a text is typed that will be read, and whether one is read
 *   complaint                 why a text was not read, or null: { name, count }, or an error's message
 */
export function createSession({ data, reader, runner }, changed) {
  const session = { ids: [], selected: 0, written: new Set(), typed: data.text, told: [], target: null };
  Object.assign(session, { isAgainst: false, silenced: new Set(), before: null, pinned: null, zoom: null });
  Object.assign(session, { settings: { temperature: TEMPERATURE, topK: 0, topP: 1 }, complaint: null, isBusy: false });
  Object.assign(session, { isChat: Boolean(data.chat), isTyping: false, isPlaying: false, hasEnded: false });
  Object.assign(session, { trial: null, failure: null, paused: null });
  const looks = new Map(); // what was answered about this text

  /** Another text, or other silent heads: what is told of it comes later. */
  function become(ids, changes = {}) {
    const differs = ids.findIndex((id, at) => id !== session.ids[at]);
    const silenced = changes.silenced ?? session.silenced;
    const isSameModel = `${[...silenced].sort()}` === `${[...session.silenced].sort()}`;
    const isSameText = differs < 0 && ids.length === session.ids.length;
    const { told: positions, target, typed, before } = session;
    const kept = { target, typed, before: silenced.size ? (before ?? positions) : null };
    const follows = isSameText ? kept : { target: null, typed: typedOf(ids), before: null };
    const begun = { selected: ids.length - 1, isBusy: true, trial: null, hasEnded: false, paused: null };
    Object.assign(session, begun, follows, changes, { ids });
    session.told = isSameModel ? session.told.slice(0, differs < 0 ? ids.length : differs) : [];
    looks.clear();
    runner.read(ids, session.silenced, session.told.length);
    changed();
  }

  /** The text of the field. */
  function type(text) {
    stop();
    const { ids, complaint } = idsOfTyped(data, reader, text, session.isChat);
    Object.assign(session, { typed: text, isTyping: false, complaint });
    if (!ids.length || `${ids}` === `${session.ids}`) return changed();
    return change(ids, { written: new Set(), typed: text });
  }

  /** What the field shows of a text that is not typed: in a chat it keeps the question. */
  const typedOf = (ids) => (session.isChat ? session.typed : textOfAll(ids));
  const textOfAll = (ids) => textOf(reader, ids.slice(data.prefix.length));

  let framed = { question: null, length: 0 }; // of a chat: how many tokens its question takes with its frame

  /** What the model answers in a chat, as a text; "" where there is none. */
  function answerNow() {
    if (!session.isChat || !session.ids.length) return "";
    const question = framedIn(data.chat, session.typed);
    if (framed.question !== question) framed = { question, length: reader.encode(question).length };
    return textOf(reader, session.ids.slice(framed.length));
  }

  /** The model's own next token, at the end. */
  async function next() {
    const at = session.ids.length - 1;
    if (session.isBusy || !session.told[at]) return;
    const { settings, ids } = session;
    const id = settings.temperature ? await runner.look("draw", { at, settings }) : session.told[at].top[0][0];
    if (session.ids !== ids || id === null) return; // somebody has written meanwhile
    if (data.ends.includes(id)) {
      session.isPlaying = false;
      session.hasEnded = true;
      return void changed();
    }
    session.append(id, true);
    if (session.isPlaying) pause();
  }

  let begin = 0; // where Play began to write
  function play() {
    Object.assign(session, { isPlaying: true, paused: null });
    begin = session.ids.length;
    next();
    changed();
  }

  /** Play ends by itself: after so many tokens, and where they come again and again. */
  function pause() {
    const loop = loopAt(session.ids, begin);
    const count = session.ids.length - begin;
    if (!loop && count < PLAYED) return;
    Object.assign(session, { isPlaying: false, paused: { loop, count } });
    changed();
  }

  function stop() {
    if (!session.isPlaying) return;
    session.isPlaying = false;
    changed();
  }

  const kept = ["before", "typed"];
  const change = createEditing(session, { become, stop, most: data.most, kept }, changed);
  const { undo: takeBack, select: go } = session;
  const undo = () => ((session.complaint = null), takeBack());
  const select = (at) => ((session.target = null), go(at));

  /** Keep what comes after the text up to the selected token, to compare with. */
  function pin() {
    const { ids, selected, silenced, now } = session;
    if (now) session.pinned = { ids: ids.slice(0, selected + 1), silenced, top: now.top };
    changed();
  }

  /** What the next tokens are compared with: { top }, or null. */
  const referenceNow = () => session.pinned ?? session.before?.[session.selected] ?? null;

  /** What address.js read: another text with all that was chosen; what it is compared with is read beside it. */
  async function restore({ ids, selected, silenced, target, pin: pinned, ...others }) {
    stop();
    Object.assign(session, { pinned: null, complaint: null });
    change(ids, { ...others, typed: others.typed ?? textOfAll(ids), selected, silenced, target, before: null });
    const compared = pinned ?? (silenced.size ? { ids: ids.slice(0, selected + 1), silenced: new Set() } : null);
    if (!compared) return;
    const top = await runner.look("beside", { ids: compared.ids, silenced: [...compared.silenced] });
    if (session.ids !== ids || session.silenced !== silenced) return; // somebody has gone on
    if (pinned) session.pinned = { ...pinned, top };
    else session.before = Object.assign([], { [selected]: { top } });
    changed();
  }

  /** The token that everything explains: the chosen one, or the likeliest. */
  function targetNow() {
    const top = session.told[session.selected]?.top ?? [];
    return top.some(([id]) => id === session.target) ? session.target : (top[0]?.[0] ?? null);
  }

  /** The likeliest other token, if the target is compared with it. */
  function againstNow() {
    const other = session.told[session.selected]?.top.find(([id]) => id !== targetNow());
    return session.isAgainst && other ? other[0] : null;
  }

  /** All heads that are heard, from the last block to the first. */
  function* headsHeard() {
    for (let layer = data.config.num_hidden_layers - 1; layer >= 0; layer--) {
      for (let head = 0; head < data.config.num_attention_heads; head++)
        if (!session.silenced.has(`${layer}.${head}`)) yield { layer, head };
    }
  }

  /** Try without each head, one after the other, until something else is looked at. What was found of a text stays. */
  async function tryAll() {
    const [at, token] = [session.selected, targetNow()];
    const trial = { at, token, found: [], isGoing: true };
    session.set({ trial });
    for (const place of headsHeard()) {
      const without = await runner.look("without", { at, token, ...place });
      if (session.trial !== trial || !trial.isGoing) return;
      if (at !== session.selected || token !== targetNow()) return stopTrying();
      trial.found.push({ ...place, without });
      changed();
    }
    stopTrying();
  }

  function stopTrying() {
    session.trial.isGoing = false;
    changed();
  }

  /** Ask the worker about the text of now; use(answer) is called at once if it is known, and never for another text. */
  function look(what, place, use) {
    const key = `${what} ${Object.values(place)}`;
    const { told: positions, ids } = session;
    if (looks.has(key)) {
      if (looks.get(key) !== undefined) use(looks.get(key));
      return;
    }
    looks.set(key, undefined); // on its way
    runner.look(what, place).then((answer) => {
      if (session.told !== positions || session.ids !== ids) return;
      if (answer === null) looks.delete(key);
      else looks.set(key, answer);
      changed();
    });
  }

  /** Whether what a block's heads read is here, at all positions that were told; a kernel sends it when asked. */
  function sees(layer) {
    const from = session.told.findIndex(({ weights }) => !weights[layer]);
    if (from < 0) return true;
    const keep = (rows) => rows.forEach((bytes, i) => (session.told[from + i].weights[layer] = bytes));
    if (!session.isBusy) look("maps", { layer, from }, keep);
    return !session.told.some(({ weights }) => !weights[layer]);
  }

  /** What the worker tells by itself. */
  function hear(message) {
    if (message.did === "read")
      for (const position of message.told) session.told[position.at] = { ...session.told[position.at], ...position };
    if (message.did === "fail") session.failure = message.message;
    if (message.did === "ready") session.isBusy = false;
    changed();
    if (message.did === "ready" && session.isPlaying) setTimeout(() => session.isPlaying && next());
  }

  const methods = { type, next, play, undo, select, tryAll, stopTrying, pin, restore, look, sees, hear };
  const views = {
    referenceNow: { get: referenceNow },
    now: { get: () => session.told[session.selected] ?? null },
    isUnsettled: { get: () => session.isTyping || session.isBusy || [...looks.values()].includes(undefined) },
    answerNow: { get: answerNow },
    targetNow: { get: targetNow },
    againstNow: { get: againstNow },
  };
  return Object.defineProperties(Object.assign(session, methods, { stop: () => (stop(), changed()) }), views);
}
