// The thread of two models: it answers the messages of runner.js. Each of two rows is a text that both have read: row 0
// goes on as the first model does, row 1 as the second.
//
//   open  { buffer, rope, step }, of each model   ->  { did: "open", why }: why they run in plain JavaScript, or null
//   look  { key, what, row, ... }                 ->  { did: "look", key, answer }, of these:
//
//     read   { ids, known }           what both.js tells of each token from `known` on; null: overtaken by another
//     next   { settings, random }     the next token of the row's own model; random: in [0, 1), what it is drawn by
//     maps   { layer, head }          what a head reads, of both
//     check  { which, ids, top }      as in the page of one model
//
// Whatever fails: { did: "fail", key, message }.

import { unpackWeights } from "../../web/live/model.js";
import { sample } from "../../web/live/sampling.js";
import { answerWith, createBreath } from "../answering.js";
import { farFrom } from "../largest.js";
import { openModel } from "../step.js";
import { createComparison } from "./both.js";

function startWorker() {
  const breathe = createBreath();
  let [models, rows] = [[], []];
  const latest = [0, 0]; // of each row the last reading

  const looks = {
    async read({ row, ids, known }) {
      const mine = ++latest[row];
      for (const steps = rows[row].read(ids); !steps.next().done;) {
        await breathe();
        if (latest[row] !== mine) return null;
      }
      return rows[row].toldFrom(known);
    },
    next: ({ row, settings, random }) =>
      sample(rows[row].logitsAt(rows[row].size() - 1, row), settings, () => random).token,
    maps: ({ row, layer, head }) => rows[row].mapsOf(layer, head),
    check: ({ which, ids, top }) => farFrom(models[which].run(ids, { trace: false }).traces.at(-1).logits, top),
  };
  const doings = {
    async open({ buffer, rope, step }) {
      const opened = [];
      for (const [at, bytes] of buffer.entries())
        opened.push(await openModel({ ...unpackWeights(new Uint8Array(bytes), true), rope: rope[at] }, step));
      models = opened.map(({ model }) => model);
      rows = [0, 1].map(() => createComparison(models));
      postMessage({ did: "open", why: opened.find(({ why }) => why)?.why ?? null });
    },
    look: async ({ key, what, ...asked }) => postMessage({ did: "look", key, answer: await looks[what](asked) }),
  };
  answerWith(doings);
}

export default startWorker;
