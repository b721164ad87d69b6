// The shell of a figure: its words, its controls, what it says, its frame and its place on the page. What is left to
// the figure is data and a drawing.

import { h, announcement, readout, controlsOf, wordsOf, frame, mount } from "./kit.js";

/**
 * @typedef {import("./kit.js").Model} Model
 * @typedef {{ model: any, words: any, isCompact: boolean, bound: (create: any, trait: string, options: any) => any,
 *   verdict: any, numbers: any, redraw: () => void }} Shell
 * @typedef {{ verdict?: string, tone?: string | null, numbers?: any[][], title?: string, isStory?: boolean }} Says
 * @typedef {{ stage: any, control?: any, numbers?: any, more?: any[], title?: string, caption?: string,
 *   boxes?: Element[], parts?: ({ release?: () => void } | null)[], draw: (...widths: number[]) => Says }} Content
 */

/**
 * What the module of a figure exports.
 *
 *   words     the table of its words, by language
 *   traits    whose changes it draws
 *   verdict   a class of its own for the sentence that it says
 *   modelOf   makes of the model the one that its controls read and write, as coverable does
 *   create    makes one figure on a page of { model, words, isCompact, bound, verdict, numbers, redraw }
 *
 * bound makes a control as controlsOf does, and each follows its trait after every drawing. redraw draws again what no
 * trait tells of. create returns
 *
 *   stage, control, more   as for frame
 *   numbers                what stands below the control instead of the verdict and the key numbers
 *   title, caption         instead of those of the words; a compact figure has words.titleCompact, if there is one
 *   boxes, parts           as for mount; without boxes the stage is the one whose width is drawn
 *   draw(...widths)        draws, and returns what the figure says now: { verdict, tone, numbers, title, isStory }
 */
/**
 * @type {(definition: { words: Record<string, any>, traits: string[], verdict?: string,
 *   modelOf?: (model: Model) => any, create: (shell: Shell) => Content }) =>
 *   { render: (place: { model: Model, el: Element }) => () => void }}
 */
export function figure({ words: table, traits, verdict: cls = "", modelOf = (model) => model, create }) {
  function render({ model: given, el }) {
    const [model, words, isCompact] = [modelOf(given), wordsOf(table), Boolean(given.get("compact"))];
    const { bound, follow } = controlsOf(model);
    const [verdict, numbers] = [announcement(`mm-verdict ${cls}`.trim()), readout([])];
    let drawn = null; // the widths of the last drawing
    const redraw = () => drawn && draw(...drawn);

    const shell = { model, words, isCompact, bound, verdict, numbers, redraw };
    const { stage, control, more, boxes = [stage], parts, ...content } = create(shell);
    const { numbers: below = h("div", {}, verdict, numbers), caption = words.caption } = content;
    const { title = (isCompact && words.titleCompact) || words.title } = content;
    const root = frame({ ...words, title, caption }, { stage, control, numbers: below, more }, isCompact);

    function draw(...widths) {
      drawn = widths;
      const says = content.draw(...widths) ?? {};
      follow();
      if ("verdict" in says) verdict.set(says.verdict, says.tone);
      if ("numbers" in says) numbers.set(says.numbers);
      if ("title" in says) root.firstChild.textContent = says.title;
      if ("isStory" in says) root.dataset.story = says.isStory;
    }
    return mount(el, root, { model, traits, boxes, draw, parts });
  }
  return { render };
}
