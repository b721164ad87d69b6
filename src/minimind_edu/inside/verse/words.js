// The words of the page that writes verse, by language.

import { grouped } from "../../web/kit/kit.js";
import { percent } from "../numbers.js";

const percentOf = (part) => percent(part, "\u00a0%");
const shareOf = ([right, all]) => `${right} of ${all}`;
// how the characters are read today by which the level groups are named, in their order
const READINGS =
  "东dōng 冬dōng 江jiāng 支zhī 微wēi 鱼yú 虞yú 齐qí 佳jiā 灰huī 真zhēn 文wén 元yuán 寒hán 删shān " +
  "先xiān 萧xiāo 肴yáo 豪háo 歌gē 麻má 阳yáng 庚gēng 青qīng 蒸zhēng 尤yóu 侵qīn 覃tán 盐yán 咸xián";
const readingOf = new Map(READINGS.split(" ").map((entry) => [entry[0], entry.slice(1)]));

/** A level group, such as 十一尤, for those who read no Chinese: 尤, yóu. */
function groupInEnglish(name) {
  const head = name.at(-1);
  return `${head}, ${readingOf.get(head)}`;
}

const headOf = (key) => {
  const [layer, head] = key.split(".").map(Number);
  return `head ${head + 1} of block ${layer + 1}`;
};

export const verseWords = {
  en: {
    title: "A page that writes verse",
    book: "MiniMind from the inside",
    theme: { light: "Color mode: light", dark: "Color mode: dark" },
    explains: {
      verse: "What this is, and what it cannot",
      rhyme: "How it learned to rhyme",
      heads: "What a head is",
      drawing: "What temperature does",
    },
    inChapter: (says, chapter) => `${says}: chapter ${chapter}`,
    lead: (weights) =>
      `Begin a poem, or give its rhyme: a model of ${grouped(weights)} weights goes on, as poets of Tang and Song ` +
      "did.",
    private: "The model runs in this page. Nothing that you write leaves it.",
    opening: (part) => `Opening the model… ${percentOf(part)}`,
    failed: (message) => `The model could not go on: ${message}`,
    begin: "It begins",
    beginHint: "a character, a line, or nothing",
    rhyme: "Line 2 ends with",
    lines: "Lines",
    linesOf: { 4: "4", 8: "8" },
    width: "Characters a line",
    widthOf: { 5: "5", 7: "7" },
    write: "Write",
    again: "Again",
    copy: "Copy the link",
    copied: "Copied: whoever opens it sees this poem.",
    toCopy: "The link to this poem:",
    drawing: (temperature) =>
      `How a character is drawn: ${temperature ? `at temperature ${temperature}` : "always the likeliest"}`,
    temperature: "temperature",
    greedy: "0, the likeliest",
    /** Why what is typed is not written on: one sentence. */
    problems: {
      strange: ({ character }, count) =>
        `“${character}” is none of the ${grouped(count)} characters that this model knows (in simplified writing): ` +
        "put another in its place.",
      length: ({ line, count, width }) =>
        `Lines have ${width} characters here, and “${line}” has ${count}: put a comma between lines.`,
      long: ({ count }) => `A poem has at most 8 lines, and ${count} are typed.`,
      rhymes: ({ count }) => `Line 2 ends with one character, and ${count} are typed.`,
      taken: ({ character }) => `Line 2 ends with “${character}” as it is typed: leave the other field empty.`,
    },
    poem: "The poem: press a character to see what else the model expected there",
    character: (character, tone, rhyme) => [`“${character}”`, tone, rhyme].filter(Boolean).join(", "),
    tones: { 1: "level", "-1": "oblique", 0: "level or oblique", null: "in no list" },
    rhymed: { first: "the rhyme", rhyme: "rhymes", same: "the same character once more", none: "does not rhyme" },
    legend: [
      "○ level, ● oblique, ◐ either, · in no list.",
      "Green: rhymes with the even line before, in the lists of the time. Red: a rule that is not kept. " +
        "Marked is what these lists say, and nothing about the poem's worth.",
    ],
    kept: "What it keeps",
    rhymes: (groups) => {
      const named = groups.map(groupInEnglish).join(" or ");
      return `Rhymes${named ? ` (group of ${named})` : ""}`;
    },
    opposed: "Opposite tones in couplets",
    ends: "Tones of line ends",
    marks: "Commas and stops where the model itself would have them",
    share: shareOf,
    nothing: "none to judge",
    expected: (character) => `Where “${character}” stands, the model expected:`,
    signs: { "</s>": "the end", "<s>": "the beginning" },
    put: (character, p) => `“${character}”, ${percentOf(p)}: write it here, and go on from it`,
    percent: percentOf,
    heads: "Silence a head",
    headsHint: "Press a head: it adds nothing more, and the same draws make another poem.",
    headName: headOf,
    block: (layer) => `block ${layer + 1}`,
    whole: "no head is silenced",
    without: (silenced) => `without ${silenced.map(headOf).join(", ")}`,
    count: (more) => `Count over ${more} more poems`,
    counting: (done, all) => `Counting: ${done} of ${all}`,
    tally: ["poems", "rhymes", "tones", "marks"],
    tallied: (part) => (Number.isNaN(part) ? "–" : `${Math.round(100 * part)}\u00a0%`),
    bringBack: "Bring all back",
    checking: "Comparing the page with PyTorch…",
    checked: ({ far, isSame, why }) =>
      (isSame
        ? `Checked: the same logits as PyTorch${far < 1e-3 ? "" : ` to within ${far.toPrecision(1)}`}.`
        : `This page differs from PyTorch: by ${far.toPrecision(2)} in a logit. Trust PyTorch.`) +
      (why ? ` It runs in plain JavaScript, which is slow: WebAssembly is not to be had here (${why}).` : ""),
    how:
      "The model chooses each character that you do not give, among the likeliest that share 90 %; the page sets " +
      "commas and stops. A given rhyme: of 24 drafts of the first couplet one is drawn, the likelier the more it " +
      "expects that character.",
  },
};
