// What is open: a head with its map, a feed-forward part with its neurons or experts, or a block with its stream.

import { h, fill, toggle } from "../web/kit/kit.js";
import { createOpenHead } from "../web/stage/heads.js";
import { createOpened } from "../web/stage/opened.js";
import { createRouter } from "./router.js";
import { partsOf } from "./session.js";
import { createStream } from "./stream.js";

/** reading: see heads.js; rowOf(zoom): the row of its block. */
export function createZoom(words, session, chip, data, reading, rowOf, door) {
  const { num_attention_heads: H, num_key_value_heads: K, use_moe: isMixture } = data.config;
  const offOf = (label, keys) =>
    toggle({ label, onChange: (isSilent) => session.silenceSome(keys(session.zoom), isSilent) });
  const offFeed = offOf(isMixture ? words.silenceExperts : words.silenceFeed, ({ layer }) => [`${layer}.feed`]);
  const offBlock = offOf(words.silenceBlock, ({ layer }) => partsOf(layer, H));
  const [found, routed] = [h("div", {}), h("div", {})];
  const router = createRouter(words, session, data, reading.texts, reading.colors);
  const stream = createStream(words, session, chip, data);
  const [feedTitle, blockTitle] = [h("p", { class: "st-title" }), h("p", { class: "st-title" })];
  const headOf = (title, off) => h("div", { class: "st-openhead" }, title, off);
  const feedDoor = door(isMixture ? "experts" : "feed");
  const ofFeed = h("div", {}, headOf(feedTitle, offFeed), routed, isMixture && router, found, feedDoor);
  const ofBlock = h("div", {}, headOf(blockTitle, offBlock), stream, door("block"));

  const shares = ({ head }) => words.shares(Math.floor(head / (H / K)) + 1, K, H / K - 1);
  const about = (zoom) => [
    [chip.at(session.selected), words.reads],
    K < H && h("p", { class: "mm-note" }, shares(zoom)),
    door("heads"),
  ];

  function linesOf({ probabilities, chosen }, layer) {
    const visits = (expert) => session.told.filter(({ routes }) => routes[layer].chosen.includes(expert)).length;
    const lines = Array.from(probabilities, (p, expert) =>
      h(
        "li",
        { "data-chosen": String(chosen.includes(expert)) },
        h("span", {}, words.expert(expert)),
        h("span", { class: "mm-track" }, h("i", { class: "mm-after", style: { width: `${100 * p}%` } })),
        h("b", {}, words.percent(p)),
        h("small", {}, words.visits(visits(expert), session.told.length)),
      ),
    );
    return [h("p", {}, words.routed(chosen)), h("ol", { class: "st-list in-router" }, lines)];
  }

  function drawFeed({ layer }, isOther) {
    feedTitle.textContent = words.feedTitle(layer + 1, isMixture);
    offFeed.set(session.silenced.has(`${layer}.feed`));
    if (isOther) fill(found, h("p", { class: "mm-note" }, words.looking));
    if (!session.now) return;
    const route = session.now.routes[layer];
    fill(routed, route && linesOf(route, layer));
    if (route) router.show(layer);
    session.look("neurons", { at: session.selected, layer }, ({ count, expert, strongest }) => {
      const lines = strongest.map(({ neuron, activation, tokens }) =>
        h(
          "li",
          {},
          h("small", {}, words.neuron(neuron)),
          h(
            "span",
            { class: "in-lifted" },
            tokens.map((id) => chip(id)),
          ),
          h("b", {}, activation.toFixed(1).replace("-", "−")),
        ),
      );
      fill(found, h("p", {}, words.neurons(count, expert)), h("ol", { class: "st-list in-neurons" }, lines));
    });
  }

  function drawBlock({ layer }) {
    blockTitle.textContent = words.blockTitle(layer + 1);
    offBlock.set(partsOf(layer, H).every((key) => session.silenced.has(key)));
    if (session.now) stream.show(layer);
  }

  const views = {
    head: createOpenHead(words, session, reading, about),
    feed: { root: ofFeed, draw: drawFeed },
    block: { root: ofBlock, draw: drawBlock },
  };
  return createOpened(words, session, views, rowOf);
}
