// What runs in node for tests/node.py: a line of standard input is [script, argument], a line of output its value.
// Scripts import the figures' modules as on a page: `import("/web/live/model.js")`.

import { readFileSync } from "node:fs";
import { registerHooks } from "node:module";
import { createInterface } from "node:readline";

const evaluate = (text) => (0, eval)(`(${text})`); // JSON as Python writes it, with NaN and Infinity, is an expression
const [root, changed] = evaluate(process.argv[2]); // file:///…/minimind_edu; address of a module -> text in its place

registerHooks({
  resolve: (name, context, next) => next(name.startsWith("/") ? root + name : name, context),
  load: (url) => ({
    format: "module",
    source: changed[url] ?? readFileSync(new URL(url), "utf8"),
    shortCircuit: true,
  }),
});
console.log = console.error; // standard output is for values

/** JSON as Python reads it, with NaN, Infinity and -0.0; typed arrays are lists, undefined is null. */
function written(value) {
  if (typeof value === "number") return Object.is(value, -0) ? "-0.0" : String(value);
  if (Array.isArray(value) || ArrayBuffer.isView(value)) return `[${Array.from(value, written)}]`;
  if (value === null || typeof value !== "object") return JSON.stringify(value) ?? "null";
  return `{${Object.entries(value).map(([key, one]) => `${JSON.stringify(key)}:${written(one)}`)}}`;
}

for await (const line of createInterface({ input: process.stdin })) {
  let answer;
  try {
    const [script, argument] = evaluate(line);
    const found = evaluate(script);
    answer = { value: await (typeof found === "function" ? found(argument) : found) };
  } catch (error) {
    answer = { error: `${error}` };
  }
  process.stdout.write(`${written(answer)}\n`);
}
