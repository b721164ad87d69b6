// All that a reader has chosen as the end of an address, after its #, and back. What it says is checked: an address may
// come from anybody. No DOM. tests/inside/test_inside_address.py reads back what it wrote.
//
//   ids=0.17.4        the text                         by=2        those that the model wrote
//   at=2              the selected position            silent=0.1_1.feed
//   open=head.0.1     what is open                     who=9       the token explained, rather=1: against another
//   draw=0.8_40_0.9   temperature, top-k and top-p     pin=0.17    what is compared with; without=0.1: and silent there
//   chat=…            the question, of a chat; without it there is none

import { partNamed } from "../web/stage/parts.js";
import { addressWith, listed, numbersIn, drawFieldOf, settingsIn } from "./hash.js";
import { TEMPERATURE } from "./session.js";

const AT_FIRST = { temperature: TEMPERATURE, topK: 0, topP: 1 };

/** @type {(session: any) => string} */
export function addressOf(session) {
  const { ids, selected, written, silenced, zoom, target, isAgainst, settings, pinned } = session;
  const fields = {
    ids: listed(ids),
    by: listed(written),
    at: selected === ids.length - 1 ? "" : `${selected}`,
    silent: listed(silenced, "_"),
    open: zoom ? listed(Object.values(zoom)) : "",
    who: target === null ? "" : `${target}`,
    rather: isAgainst ? "1" : "",
    draw: drawFieldOf(settings, AT_FIRST),
    pin: pinned ? listed(pinned.ids) : "",
    without: pinned ? listed(pinned.silenced, "_") : "",
  };
  return addressWith(fields, session);
}

/**
 * What session.restore() takes, or null where an address says nothing that fits this model. hash: without its #; data:
 * what page.py wrote.
 */
export function readAddress(hash, data) {
  const { num_hidden_layers: L, num_attention_heads: H, vocab_size: V } = data.config;
  const fields = new URLSearchParams(hash);
  const numbers = (name, below) => numbersIn(fields.get(name), below);
  const textIn = (name) => numbers(name, V).slice(0, data.most - 1);
  const silentIn = (name) => {
    const keys = (fields.get(name) || "").split("_").map((key) => key.split("."));
    const fits = ([layer, part]) => isBelow(layer, L) && (part === "feed" || isBelow(part, H));
    return new Set(keys.filter((key) => key.length === 2 && fits(key)).map((key) => key.join(".")));
  };
  const isBelow = (text, limit) => /^\d{1,4}$/.test(text ?? "") && Number(text) < limit;
  const ids = textIn("ids");
  if (!ids.length) return null;

  const opened = (fields.get("open") || "").split(".").filter(Boolean);
  const pinned = textIn("pin");
  const isChat = Boolean(data.chat) && fields.has("chat");
  return {
    ids,
    selected: numbers("at", ids.length)[0] ?? ids.length - 1,
    written: new Set(numbers("by", ids.length)),
    silenced: silentIn("silent"),
    zoom: partNamed(opened, { head: [L, H], feed: [L], block: [L] }, 0),
    target: numbers("who", V)[0] ?? null,
    isAgainst: fields.has("rather"),
    settings: settingsIn(fields.get("draw"), AT_FIRST),
    pin: pinned.length ? { ids: pinned, silenced: silentIn("without") } : null,
    isChat,
    typed: isChat ? fields.get("chat") : undefined,
  };
}
