// What a reader has chosen on the page of two models as the end of an address, after its #, and back. What it says is
// checked: an address may come from anybody. No DOM. tests/inside/test_inside_beside_address.py reads back what it
// wrote.
//
//   ids=0.17.4      the text that both read      a=5.6, b=5.7   what each of them has answered
//   at=2, of=b      the chosen token, and whose row it is in; without of=, A's
//   open=head.0.1   what is open                 beyond=0.1     from which difference on they have parted
//   draw=0.8_40_1   temperature, top-k, top-p    seed=3         of the draws
//   chat=…          the question, of a chat; without it there is none

import { partNamed } from "../../web/stage/parts.js";
import { addressWith, listed, numbersIn, drawFieldOf, settingsIn } from "../hash.js";
import { comparable } from "./compare.js";
import { AT_FIRST, FURTHEST, MOST_SEED, NEAREST, WRITTEN } from "./session.js";

/** data: what write_beside_page wrote. @type {(session: any, data: any) => string} */
export function addressOf({ prompt, answers, row, selected, zoom, settings, seed, beyond, ...session }, data) {
  const fields = {
    ids: listed(prompt),
    a: listed(answers[0]),
    b: listed(answers[1]),
    at: selected === prompt.length - 1 ? "" : `${selected}`,
    of: row ? "b" : "",
    open: zoom ? listed(Object.values(zoom)) : "",
    beyond: beyond === data.beyond ? "" : `${beyond}`,
    draw: drawFieldOf(settings, AT_FIRST.settings),
    seed: seed === AT_FIRST.seed ? "" : `${seed}`,
  };
  return addressWith(fields, session);
}

/** What session.restore() takes, or null where an address says nothing that fits. hash: without its #. */
export function readAddress(hash, data) {
  const fields = new URLSearchParams(hash);
  const { vocab_size: V, num_attention_heads: H } = data.config;
  const ids = numbersIn(fields.get("ids"), V).slice(0, data.most - 1);
  if (!ids.length) return null;
  const room = Math.min(WRITTEN, data.most - ids.length);
  const answers = ["a", "b"].map((name) => numbersIn(fields.get(name), V).slice(0, room));
  const row = fields.get("of") === "b" && answers[1].length ? 1 : 0;
  const [seed] = numbersIn(fields.get("seed"), MOST_SEED + 1);
  const beyond = Number(fields.get("beyond"));
  const { heads } = comparable(data.models.map(({ config }) => config)); // blocks whose heads can be opened
  const isChat = Boolean(data.chat) && fields.has("chat");
  return {
    ids,
    answers,
    row,
    selected: numbersIn(fields.get("at"), ids.length + answers[row].length)[0] ?? ids.length - 1,
    zoom: partNamed((fields.get("open") ?? "").split("."), { head: [heads, H] }, 0),
    beyond: beyond >= NEAREST && beyond <= FURTHEST ? beyond : data.beyond,
    settings: settingsIn(fields.get("draw"), AT_FIRST.settings),
    seed: seed || AT_FIRST.seed,
    isChat,
    typed: isChat ? fields.get("chat") : undefined,
  };
}
