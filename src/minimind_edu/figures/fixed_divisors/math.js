// What FixedDivisors reads from the stored runs.

export const FLOOR = 0.1; // the ends of the axis of sizes
export const CEILING = 1e5;
const MANY = 4; // times as large as in the trained model: a vector runs away
const LITTLE = 0.6; // of the size in the trained model: little has been added

const SETTING = ["percentile", "apart", "proportional", "networks_only"];

// The stored runs with names: { living, twin }, each { own, rows }. Python sends the names of the fields once.
export function unpacked({ fields, ...models }) {
  const named = (row) => Object.fromEntries(fields.map((name, i) => [name, row[i]]));
  const all = ([model, { own: trained, rows }]) => [model, { own: trained, rows: rows.map(named) }];
  return Object.fromEntries(Object.entries(models).map(all));
}

// The run of a setting, and of its model as it was trained: { nats, first, others, divisors }, the last for `<s>` and
// for the other words; a norm that measures divides by the size that it meets.
export function runOf(stored, { twin, ...setting }) {
  const { own: trained, rows } = stored[twin ? "twin" : "living"];
  const isSet = (row) => SETTING.every((name) => Number(row[name]) === Number(setting[name])); // a switch: 0 or 1
  const run = setting.percentile ? rows.find(isSet) : trained;
  const isFixed = (norm) => setting.percentile && (norm % 2 === 1 || !setting.networks_only);
  const others = trained.others.slice(0, -1).map((_, norm) => (isFixed(norm) ? run.divisors : run.others)[norm]);
  const first = others.map((by, norm) =>
    isFixed(norm) ? (setting.apart ? trained.first[norm] : by) : run.first[norm],
  );
  return { run, own: trained, divisors: { first, others } };
}

// What is to be seen, by the sizes at the last norm.
export function kindOf(run, trained, isOwn) {
  if (isOwn) return "own";
  const [first, others] = ["first", "others"].map((name) => run[name].at(-1) / trained[name].at(-1));
  if (first > MANY) return others > MANY ? "all" : "first";
  if (others > MANY) return "others";
  return others < LITTLE ? "little" : "near";
}

// Where a size is on the axis, 0 to 1.
export function heightOf(size) {
  const share = Math.log(size / FLOOR) / Math.log(CEILING / FLOOR);
  return Math.min(1, Math.max(0, share));
}

// A number to so many significant digits.
export function toDigits(x, digits) {
  return Number(x.toPrecision(digits));
}
