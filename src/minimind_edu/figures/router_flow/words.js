// What the router flow says.

// How many experts of four get next to nothing.
const idleExperts = [
  "",
  "; another gets next to nothing",
  "; two others get next to nothing",
  "; the others get next to nothing",
];

export const routerFlowWords = {
  en: {
    title: "Left alone, a router picks favorites. The auxiliary loss spreads the load.",
    caption:
      "Lines: the router's choices, thicker for a larger weight. Bars: loads in 40 new stories; the tick is even.",
    more: "More: top 2, the other block, other seeds",
    steps: "training steps",
    balanced: "auxiliary loss",
    topK: "experts per token",
    block: "block",
    seed: "seed",
    tokens: "words",
    loads: "load in new stories",
    expert: (number) => `expert ${number}`,
    even: "even",
    percent: (number) => `${number} %`,
    balance: "N Σ f P (even:\u00a01)",
    loss: "loss, nats per word",
    favorite: (number, load, idle, topK) =>
      `Expert ${number} gets ${load} % of the ${topK === 1 ? "tokens" : "choices"}${idleExperts[idle]}.`,
    level: (load) => `Everybody has work: the busiest expert gets ${load} %.`,
    picture: (words, loads, step, balanced) =>
      `After ${step} steps ${balanced ? "with" : "without"} the auxiliary loss, ${words} words go to four experts. ` +
      `Loads: ${loads.map((load) => `${load} %`).join(", ")}.`,
    along: "load of the busiest expert so far, three seeds",
    without: "without the auxiliary loss",
    with: "with it",
    course: (step, without, balanced) =>
      `Load of the busiest expert up to step ${step}. ` +
      `At this step without the auxiliary loss: ${without.map((load) => `${load} %`).join(", ")}. ` +
      `With it: ${balanced.map((load) => `${load} %`).join(", ")}.`,
  },
};
