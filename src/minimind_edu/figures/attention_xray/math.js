// One attention head in plain numbers, as minimind_edu.model.attention computes it. No DOM in here:
// tests/figures/test_figure_attention_xray.py compares these functions with torch.

import { turnForPosition } from "../../web/kit/rope.js";

/** RMSNorm without a gain: the vector divided by its root mean square. */
export function rmsNormalized(vector, eps) {
  const meanSquare = vector.reduce((sum, x) => sum + x * x, 0) / vector.length;
  return vector.map((x) => x / Math.sqrt(meanSquare + eps));
}

/** exp(x - max) / sum; an entry of -Infinity gets exactly 0. */
export function softmaxRow(scores) {
  const largest = Math.max(...scores);
  const powers = scores.map((x) => Math.exp(x - largest));
  const sum = powers.reduce((a, b) => a + b, 0);
  return powers.map((x) => x / sum);
}

/** What each channel adds to the dot product. [D] */
export function channelProducts(query, key) {
  return query.map((x, channel) => x * key[channel]);
}

/** The vectors a head compares: the first `dim` channels, normalized and turned as the settings say. [S][D] */
export function headVectors(vectors, s) {
  return vectors.map((vector, position) => {
    let x = vector.slice(0, s.dim);
    if (s.qkNorm) x = rmsNormalized(x, s.eps);
    return s.rope ? turnForPosition(x, position, s.base, "half-split", "half-split") : x;
  });
}

/** Every stage of one head: queries and keys as compared, scores [S][S] before the mask, weights, outputs. */
export function attentionStages(query, key, value, s) {
  const [q, k] = [headVectors(query, s), headVectors(key, s)];
  const scale = s.scaled ? 1 / Math.sqrt(s.dim) : 1;
  const dots = q.map((a) => k.map((b) => channelProducts(a, b).reduce((sum, x) => sum + x, 0)));
  const scores = dots.map((row) => row.map((x) => x * scale));
  const masked = scores.map((row, i) => row.map((x, j) => (s.causal && j > i ? -Infinity : x)));
  const weights = masked.map(softmaxRow);
  const outputs = weights.map((row) => value[0].map((_, c) => row.reduce((sum, w, j) => sum + w * value[j][c], 0)));
  return { q, k, dots, scores, weights, outputs };
}

/** The largest difference between the outputs of the tokens in `order` and those of the same tokens before. */
export function largestChange(before, after, order) {
  return Math.max(...after.flatMap((row, place) => row.map((x, c) => Math.abs(x - before[order[place]][c]))));
}
