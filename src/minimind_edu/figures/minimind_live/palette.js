// The words of the world, in groups and in either language: those that may come next are lit and can be pressed.

import { h, toggle, choice } from "../../web/kit/kit.js";
import { wordWithGloss } from "./marks.js";

const WORD_GROUPS = ["people", "objects", "places", "verbs", "questions", "marks"];

/** The words [language] -> group -> words, all but `<s>`, each in one place. */
export function groupsOf(tables) {
  const sayings = (kinds, language) => kinds.flatMap((kind) => tables.sentences[kind][language].split("|"));
  return tables.languages.map((_, language) => {
    const marks = [...tables.marks[language], ...(language ? [] : [tables.translate])];
    const isPhrase = (word) => !(word in tables.slots) && !marks.includes(word);
    const verbs = new Set(sayings(tables.told, language).filter(isPhrase));
    const asked = Object.keys(tables.sentences).filter((kind) => !tables.told.includes(kind));
    const questions = new Set(sayings(asked, language).filter((word) => isPhrase(word) && !verbs.has(word)));
    const people = [...tables.people[language], ...tables.pronouns[language]];
    const { [language]: objects } = tables.objects;
    const { [language]: places } = tables.places;
    return { people, objects, places, verbs: [...verbs], questions: [...questions], marks };
  });
}

export function createPalette(words, session, tables, glossOf) {
  let [language, isFree] = [0, false];
  const buttons = new Map(); // id -> button
  const groups = groupsOf(tables);

  function createWord(word) {
    const id = tables.words.indexOf(word);
    const attrs = { type: "button", class: "ml-chip", onClick: () => session.append(id) };
    const button = h("button", attrs, wordWithGloss(word, glossOf(id)));
    buttons.set(id, button);
    return button;
  }

  const sheets = groups.map((sheet) => {
    const rows = WORD_GROUPS.map((name) => {
      const label = h("span", { class: "ml-label" }, words.groups[name]);
      return h(
        "div",
        { class: "ml-group", role: "group", "aria-label": words.groups[name] },
        label,
        h("div", { class: "ml-choices" }, sheet[name].map(createWord)),
      );
    });
    return h("div", { class: "ml-sheet" }, rows);
  });
  const tongue = choice({
    label: words.language,
    options: words.languages.map((label, value) => ({ label, value })),
    value: language,
    onChange: (value) => {
      language = value;
      draw();
    },
  });
  tongue.root.querySelector("legend").classList.add("mm-hidden");
  const free = toggle({
    label: words.anything,
    onChange: (value) => {
      isFree = value;
      draw();
    },
  });
  const root = h(
    "details",
    { class: "mm-more ml-palette scripted" },
    h("summary", {}, words.palette),
    h("div", { class: "ml-bar-head" }, tongue, free),
    sheets,
  );

  function draw() {
    const row = session.after(session.ids.length - 1).exact;
    for (const [id, button] of buttons) button.disabled = !(isFree || !row || row[id] > 0);
    sheets.forEach((sheet, at) => (sheet.hidden = at !== language));
  }
  return { root, draw };
}
