// The thread of the model that writes verse: it answers the messages of runner.js.
//
//   open  { buffer, rope, step }   ->  { did: "open", why }: why it runs in plain JavaScript, or null
//   look  { key, what: "write", ...plan of compose.js }, or { key, what: "check", ids, top }
//                                  ->  { did: "look", key, answer }
//
// Whatever fails: { did: "fail", key, message }.

import { unpackWeights } from "../../web/live/model.js";
import { openModel } from "../step.js";
import { answerWith } from "../answering.js";
import { farFrom } from "../largest.js";
import { compose } from "./compose.js";

function startWorker() {
  let model = null;
  const looks = {
    write: (plan) => compose(model, plan),
    check: ({ ids, top }) => farFrom(model.run(ids, { trace: false }).traces.at(-1).logits, top),
  };
  const doings = {
    async open({ buffer, rope, step }) {
      const opened = await openModel({ ...unpackWeights(new Uint8Array(buffer), true), rope }, step);
      model = opened.model;
      postMessage({ did: "open", why: opened.why });
    },
    look: ({ key, what, ...asked }) => postMessage({ did: "look", key, answer: looks[what](asked) }),
  };
  answerWith(doings);
}

export default startWorker;
