// What MixtureWalk computes of the stored trainings.

const ZERO = "m".charCodeAt(0); // the letter of 0, see minimind_edu.trained.routing.walk

// The numbers of a stored vector, -1 to 1.
export function vectorOf(letters) {
  return [...letters].map((letter) => (letter.charCodeAt(0) - ZERO) / 12);
}

// The shade of each number of a vector, -shades to shades, on the scale of its largest.
export function shadesOfStrip(vector, shades) {
  const largest = Math.max(...vector.map(Math.abs), 1e-9);
  return vector.map((value) => Math.round((value / largest) * shades));
}

export function softmaxOf(logits) {
  const powers = logits.map(Math.exp);
  const sum = powers.reduce((a, b) => a + b, 0);
  return powers.map((power) => power / sum);
}

// The stored training of one variant.
export function variantOf(stored, topK, renormalize, balanced) {
  const isIt = (variant) =>
    variant.top_k === topK && variant.renormalize === renormalize && variant.balanced === balanced;
  return stored.variants.find(isIt);
}

// [expert, weight] of what each token chose, the larger weight first.
export function routesOf({ experts, weights }, k) {
  const tokens = Array.from({ length: weights.length / k }, (_, i) => i * k);
  const choices = Array.from({ length: k }, (_, at) => at);
  return tokens.map((first) => choices.map((at) => [Number(experts[first + at]), weights[first + at] / 100]));
}

// For every choice of the text its place: expert, and how many rows that expert had before it. The rows of an expert
// come in the order of the text.
export function placesOf(routes, experts) {
  const rows = Array(experts).fill(0);
  const places = routes.map((route) => route.map(([expert]) => ({ expert, seat: rows[expert]++ })));
  return { places, rows };
}

// Where the answers of a token lie in its word, 0 to 1: [start, width] of each, as wide as its weight.
export function sharesOf(route) {
  let start = 0;
  return route.map(([, weight]) => {
    const share = [start, weight];
    start += weight;
    return share;
  });
}

// The weighted sum of vectors: pairs of a weight and a vector.
export function mixedOf(pairs) {
  return pairs[0][1].map((_, c) => pairs.reduce((sum, [weight, vector]) => sum + weight * vector[c], 0));
}

// Boxes with these widths in lines of at most `width`: [x, line] of each, and the number of lines. Every line is
// centered.
export function linesOf(widths, gap, width) {
  const lines = [[]];
  let used = 0;
  widths.forEach((wide, i) => {
    if (used && used + wide > width) {
      lines.push([]);
      used = 0;
    }
    lines.at(-1).push([i, used]);
    used += wide + gap;
  });
  const places = [];
  lines.forEach((line, at) => {
    const [last, start] = line.at(-1);
    const spare = (width - start - widths[last]) / 2;
    line.forEach(([i, x]) => (places[i] = [x + spare, at]));
  });
  return { places, lines: lines.length };
}
