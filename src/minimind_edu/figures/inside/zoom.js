// What is open: a head with its map, or a feed-forward part with its neurons or experts.

import { h, fill, toggle } from "../kit/kit.js";
import { createBigMap } from "./bigmap.js";
import { readBy, weightOfByte } from "./marks.js";
import { createRouter } from "./router.js";
import { partsOf } from "./session.js";
import { createStream } from "./stream.js";

const MOST_READ = 6; // tokens that are named
const LEAST_READ = 0.005; // of what is read

export function createZoom(words, session, chip, data, texts, colors) {
  const { num_attention_heads: H, num_key_value_heads: K } = data.config;
  const close = h("button", { type: "button", class: "in-close", "aria-label": words.close }, "×");
  close.addEventListener("click", () => session.toggle(session.zoom));
  const body = h("div", {});
  const root = h("div", { class: "in-zoom", hidden: true }, close, body);
  const map = createBigMap(words, session, texts, colors);
  const offOf = (label, keys) =>
    toggle({ label, onChange: (isSilent) => session.silenceSome(keys(session.zoom), isSilent) });
  const off = offOf(words.silence, ({ layer, head }) => [`${layer}.${head}`]);
  const offFeed = offOf(data.config.use_moe ? words.silenceExperts : words.silenceFeed, ({ layer }) => [
    `${layer}.feed`,
  ]);
  const offBlock = offOf(words.silenceBlock, ({ layer }) => partsOf(layer, H));
  const [title, list, shared] = [h("h3", {}), h("div", {}), h("p", { class: "mm-note" })];
  const ofHead = [
    h("div", { class: "in-zoomhead" }, title, off),
    h("div", { class: "in-zoomsides" }, map, h("div", {}, list, shared)),
  ];
  const found = h("div", {});
  const [router, routed] = [createRouter(words, session, data, texts, colors), h("div", {})];
  const feedTitle = h("h3", {});
  const ofFeed = [h("div", { class: "in-zoomhead" }, feedTitle, offFeed), routed, data.config.use_moe && router, found];
  const [stream, blockTitle] = [createStream(words, session, chip, data, colors), h("h3", {})];
  const ofBlock = [h("div", { class: "in-zoomhead" }, blockTitle, offBlock), stream];

  function drawHead(zoom) {
    const { layer, head } = zoom;
    const { now, ids, selected } = session;
    title.textContent = words.headTitle(layer + 1, head + 1);
    off.set(session.silenced.has(`${layer}.${head}`));
    if (!session.sees(layer)) return;
    const weights = Array.from(readBy(now, zoom), weightOfByte);
    const order = [...weights.keys()].sort((a, b) => weights[b] - weights[a]).slice(0, MOST_READ);
    const lines = order
      .filter((at) => weights[at] > LEAST_READ)
      .map((at) => {
        const where = at === selected ? words.itself : words.back(selected - at);
        return h(
          "li",
          {},
          h("span", {}, chip(ids[at]), " ", h("small", {}, where)),
          h("b", {}, words.percent(weights[at])),
        );
      });
    fill(list, h("p", {}, chip(ids[selected]), words.reads), h("ol", { class: "in-list" }, lines));
    shared.textContent = K < H ? words.shares(Math.floor(head / (H / K)) + 1, K, H / K - 1) : "";
    map.show(zoom);
  }

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
    return [h("p", {}, words.routed(chosen)), h("ol", { class: "in-list in-router" }, lines)];
  }

  function drawFeed({ layer }) {
    const route = session.now.routes[layer];
    feedTitle.textContent = words.feedTitle(layer + 1, data.config.use_moe);
    offFeed.set(session.silenced.has(`${layer}.feed`));
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
      fill(found, h("p", {}, words.neurons(count, expert)), h("ol", { class: "in-list in-neurons" }, lines));
    });
  }

  function drawBlock({ layer }) {
    blockTitle.textContent = words.blockTitle(layer + 1);
    offBlock.set(partsOf(layer, H).every((key) => session.silenced.has(key)));
    stream.show(layer);
  }

  const parts = { head: ofHead, feed: ofFeed, block: ofBlock };
  const drawings = { head: drawHead, feed: drawFeed, block: drawBlock };
  let opened = null;
  function draw() {
    const { zoom, now } = session;
    if (!zoom) return void (opened = null);
    const isNew = opened?.part !== zoom.part;
    if (isNew) fill(body, parts[zoom.part]);
    const isOther = isNew || opened.layer !== zoom.layer || opened.head !== zoom.head;
    if (isOther) fill(found, h("p", { class: "mm-note" }, words.looking));
    opened = zoom;
    if (now) drawings[zoom.part](zoom);
    if (isOther) root.scrollIntoView({ block: "nearest" });
  }
  return { root, draw };
}
