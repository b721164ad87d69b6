// The model's own thread: it answers the page's messages, one reading at a time. A newer reading ends an older one
// between two tokens. The page sees no model, only these answers; whatever gives the same ones can take this place.
//
//   open  { buffer, rope, step }          ->  { did: "open", why }: why it runs in plain JavaScript, or null
//   read  { run, ids, silenced, known }   ->  { did: "read", run, told: [...] } some times, { did: "ready", run }
//   look  { key, what, ... }              ->  { did: "look", key, answer }: one of `looks`; null: of another text, or
//                                             given up for another that takes long
//
// known: of how many tokens the page has what was told. Of the last of them it is told only what follows it now.
// Whatever fails: { did: "fail", key, message }.

import { unpackWeights } from "../web/live/model.js";
import { sample, softmax } from "../web/live/sampling.js";
import { answerWith, createBreath } from "./answering.js";
import { createInsight } from "./insight.js";
import { farFrom, largest } from "./largest.js";
import { createReading, TOLD } from "./reading.js";
import { openModel } from "./step.js";

const LATER = 3; // tokens of each block
const PATIENCE = 120; // milliseconds between two messages while a text is read

const copied = (vector) => vector.slice(); // a view would be sent with all that it is a view of

function startWorker() {
  const breathe = createBreath();
  let [insight, reading, silent] = [null, null, new Set()];
  let [latest, longest] = [0, 0]; // the last reading, and the last look that takes long

  const looks = {
    lens: ({ at }) => reading.lens(at, LATER),
    wrote: ({ at, token, against }) => insight.wrote(reading.traceAt(at), token, against, silent),
    neurons: ({ at, layer }) => insight.neurons(reading.traceAt(at), layer),
    draw: ({ at, settings }) => sample(reading.logitsAt(at), settings).token,
    without: ({ at, token, layer, head }) => finished(reading.without(at, token, layer, head)),
    beside: ({ ids, silenced }) => largest(softmax(reading.beside(ids, new Set(silenced))), TOLD),
    stream({ at }) {
      const { streams, middles } = reading.keptAt(at);
      return { streams: streams.map(copied), middles: middles.map(copied) };
    },
    check: ({ ids, top }) => farFrom(reading.beside(ids), top),
  };

  /** What a look returns that takes long; null if another text or another such look comes meanwhile. */
  async function finished(steps) {
    const [run, mine] = [latest, ++longest];
    for (;;) {
      const { done, value } = steps.next();
      if (done) return value;
      await breathe();
      if (latest !== run || longest !== mine) return null;
    }
  }

  const doings = {
    async open({ buffer, rope, step }) {
      const unpacked = { ...unpackWeights(new Uint8Array(buffer), true), rope };
      const { model, why } = await openModel(unpacked, step);
      insight = createInsight(unpacked);
      reading = createReading(model);
      postMessage({ did: "open", why });
    },
    async read({ run, ids, silenced, known }) {
      latest = run;
      silent = new Set(silenced);
      const positions = known ? [{ at: known - 1, next: reading.following(known - 1, ids[known]) }] : [];
      let since = performance.now();
      const send = () => positions.length && postMessage({ did: "read", run, told: positions.splice(0) });
      let next = known; // to be told
      const tellTo = (end) => {
        for (; next < end; next++) positions.push(reading.tell(next, ids[next + 1]));
      };
      for (const at of reading.become(ids, silent)) {
        tellTo(at + 1);
        await breathe();
        if (latest !== run) return;
        if (performance.now() - since < PATIENCE) continue;
        send();
        since = performance.now();
      }
      tellTo(ids.length);
      send();
      postMessage({ did: "ready", run });
    },
    async look({ key, what, ...place }) {
      const isRead = place.at === undefined || place.at < reading.size(); // another text may be on its way
      postMessage({ did: "look", key, answer: isRead ? await looks[what](place) : null });
    },
  };

  answerWith(doings);
}

export default startWorker;
