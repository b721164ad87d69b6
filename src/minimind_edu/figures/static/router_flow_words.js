// What the router flow says.

const idleExperts = ["", ", and one expert gets next to nothing", ", and two experts get next to nothing"];

export const routerFlowWords = {
  en: {
    title: "Left alone, a router picks favorites. The auxiliary loss spreads the load.",
    caption:
      "Each word goes to the experts that the router chooses; the thicker the line, the larger its routing weight. " +
      "Bars: what each expert gets of 40 new stories. The tick is an even load.",
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
    busiest: "busiest expert",
    balance: "N Σ f P (even: 1)",
    loss: "loss, nats per word",
    favorite: (number, load, idle) =>
      `Expert ${number} gets ${load} % of the tokens${idleExperts[idle] ?? ", and the other three get next to nothing"}.`,
    level: (load) => `Everybody has work: the busiest expert gets ${load} %.`,
    picture: (words, loads, step, balanced) =>
      `After ${step} steps ${balanced ? "with" : "without"} the auxiliary loss, ${words} words go to four experts. ` +
      `Loads: ${loads.map((load) => `${load} %`).join(", ")}.`,
    along: "load of the busiest expert, three seeds",
    without: "without the auxiliary loss",
    with: "with it",
    course: (without, balanced) =>
      "Load of the busiest expert after the last step. " +
      `Without the auxiliary loss: ${without.map((load) => `${load} %`).join(", ")}. ` +
      `With it: ${balanced.map((load) => `${load} %`).join(", ")}.`,
  },
};
