// What RouterFlow draws, from the stored runs.

const IDLE = 5; // percent of the choices, below which an expert counts as idle

// The stored run of one variant and seed.
export function runOf(results, topK, balanced, seed) {
  return results.runs.find((run) => run.top_k === topK && run.balanced === balanced && run.seed === seed);
}

// Where each word goes, [word, expert, weight in percent], k for each word; block: from 0.
export function waysOf(results, run, stop, block) {
  const { experts, weights } = run.looks[stop].blocks[block];
  return weights.map((weight, i) => [Math.floor(i / run.top_k), Number(experts[i]), weight]);
}

// The busiest expert of some loads, from 0, and how many are idle.
export function extremesOf(loads) {
  return { busiest: loads.indexOf(Math.max(...loads)), idle: loads.filter((load) => load < IDLE).length };
}

// The load of the busiest expert at every stop, for each seed.
export function busiestAlong(results, topK, balanced, block) {
  const runs = results.runs.filter((run) => run.top_k === topK && run.balanced === balanced);
  return runs.map((run) => run.looks.map((look) => Math.max(...look.blocks[block].loads)));
}
