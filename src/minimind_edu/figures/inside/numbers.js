// Numbers as the words of the page write them, in any language.

/**
 * With fewer digits the larger it is; sign: how the language writes percent.
 * @type {(part: number, sign: string) => string}
 */
export function percent(part, sign) {
  const value = 100 * part;
  const digits = value >= 99.95 || value >= 10 ? 0 : value >= 0.095 ? 1 : 2;
  return value < 0.005 ? `< 0.01${sign}` : `${value.toFixed(digits)}${sign}`;
}

/** one: the unit of the smallest. @type {(count: number, one: string) => string} */
export function bytesOf(count, one) {
  const power = Math.min(3, Math.floor(Math.log2(Math.max(1, count)) / 10));
  return `${(count / 1024 ** power).toFixed(power ? 1 : 0)} ${[one, "KiB", "MiB", "GiB"][power]}`;
}
