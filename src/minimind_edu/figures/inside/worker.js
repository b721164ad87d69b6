// The model's own thread: it answers the page's messages, one reading at a time. A newer reading ends an older one
// between two tokens. The page sees no model, only these answers; whatever gives the same ones can take this place.
//
//   open   { buffer, rope, step }       ->  { did: "open", why }: why it runs in plain JavaScript, or null
//   read   { run, ids, silenced }       ->  { did: "read", run, told: [...] } some times, { did: "ready", run }
//   look   { key, what, ... }           ->  { did: "look", key, answer }: one of `looks`
//   trial  { run, at, token, silenced } ->  { did: "trial", run, layer, head, without } for each head
//
// Whatever fails: { did: "fail", key, message }.

import { unpackWeights } from "../live/model.js";
import { sample, softmax } from "../live/sampling.js";
import { createInsight } from "./insight.js";
import { createReading, largest, TOLD } from "./reading.js";
import { openModel } from "./step.js";

const LATER = 3; // tokens of each block
const PATIENCE = 120; // milliseconds between two messages while a text is read

const copied = (vector) => vector.slice(); // a view would be sent with all that it is a view of

/** Lets messages in that are waiting. */
function createBreath() {
  const channel = new MessageChannel();
  let wake = null;
  channel.port1.onmessage = () => wake();
  return () => new Promise((resolve) => ((wake = resolve), channel.port2.postMessage(0)));
}

function startWorker() {
  const breathe = createBreath();
  let [insight, reading, silent, latest] = [null, null, new Set(), 0];

  const looks = {
    lens: ({ at }) => reading.lens(at, LATER),
    wrote: ({ at, token, against }) => insight.wrote(reading.traceAt(at), token, against, silent),
    neurons: ({ at, layer }) => insight.neurons(reading.traceAt(at), layer),
    draw: ({ at, settings }) => sample(reading.logitsAt(at), settings).token,
    beside: ({ ids, silenced }) => largest(softmax(reading.beside(ids, new Set(silenced))), TOLD),
    stream({ at }) {
      const { streams, middles } = reading.keptAt(at);
      return { streams: streams.map(copied), middles: middles.map(copied) };
    },
    check({ ids: checked, top }) {
      const logits = reading.beside(checked);
      return {
        first: largest(logits, 1)[0][0],
        far: Math.max(...top.map(([id, logit]) => Math.abs(logits[id] - logit))),
      };
    },
  };

  const doings = {
    async open({ buffer, rope, step }) {
      const unpacked = { ...unpackWeights(new Uint8Array(buffer), true), rope };
      const { model, why } = await openModel(unpacked, step);
      insight = createInsight(unpacked);
      reading = createReading(model);
      postMessage({ did: "open", why });
    },
    async read({ run, ids, silenced }) {
      latest = run;
      silent = new Set(silenced);
      let [told, since] = [[], performance.now()];
      const send = () => told.length && postMessage({ did: "read", run, told: told.splice(0) });
      let isFirst = true;
      for (const at of reading.become(ids, silent)) {
        if (isFirst && at > 0) told.push(reading.tell(at - 1, ids[at])); // another token follows it now
        isFirst = false;
        told.push(reading.tell(at, ids[at + 1]));
        await breathe();
        if (latest !== run) return;
        if (performance.now() - since < PATIENCE) continue;
        send();
        since = performance.now();
      }
      if (isFirst) told.push(reading.tell(ids.length - 1));
      send();
      postMessage({ did: "ready", run });
    },
    async trial({ run, at, token }) {
      for (const one of reading.trial(at, token)) {
        postMessage({ did: "trial", run, ...one });
        await breathe();
        if (latest !== run) return;
      }
    },
    look({ key, what, ...place }) {
      const isRead = place.at === undefined || place.at < reading.size(); // another text may be on its way
      postMessage({ did: "look", key, answer: isRead ? looks[what](place) : null });
    },
  };

  onmessage = async ({ data }) => {
    try {
      await doings[data.do](data);
    } catch (error) {
      postMessage({ did: "fail", key: data.key ?? null, message: String(error.message ?? error) });
    }
  };
}

export default startWorker;
