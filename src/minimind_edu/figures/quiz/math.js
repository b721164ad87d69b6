// What readers type for a number. checks/typed.py reads alike.

const SCALES = {
  "%": 0.01,
  percent: 0.01,
  k: 1e3,
  thousand: 1e3,
  million: 1e6,
  billion: 1e9,
  b: 1,
  byte: 1,
  bytes: 1,
  kb: 1e3,
  mb: 1e6,
  gb: 1e9,
  kib: 2 ** 10,
  mib: 2 ** 20,
  gib: 2 ** 30,
};
const GROUPED = /^[-+]?[1-9]\d{0,2}(,\d{3})+(\.\d+)?$/;
const DECIMAL = /^[-+]?(\d+\.?\d*|\.\d+)(e[-+]?\d+)?$/;

// 1,024 is a grouped thousand; any other single comma, as in 0,5 and 0,125, stands for the point.
function oneNumber(text) {
  if (text === "e") return Math.E;
  const plain = GROUPED.test(text) ? text.replaceAll(",", "") : text.replace(",", ".");
  return DECIMAL.test(plain) ? Number(plain) : NaN;
}

function power(text) {
  const [base, exponent = "1", ...more] = text.split("^");
  return more.length ? NaN : oneNumber(base) ** oneNumber(exponent);
}

const product = (text) => text.split(/[*·×]/).reduce((value, factor) => value * power(factor), 1);

/**
 * The number that a reader typed, or NaN: minus signs of any kind, 1,024 and 0,5, fractions, powers and units.
 * unit: what the question asks in; a number typed without one is in it. A word that scales nothing, as nats, is let be.
 */
export function readNumber(text, unit = "") {
  const plain = text
    .toLowerCase()
    .replace(/[−–]/g, "-")
    .replace(/[\s_]/g, "");
  const [, digits, name] = /^(.*\d\.?)([%\p{L}]\D*)?$/u.exec(plain) ?? [];
  if (digits === undefined) return NaN;
  const [above, below = "1", ...more] = digits.split("/");
  const value = more.length ? NaN : product(above) / product(below);
  return name in SCALES ? (value * SCALES[name]) / (SCALES[unit.toLowerCase()] ?? 1) : value;
}
