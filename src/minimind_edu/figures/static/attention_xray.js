// AttentionXRay: every stage of one head. Scores and weights are two tables and never one.

import { h, fmt, slider, toggle, readout, mount } from "./kit.js";
import { attentionStages, channelProducts, largestChange } from "./attention_xray_math.js";

const HEAD_DIMS = [4, 8, 16, 32, 64, 128];
const SETTINGS = ["head_dim", "scaled", "causal", "rope", "qk_norm", "permuted", "row", "column"];
const WRITTEN_TERMS = 4;

const XRAY_CSS = `
.ax-stage { display: grid !important; grid-template-columns: repeat(auto-fit, minmax(min(100%, 290px), 1fr)); gap: 22px 28px !important; align-items: start; }
.ax-wide { grid-column: 1 / -1; }
.mm-fig .ax-title { margin-bottom: 6px; font-size: 15px; font-weight: 600; }
.mm-fig .ax-title span { color: var(--mm-muted); font-weight: 400; }
.mm-fig table.ax-table { display: table; width: 100%; margin: 0; border: 0; border-collapse: separate; border-spacing: 3px; table-layout: fixed; font: 13px/1.2 var(--mm-font); font-variant-numeric: tabular-nums; }
.mm-fig .ax-table :is(tr, th, td) { padding: 0; border: 0; background: none; color: var(--mm-ink); text-align: center; }
.mm-fig .ax-table thead th { padding-bottom: 2px; color: var(--mm-accent2); font-weight: 600; }
.mm-fig .ax-table tbody th { padding-right: 5px; color: var(--mm-accent); font-weight: 600; text-align: right; }
.mm-fig .ax-table :is(thead th.ax-here, tbody th.ax-here) { text-decoration: underline; text-underline-offset: 3px; text-decoration-thickness: 2px; }
.mm-fig .ax-table .ax-sum { color: var(--mm-muted); font-weight: 400; }
.mm-fig .ax-cell { display: block; width: 100%; height: 40px; margin: 0; padding: 0; border: 1px solid transparent; border-radius: 5px; background: color-mix(in oklab, var(--ax-tone, var(--mm-soft)) var(--ax-part, 0%), var(--mm-panel)); color: var(--mm-ink); font: inherit; cursor: pointer; }
.mm-fig .ax-cell.ax-row { border-color: var(--mm-muted); }
.mm-fig .ax-cell.ax-chosen { border: 2px solid var(--mm-ink); font-weight: 700; }
.mm-fig .ax-cell.ax-masked { color: var(--mm-muted); background: repeating-linear-gradient(135deg, transparent 0 5px, var(--mm-line) 5px 6px), var(--mm-bg); }
.ax-products { display: flex; align-items: center; height: 64px; margin: 6px 0; }
.ax-products i { flex: 1 1 0; min-width: 0; height: 100%; display: block; background: linear-gradient(var(--ax-tone), var(--ax-tone)) no-repeat; background-size: max(1px, 76%) var(--ax-height); background-position: 50% var(--ax-top); }
.mm-fig p.ax-written { min-height: 3em; overflow-wrap: anywhere; }
.ax-mixture { display: flex; height: 40px; gap: 3px; margin: 6px 0; }
.ax-mixture div { flex: 0 1 auto; min-width: 0; overflow: hidden; border-radius: 5px; background: color-mix(in oklab, var(--mm-good) 24%, var(--mm-panel)); border: 1px solid var(--mm-good); font-size: 13px; line-height: 38px; text-align: center; white-space: nowrap; }
.mm-fig .ax-verdict { min-height: 1.5em; font-weight: 600; }
@container (width < 560px) { .mm-fig .ax-verdict { min-height: 4.5em; } }
@media (prefers-reduced-motion: no-preference) { .ax-mixture div { transition: flex-basis 0.25s ease-out; } }
`;

const times = (terms) => terms.map(([a, b], i) => `${i ? " + " : ""}${fmt(a)}·${b < 0 ? `(${fmt(b)})` : fmt(b)}`).join("");
const scoreText = (x) => fmt(x, Math.abs(x) < 9.95 ? 2 : 1);

/** A table of buttons: one tab stop, arrow keys inside, and hovering chooses as well. */
function createTable(count, kind, caption, sums, onChoose) {
  const buttons = [];
  const names = Array.from({ length: count }, () => h("th", { scope: "col" }));
  const rows = Array.from({ length: count }, (_, i) => {
    const cells = Array.from({ length: count }, (_, j) => h("button", { type: "button", class: "ax-cell", onClick: () => onChoose(i, j), onMouseenter: () => onChoose(i, j), onFocus: () => onChoose(i, j), onKeydown: (event) => step(event, i, j) }));
    buttons.push(cells);
    const parts = { name: h("th", { scope: "row" }), sum: sums ? h("td", { class: "ax-sum" }) : null };
    return { ...parts, root: h("tr", {}, parts.name, cells.map((cell) => h("td", {}, cell)), parts.sum) };
  });
  const head = h("tr", {}, h("td", {}, h("span", { class: "mm-hidden" }, "query")), names, sums ? h("td", { class: "ax-sum" }, "sum") : null);
  const root = h("div", {}, h("p", { class: "ax-title" }, kind, h("span", {}, ` ${caption}`)),
    h("table", { class: "ax-table", "aria-label": kind }, h("thead", {}, head), h("tbody", {}, rows.map((row) => row.root))));

  function step(event, i, j) {
    const [down, right] = { ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1] }[event.key] || [];
    if (down === undefined) return;
    event.preventDefault();
    const bounded = (x) => Math.min(count - 1, Math.max(0, x));
    buttons[bounded(i + down)][bounded(j + right)].focus();
  }

  function draw(s, look) {
    s.tokens.forEach((token, i) => {
      names[i].textContent = token;
      names[i].classList.toggle("ax-here", i === s.column);
      rows[i].name.textContent = token;
      rows[i].name.classList.toggle("ax-here", i === s.row);
      if (sums) rows[i].sum.textContent = fmt(s.weights[i].reduce((a, b) => a + b, 0));
    });
    buttons.forEach((cells, i) => cells.forEach((cell, j) => {
      const { text, tone, part } = look(i, j);
      const chosen = i === s.row && j === s.column;
      const masked = s.causal && j > i;
      cell.className = `ax-cell${chosen ? " ax-chosen" : i === s.row ? " ax-row" : ""}${masked ? " ax-masked" : ""}`;
      cell.tabIndex = chosen ? 0 : -1;
      cell.style.setProperty("--ax-tone", `var(--mm-${tone})`);
      cell.style.setProperty("--ax-part", `${part}%`);
      cell.textContent = text;
      cell.setAttribute("aria-label", `${s.tokens[i]} reads ${s.tokens[j]}: ${text}`);
      cell.setAttribute("aria-pressed", chosen);
    }));
  }
  return { root, draw };
}

/** The products of all channels as bars, and their sum written out. */
function createDotProduct() {
  const title = h("p", { class: "ax-title" });
  const bars = h("div", { class: "ax-products", role: "img" });
  const written = h("p", { class: "ax-written" });
  const root = h("div", { class: "ax-wide" }, title, bars, written);

  function draw(s) {
    const [q, k] = [s.q[s.row], s.k[s.column]];
    const products = channelProducts(q, k);
    const [from, to] = [s.tokens[s.row], s.tokens[s.column]];
    const largest = Math.max(...products.map(Math.abs));
    const dot = s.dots[s.row][s.column];
    title.replaceChildren("The score ", h("b", { "data-tone": "accent" }, from), " · ", h("b", { "data-tone": "accent2" }, to), h("span", {}, ` a product from each of ${s.dim} channels, added`));
    bars.replaceChildren(...products.map((x) => {
      const height = (50 * Math.abs(x)) / largest; // percent of the strip
      const top = ((x > 0 ? 50 - height : 50) / (100 - height)) * 100;
      return h("i", { style: `--ax-tone: var(--mm-${x > 0 ? "accent" : "accent2"}); --ax-height: ${height.toFixed(1)}%; --ax-top: ${top.toFixed(1)}%` });
    }));
    bars.setAttribute("aria-label", `${products.filter((x) => x > 0).length} of ${s.dim} products are positive; the sum is ${fmt(dot)}`);
    const more = s.dim > WRITTEN_TERMS ? " + …" : "";
    const sum = `${times(q.slice(0, WRITTEN_TERMS).map((x, i) => [x, k[i]]))}${more} = ${fmt(dot)}`;
    const score = s.scaled ? `, and ${fmt(dot)} / √${s.dim} = ${fmt(s.scores[s.row][s.column])}` : " (not scaled)";
    const hidden = s.causal && s.column > s.row;
    written.textContent = `${sum}${score}${hidden ? "; it lies in the future, so the mask puts −∞ in its place" : ""}.`;
  }
  return { root, draw };
}

/** The chosen row's weights as lengths, and the vector they mix. */
function createMixture(count) {
  const title = h("p", { class: "ax-title" });
  const parts = Array.from({ length: count }, () => h("div", {}));
  const bar = h("div", { class: "ax-mixture", role: "img" }, parts);
  const written = h("p", { class: "ax-written" });
  const root = h("div", { class: "ax-wide" }, title, bar, written);

  function draw(s) {
    const weights = s.weights[s.row];
    title.replaceChildren("What ", h("b", { "data-tone": "accent" }, s.tokens[s.row]), " receives", h("span", {}, " the values, mixed by this row of weights"));
    parts.forEach((part, j) => {
      part.style.flexBasis = `${100 * weights[j]}%`;
      part.hidden = weights[j] < 0.005;
      part.textContent = weights[j] > 0.12 ? s.tokens[j] : "";
    });
    const terms = weights.map((w, j) => `${fmt(w)}·value(${s.tokens[j]})`).filter((_, j) => weights[j] >= 0.005);
    bar.setAttribute("aria-label", s.tokens.map((token, j) => `${token} ${fmt(weights[j])}`).join(", "));
    written.textContent = `${terms.join(" + ")} = (${s.outputs[s.row].map((x) => fmt(x)).join(", ")})`;
  }
  return { root, draw };
}

function xrayState(model) {
  const get = (name) => model.get(name);
  const s = { dim: get("head_dim"), scaled: get("scaled"), causal: get("causal"), rope: get("rope"), qkNorm: get("qk_norm"), base: get("rope_base"), eps: get("qk_norm_eps") };
  const given = ["query", "key", "value"].map(get);
  const order = get("order");
  const inOrder = (list) => (get("permuted") ? order.map((token) => list[token]) : list);
  const before = attentionStages(...given, s);
  const stages = get("permuted") ? attentionStages(...given.map(inOrder), s) : before;
  const change = get("permuted") ? largestChange(before.outputs, stages.outputs, order) : 0;
  return { ...s, ...stages, change, permuted: get("permuted"), row: get("row"), column: get("column"), tokens: inOrder(get("tokens")) };
}

function xrayVerdict(s) {
  if (s.permuted && s.change < 1e-9) return ["✓ Permuted: every token receives exactly what it received before.", "good"];
  if (s.permuted) return [`≠ Permuted: outputs change by up to ${fmt(s.change)}. ${s.rope ? "RoPE" : "The mask"}${s.rope && s.causal ? " and the mask tell" : " tells"} the head what stands where.`, "accent"];
  const largest = Math.max(...s.weights[s.row]);
  const token = s.tokens[s.row];
  if (s.causal && s.row === 0) return [`The first token has no past: "${token}" reads itself, with weight 1, whatever its score.`, "good"];
  if (largest > 0.95) return [`Saturated: "${token}" gives one token ${fmt(100 * largest, 1)} % of its weight, the others hardly count.`, "bad"];
  return [`"${token}" reads from several tokens; the largest weight is ${fmt(largest)}.`, "good"];
}

function renderXray({ model, el }) {
  const change = (values) => {
    Object.entries(values).forEach(([name, value]) => model.set(name, value));
    model.save_changes();
  };
  const choose = (row, column) => (row !== model.get("row") || column !== model.get("column")) && change({ row, column });
  const count = model.get("tokens").length;
  const scoreTable = createTable(count, "Scores", "before softmax", false, choose);
  const weightTable = createTable(count, "Weights", "after softmax", true, choose);
  const [product, mixture] = [createDotProduct(), createMixture(count)];
  const headDim = slider({ label: "head_dim D", min: 0, max: HEAD_DIMS.length - 1, step: 1, value: HEAD_DIMS.indexOf(model.get("head_dim")), format: (i) => fmt(HEAD_DIMS[i], 0), onInput: (i) => change({ head_dim: HEAD_DIMS[i] }) });
  const labels = { scaled: "divide by √D", causal: "causal mask", rope: "RoPE", qk_norm: "QK-norm", permuted: "permute" };
  const switches = Object.entries(labels).map(([name, label]) => [name, toggle({ label, checked: model.get(name), onChange: (on) => change({ [name]: on }) })]);
  const verdict = h("p", { class: "ax-verdict ax-wide", "aria-live": "polite" });
  const numbers = readout([]);
  const controls = h("div", { class: "mm-controls", style: "display: flex; flex-wrap: wrap; gap: 4px 18px; margin: 0 0 16px" }, switches.map(([, control]) => control.root));
  const root = h("div", { class: "mm-fig" }, h("style", {}, XRAY_CSS), headDim.root, controls,
    h("div", { class: "mm-stage ax-stage" }, scoreTable.root, weightTable.root, verdict, product.root, mixture.root), numbers.root,
    h("p", { class: "mm-note" }, "A row is a query, a column a key; choose any cell. The vectors are random, and one key (naps) is twice as long as the others."));

  function draw() {
    const s = xrayState(model);
    const seen = s.scores.flatMap((row, i) => row.filter((_, j) => !(s.causal && j > i)));
    const largest = Math.max(...seen.map(Math.abs));
    scoreTable.draw(s, (i, j) => {
      const x = s.scores[i][j];
      return { text: s.causal && j > i ? "−∞" : scoreText(x), tone: x > 0 ? "accent" : "accent2", part: (34 * Math.abs(x)) / largest };
    });
    weightTable.draw(s, (i, j) => ({ text: fmt(s.weights[i][j]), tone: "good", part: 40 * s.weights[i][j] }));
    product.draw(s);
    mixture.draw(s);
    headDim.set(HEAD_DIMS.indexOf(s.dim));
    switches.forEach(([name, control]) => control.set(model.get(name)));
    const [text, tone] = xrayVerdict(s);
    if (verdict.textContent !== text) verdict.textContent = text;
    verdict.dataset.tone = tone;
    const all = s.scores.flat();
    const mean = all.reduce((a, b) => a + b, 0) / all.length;
    const spread = Math.sqrt(all.reduce((sum, x) => sum + (x - mean) ** 2, 0) / all.length);
    const top = s.weights.map((row) => Math.max(...row));
    numbers.set([
      ["spread of the scores (std)", fmt(spread)],
      ["largest weight, mean of the rows", fmt(top.reduce((a, b) => a + b, 0) / count, 3), tone === "bad" ? "bad" : undefined],
      ["change by permuting", s.permuted ? fmt(s.change, 3) : "–"],
    ]);
  }

  return mount(el, root, { model, traits: SETTINGS, draw });
}

export default { render: renderXray };
