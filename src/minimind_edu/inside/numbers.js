// Numbers as the words of the page write them, in any language.

import { grouped } from "../web/kit/kit.js";

/**
 * With fewer digits the larger it is; sign: how the language writes percent.
 * @type {(part: number, sign: string) => string}
 */
export function percent(part, sign) {
  const value = 100 * part;
  const digits = value >= 99.95 || value >= 10 ? 0 : value >= 0.095 ? 1 : 2;
  return value < 0.005 ? `< 0.01${sign}` : `${value.toFixed(digits)}${sign}`;
}

/** How many times something is likelier, from the difference of logits: two digits, and below 1 a fraction. */
/** @type {(logit: number) => string} */
export function times(logit) {
  const ratio = Math.exp(logit);
  if (ratio >= 9.5) return grouped(Number(Math.min(ratio, 1e15).toPrecision(2)));
  return ratio < 0.1 ? `1/${times(-logit)}` : ratio.toPrecision(2);
}

/** unit: the unit of the smallest. @type {(count: number, unit: string) => string} */
export function bytesOf(count, unit) {
  const power = Math.min(3, Math.floor(Math.log2(Math.max(1, count)) / 10));
  return `${(count / 1024 ** power).toFixed(power ? 1 : 0)} ${[unit, "KiB", "MiB", "GiB"][power]}`;
}

/**
 * Bytes of the KV cache of a model: of `count` positions in float32 (now), of all its positions in 16 bits (full), and
 * of those if every head had keys and values of its own (alone), or null where it has.
 * @type {(config: any, count: number) => { now: number, full: number, alone: number | null }}
 */
export function cacheBytes(config, count) {
  const { num_hidden_layers: L, num_key_value_heads: K, num_attention_heads: H, head_dim: D } = config;
  const each = 2 * L * K * D; // numbers of a position
  const full = 2 * each * config.max_position_embeddings;
  return { now: 4 * each * count, full, alone: K < H ? (full / K) * H : null };
}
