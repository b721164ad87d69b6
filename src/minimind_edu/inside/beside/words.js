// The words of the page of two models, by language; what it shows as the page of one does is in ../words.js.

import { grouped } from "../../web/kit/kit.js";
import { percentOf } from "../words.js";

const tokensIn = (count) => `${grouped(count)} ${count === 1 ? "token" : "tokens"}`;
/** Two that are the same differ by nothing at all. */
const farOf = (moved) => (moved === 0 ? "0\u00a0%" : percentOf(moved));

export const besideWords = {
  en: {
    title: "Two models, one text",
    privateBoth: "Both models run in this page. Nothing that you write leaves it.",
    /** Of what two models do not share: who takes it, who gives it. */
    notes: {
      tokenizer: (taker, giver) => `${taker} came without a tokenizer: it reads by that of ${giver}.`,
      chat: (taker, giver) => `Their chat templates differ: ${taker} reads a chat as ${giver} does.`,
    },
    write: "Let both answer",
    seed: "seed",
    sameDraws: "Both draw with the same random numbers, so that the same chances give the same token.",

    prompt: "The text that both read: arrow keys move along it",
    bothRead: "Both read",
    answerOf: (side) => `The answer of ${side}: arrow keys move along it`,
    shade: "the stronger its color, the more of what comes after a token differs; press one to see how",
    movedAfter: (text, moved) => `after “${text}” the two differ by ${farOf(moved)}`,
    sameSoFar: "The same so far.",
    sameAnswer: (count) => `Both write the same ${tokensIn(count)}.`,
    /** a, b: what each writes there, or null where it has ended. */
    parting: (count, a, b) =>
      `They part at token ${count}: A ${a === null ? "has ended" : `writes “${a}”`}, ` +
      `B ${b === null ? "has ended" : `writes “${b}”`}.`,
    ended: {
      end: (count) => `It ends after ${tokensIn(count)}.`,
      loop: () => "It says the same over and over, so it was stopped.",
      full: () => "The page reads no more than this.",
      written: (count) => `${tokensIn(count)}; here it was stopped.`,
    },

    movedNext: (moved) => `${farOf(moved)} of the probability lies elsewhere in B.`,
    bothExpect: (text, a, b) => `“${text}”: A ${a}, B ${b}`,

    far: farOf,
    embeddingName: "embedding",
    beyond: "parted from",
    apartNote:
      "A bar: the difference of the two streams at this token, as a part of A’s. The line: where they count as parted.",
    parted: (block, far, bound) =>
      `They part ${block ? `in block ${block}` : "in the embedding"}, by ${far}: ` +
      `there the difference is first above ${bound}.`,
    together: (bound, most) => `They nowhere part by more than ${bound}; the largest difference is ${most}.`,
    unrelated:
      "Streams that have nothing to do with each other differ by 141 %, the root of 2. " +
      "These two are written in other directions from the first token on, as after another beginning of the " +
      "training: then a head of A need not do what the head of B in its place does.",
    otherWidths: (a, b) =>
      `A’s stream has ${grouped(a)} channels and B’s ${grouped(b)}, so nothing says where they part; ` +
      "their answers and what they expect next can be compared.",
    otherDepths: (a, b) => `A has ${a} blocks and B ${b}: compared are those that both have.`,
    otherHeads: (a, b) => `A has ${a} heads in a block and B ${b}: no head of the one stands for one of the other.`,
    headsNote:
      "A number in a square: how many percent of a head’s attention go to other tokens in B, the mean up to this " +
      "token. Press one.",
    headMoved: (layer, head, moved) => `block ${layer}, head ${head}: ${farOf(moved)} of its attention goes elsewhere`,
    movedHead: (moved) =>
      `${farOf(moved)} of its attention goes to other tokens in B, the mean up to the chosen token.`,
    most: "These heads differ most: ",
    inBrackets: (moved) => ` (${farOf(moved)})`,
    between: ", ",
    mostEnd: ".",
    noneMoved: "All heads read the same up to this token.",
  },
};
