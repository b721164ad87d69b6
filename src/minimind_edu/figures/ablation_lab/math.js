// What AblationLab draws, from the stored runs.

export const TASK_COUNT = 3;

// The least and the most of some numbers, [low, high].
function spanOf(values) {
  return [Math.min(...values), Math.max(...values)];
}

// How far the loss of each seed ends above the entropy, [low, high] in nats a word.
export function excessOf(results, variant) {
  return spanOf(results.variants[variant].seeds.map((seed) => seed.loss.at(-1) - results.entropy));
}

// Rows of accuracies, one for each task: the fractions of each seed, and the mean of the whole model.
// key: "accuracy" for lists as in training, "longer" for longer ones.
export function accuracyRows(results, variant, key) {
  const { seeds } = results.variants[variant];
  const whole = results.variants.whole.seeds;
  return Array.from({ length: TASK_COUNT }, (_, task) => ({
    seeds: seeds.map((seed) => seed[key][task]),
    whole: whole.reduce((sum, seed) => sum + seed[key][task], 0) / whole.length,
  }));
}

// The prompt that shows best what is lost: the first that some seed answers wrong, else the last of those as long as in
// training. [prompt, words said, words that are right]
export function sampleOf(results, variant) {
  const { prompts, answers } = results;
  const { seeds } = results.variants[variant];
  const asTrained = prompts.length - 1; // the last prompt is longer
  for (let i = 0; i < asTrained; i++) {
    const wrong = seeds.find((seed) => seed.said[i] !== answers[i]);
    if (wrong) return [prompts[i], wrong.said[i].split(" "), answers[i].split(" ")];
  }
  return [prompts[asTrained - 1], seeds[0].said[asTrained - 1].split(" "), answers[asTrained - 1].split(" ")];
}
