// What the words of a run have become, from the numbers that were measured. No DOM.

/** The mean of numbers. */
export function mean(values) {
  return values.reduce((sum, value) => sum + value, 0) / values.length;
}

const RIGHT = 90; // degrees, near which all words begin
const UNCHANGED = "P".charCodeAt(0); // the letter of no change

/** The line of each word, in degrees, first and after each of `steps`: a letter says how far an angle changes. */
export function threadsOf(letters, steps) {
  const places = steps + 1;
  return Array.from({ length: letters.length / places }, (_, word) => {
    let angle = RIGHT;
    return Array.from({ length: places }, (_, place) => {
      angle += letters.charCodeAt(word * places + place) - UNCHANGED;
      return angle;
    });
  });
}
