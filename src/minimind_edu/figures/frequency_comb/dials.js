// Below the comb: some of its pairs as dials, the arc of angles that training showed them, and the arc that is new.

import { NARROW, h, svg, fill, setAttributes, textAt, setSize, fmt } from "../../web/kit/kit.js";
import { sector } from "../../web/kit/arcs.js";
import { reachedShares } from "./math.js";

const SIZE = 96; // of a dial with its names
const RADIUS = 27;

/** The pairs that show most: the first, both sides of the edge of training, and some on the way to the last. */
export function shownPairs(kinds) {
  const last = kinds.length - 1;
  const edge = kinds.indexOf(kinds.find((kind) => kind !== "known") ?? kinds.at(-1));
  const way = [1, 2].map((part) => Math.round(edge + ((last - edge) * part) / 3));
  return [...new Set([0, Math.max(0, edge - 1), edge, ...way, last])].sort((a, b) => a - b);
}

/** Dials for the pairs of a state of the comb, each with its angles in degrees. */
export function createDials(words) {
  const root = h("div", { class: "fc-dials", "data-sym": "theta" });

  function draw(s, width) {
    const columns = width < NARROW ? 3 : 6;
    root.style.setProperty("--fc-columns", columns);
    const { trained, reached } = reachedShares(s.dim, s.base, s.context, s.factor, s.scaling);
    fill(
      root,
      shownPairs(s.kinds).map((pair) => dial(words, s.kinds[pair], pair, trained[pair], reached[pair])),
    );
  }
  return { root, draw };
}

function dial(words, kind, pair, trained, reached) {
  const isNew = kind === "new";
  const digits = Math.max(trained, isNew ? reached : 0) < 10 / 360 ? 1 : 0;
  const [before, after] = [trained, reached].map((share) => fmt(360 * share, digits));
  const angles = isNew ? words.angles(before, after) : words.angle(before);
  const root = svg("svg", {
    role: "img",
    class: `fc-dial fc-${kind}`,
    "aria-label": words.dial(pair, before, isNew && after),
  });
  setSize(root, SIZE, SIZE);
  setAttributes(root, { viewBox: `${-SIZE / 2} ${-RADIUS - 4} ${SIZE} ${SIZE}` });
  fill(
    root,
    svg("circle", { class: "mm-soft", r: RADIUS }),
    svg("path", { class: "fc-met", d: sector(RADIUS, 0, trained) }),
    isNew && svg("path", { class: "fc-unmet", d: sector(RADIUS, trained, reached) }),
    textAt(0, RADIUS + 18, words.pairName(pair), { anchor: "middle", cls: "mm-small mm-strong" }),
    textAt(0, RADIUS + 33, angles, { anchor: "middle", cls: "mm-small" }),
  );
  return root;
}
