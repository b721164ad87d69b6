// The rules of a poem, and what a poem keeps of them. No DOM. tests/inside/test_inside_verse_poem.py compares what is
// counted with minimind_edu.trained.verse.exam.
//
// A poem is a list of characters, of which every `width` are a line; an odd line and the even one after it are a
// couplet. Where a character is still to be written, there is null.

export const LINES = [4, 8];
export const WIDTHS = [5, 7];
export const LEVEL = 1;
export const OBLIQUE = -1;
export const EITHER = 0; // the lists have it in groups of both kinds
const OPPOSED = [1, 3, 5]; // places of a line, counted from 0, whose tones the rules oppose within a couplet
const BETWEEN = /[\s,.;:!?、，。；：！？]+/u; // lines; whatever is typed between them, the poem has its own marks
const ENDED = /[^\s]\s*[,.;:!?、，。；：！？]\s*$/u; // the last line, too
const EMPTY = new Set();

/**
 * @typedef {{ tone: number | null, groups: Set<string> }} Sound: its level groups; tone null: it is in no list
 * @typedef {{ lines: number, width: number }} Form
 */

/**
 * How characters sounded. level: [name, characters] of each level group; oblique: the characters of all others.
 * @type {(sounds: { level: [string, string][], oblique: string }) => (character: string) => Sound}
 */
export function soundsOf({ level, oblique }) {
  const [groups, others] = [new Map(), new Set(oblique)];
  for (const [name, members] of level)
    for (const character of members) groups.set(character, new Set([...(groups.get(character) ?? []), name]));
  return (character) => {
    const [isLevel, isOblique] = [groups.has(character), others.has(character)];
    const tone = isLevel && isOblique ? EITHER : isLevel ? LEVEL : isOblique ? OBLIQUE : null;
    return { tone, groups: groups.get(character) ?? EMPTY };
  };
}

/**
 * What is typed, laid out in a form: the characters that are given, and the one that the second line shall end with.
 * The form follows what is typed: a first line of 6 or 7 makes lines of 7, more than four lines an octave. problem: why
 * it cannot be laid out, or null.
 *
 * @type {(typed: { begin: string, rhyme: string, lines: number, width: number }, known: Map<string, number>) =>
 *     Form & { problem: { name: string, [more: string]: any } | null, given: string[], rhyme: string | null }}
 */
export function layOut({ begin, rhyme, lines: wantedLines, width: wantedWidth }, known) {
  const typed = begin
    .split(BETWEEN)
    .filter(Boolean)
    .map((line) => [...line]);
  const [given, end] = [typed.flat(), [...rhyme.split(BETWEEN).join("")]];
  const first = typed[0]?.length ?? 0;
  const whole = typed.length - (ENDED.test(begin) ? 0 : 1); // lines: the last may still go on
  const width = first > 5 ? 7 : first === 5 && whole ? 5 : wantedWidth;
  const lines = typed.length > 4 ? 8 : wantedLines;
  const at = 2 * width - 1; // where the second line ends
  const isTyped = given.length > at;
  const found = (problem) => ({ problem, given, rhyme: isTyped ? null : (end[0] ?? null), lines, width });

  const strange = [...given, ...end].find((character) => !known.has(character));
  if (strange) return found({ name: "strange", character: strange });
  const wrong = typed.find((line, i) => (i < whole ? line.length !== width : line.length > width));
  if (wrong) return found({ name: "length", line: wrong.join(""), count: wrong.length, width });
  if (typed.length > 8) return found({ name: "long", count: typed.length });
  if (end.length > 1) return found({ name: "rhymes", count: end.length });
  if (end.length && isTyped && given[at] !== end[0]) return found({ name: "taken", character: given[at] });
  return found(null);
}

/** Whether two characters rhyme: another character, and a level group that both are in. */
const areRhymes = (a, b, soundOf) => a !== b && [...soundOf(a).groups].some((group) => soundOf(b).groups.has(group));

/**
 * What a poem keeps of the rules, as far as it is written. at, by and above are indices of characters.
 *
 *   rhymes  of each even line from the fourth on { at, by: the end of the even line before, found }: "rhyme", "same"
 *           (the same character once more) or "none"
 *   first   of the second line's end, and of the first line's where that rhymes with it: their indices
 *   tones   at places 2, 4 and 6 of each couplet { at, above, isRight }: whether the tones are opposite
 *   ends    of each line { at, isRight }: level where it is even; oblique where it is odd, from the third on
 *
 * Of what the lists do not know, or know in two ways, nothing is said.
 *
 * @type {(poem: (string | null)[], form: Form, soundOf: (character: string) => Sound) => any}
 */
export function judge(poem, { lines, width }, soundOf) {
  const toneAt = (at) => (poem[at] ? soundOf(poem[at]).tone : null);
  const endOf = (line) => (line + 1) * width - 1;
  const [rhymes, tones, ends, first] = [[], [], [], []];
  for (let line = 0; line < lines; line++) {
    const [at, isEven] = [endOf(line), line % 2 === 1]; // as lines are counted from 1
    if (isEven && line > 1 && poem[at]) {
      const [character, before] = [poem[at], poem[endOf(line - 2)]];
      const found = character === before ? "same" : areRhymes(character, before, soundOf) ? "rhyme" : "none";
      rhymes.push({ at, by: endOf(line - 2), found });
    }
    if (line === 1 && poem[at]) first.push(at, ...(areRhymes(poem[at], poem[endOf(0)], soundOf) ? [endOf(0)] : []));
    if ((isEven || line > 1) && toneAt(at)) ends.push({ at, isRight: toneAt(at) === (isEven ? LEVEL : OBLIQUE) });
    for (const place of isEven ? OPPOSED.filter((index) => index < width - 1) : []) {
      const [below, above] = [line * width + place, (line - 1) * width + place];
      if (toneAt(below) && toneAt(above)) tones.push({ at: below, above, isRight: toneAt(below) !== toneAt(above) });
    }
  }
  return { rhymes, first, tones, ends };
}

/** Numbers to add up over poems: [right, of] of rhymes, of tones, of line ends. */
export function countsOf({ rhymes, tones, ends }) {
  const share = (all, isRight) => [all.filter(isRight).length, all.length];
  const kept = ({ isRight }) => isRight;
  return {
    rhymes: share(rhymes, ({ found }) => found === "rhyme"),
    tones: share(tones, kept),
    ends: share(ends, kept),
  };
}

/** The level groups that the ends of a poem's even lines share most: a list of their names. */
export function groupsOf({ first, rhymes }, poem, soundOf) {
  const counts = new Map();
  for (const at of [first[0], ...rhymes.map((rhyme) => rhyme.at)].filter((place) => place !== undefined))
    for (const name of soundOf(poem[at]).groups) counts.set(name, (counts.get(name) ?? 0) + 1);
  const most = Math.max(0, ...counts.values());
  return [...counts.keys()].filter((name) => counts.get(name) === most);
}

/** A poem as a text. */
export function textOfPoem(poem, width) {
  const lines = Array.from({ length: poem.length / width }, (_, line) => poem.slice(line * width, (line + 1) * width));
  return lines.map((line, number) => line.join("") + (number % 2 ? "。" : "，")).join("");
}
