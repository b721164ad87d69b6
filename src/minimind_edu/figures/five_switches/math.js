// What FiveSwitches reads from the stored trainings.

export const PARTS = ["table", "q_k", "v_o", "feed_forward", "norm"]; // in the order of the board
export const LEARNED = 0.1; // nats above the floor: with no more, a seed has learned the task

// The name of a setting: a letter for each part that is small. isLarge: by the name of the part.
export function nameOf(isLarge) {
  return PARTS.filter((part) => !isLarge[part])
    .map((part) => part[0])
    .join("");
}

// The distances of the seeds at the end.
export function endsOf(stored, name) {
  return stored.trainings[name].map((seed) => seed.at(-1));
}

// How many seeds have learned the task.
export function learned(ends) {
  return ends.filter((end) => end <= LEARNED).length;
}

// The names of all settings, with a large norm and without, each from the one that ends lowest on.
export function inOrder(stored) {
  const mean = (name) => endsOf(stored, name).reduce((sum, end) => sum + end, 0);
  const names = Object.keys(stored.trainings).sort((a, b) => mean(a) - mean(b));
  return [names.filter((name) => !name.includes("n")), names.filter((name) => name.includes("n"))];
}
