// AttentionXRay: every stage of one head. Scores and weights are two tables and never one.

import { h, clamp, setAttributes, setTraits, mount } from "./kit.js";
import { fmt, slider, toggle, readout, announcement } from "./kit.js";
import { attentionStages, channelProducts, largestChange } from "./attention_xray_math.js";

const HEAD_DIMS = [4, 8, 16, 32, 64, 128];
const SETTINGS = ["head_dim", "scaled", "causal", "rope", "qk_norm", "permuted", "row", "column"];
const SWITCH_LABELS = {
  scaled: "divide by √D",
  causal: "causal mask",
  rope: "RoPE",
  qk_norm: "QK-norm",
  permuted: "permute",
};
const WRITTEN_TERMS = 4;
const NOTE =
  "A row is a query, a column a key; choose any cell. The vectors are random, and one key (naps) is twice as long as " +
  "the others.";

const scoreText = (x) => fmt(x, Math.abs(x) < 9.95 ? 2 : 1);
const total = (numbers) => numbers.reduce((sum, x) => sum + x, 0);
const mean = (numbers) => total(numbers) / numbers.length;

/** "0.50·1.20 + 0.30·(−0.70)" */
function sumOfProducts(pairs) {
  const factor = (x) => (x < 0 ? `(${fmt(x)})` : fmt(x));
  return pairs.map(([a, b]) => `${fmt(a)}·${factor(b)}`).join(" + ");
}

/** A table of buttons: one tab stop, arrow keys inside, and hovering chooses as well. */
function createTable(count, kind, caption, sums, onChoose) {
  const buttons = [];
  const names = Array.from({ length: count }, () => h("th", { scope: "col" }));
  const createCell = (i, j) => {
    const choose = () => onChoose(i, j);
    const listeners = {
      onClick: choose,
      onMouseenter: choose,
      onFocus: choose,
      onKeydown: (event) => step(event, i, j),
    };
    return h("button", { type: "button", class: "ax-cell", ...listeners });
  };
  const rows = Array.from({ length: count }, (_, i) => {
    const cells = Array.from({ length: count }, (_, j) => createCell(i, j));
    buttons.push(cells);
    const parts = { name: h("th", { scope: "row" }), sum: sums ? h("td", { class: "ax-sum" }) : null };
    return {
      ...parts,
      root: h(
        "tr",
        {},
        parts.name,
        cells.map((cell) => h("td", {}, cell)),
        parts.sum,
      ),
    };
  });
  const corner = h("td", {}, h("span", { class: "mm-hidden" }, "query"));
  const head = h("tr", {}, corner, names, sums ? h("td", { class: "ax-sum" }, "sum") : null);
  const body = rows.map((row) => row.root);
  const table = h("table", { class: "ax-table", "aria-label": kind }, h("thead", {}, head), h("tbody", {}, body));
  const root = h("div", {}, h("p", { class: "ax-title" }, kind, h("span", {}, ` ${caption}`)), table);

  function step(event, i, j) {
    const way = { ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1] }[event.key];
    if (!way) return;
    event.preventDefault();
    const [row, column] = [i + way[0], j + way[1]].map((place) => clamp(place, 0, count - 1));
    buttons[row][column].focus();
  }

  function draw(s, look) {
    s.tokens.forEach((token, i) => {
      names[i].textContent = token;
      names[i].classList.toggle("ax-here", i === s.column);
      rows[i].name.textContent = token;
      rows[i].name.classList.toggle("ax-here", i === s.row);
      if (sums) rows[i].sum.textContent = fmt(total(s.weights[i]));
    });
    buttons.forEach((cells, i) => cells.forEach((cell, j) => drawCell(cell, s, i, j, look(i, j))));
  }

  function drawCell(cell, s, i, j, { text, tone, part }) {
    const chosen = i === s.row && j === s.column;
    cell.className = "ax-cell";
    cell.classList.toggle("ax-chosen", chosen);
    cell.classList.toggle("ax-row", i === s.row && !chosen);
    cell.classList.toggle("ax-masked", s.causal && j > i);
    cell.tabIndex = chosen ? 0 : -1;
    cell.style.setProperty("--ax-tone", `var(--mm-${tone})`);
    cell.style.setProperty("--ax-part", `${part}%`);
    cell.textContent = text;
    setAttributes(cell, { "aria-label": `${s.tokens[i]} reads ${s.tokens[j]}: ${text}`, "aria-pressed": chosen });
  }
  return { root, draw };
}

/** The products of all channels as bars, and their sum written out. */
function createDotProduct() {
  const title = h("p", { class: "ax-title" });
  const bars = h("div", { class: "ax-products", role: "img" });
  const written = h("p", { class: "ax-written" });
  const root = h("div", { class: "ax-wide" }, title, bars, written);

  function bar(product, largest) {
    const height = (50 * Math.abs(product)) / largest; // percent of the strip
    const top = ((product > 0 ? 50 - height : 50) / (100 - height)) * 100;
    const tone = product > 0 ? "accent" : "accent2";
    const [tall, below] = [height, top].map((percent) => `${percent.toFixed(1)}%`);
    return h("i", { style: `--ax-tone: var(--mm-${tone}); --ax-height: ${tall}; --ax-top: ${below}` });
  }

  function draw(s) {
    const [q, k] = [s.q[s.row], s.k[s.column]];
    const products = channelProducts(q, k);
    const largest = Math.max(...products.map(Math.abs));
    const dot = fmt(s.dots[s.row][s.column]);
    const from = h("b", { "data-tone": "accent" }, s.tokens[s.row]);
    const to = h("b", { "data-tone": "accent2" }, s.tokens[s.column]);
    const origin = h("span", {}, ` a product from each of ${s.dim} channels, added`);
    title.replaceChildren("The score ", from, " · ", to, origin);
    bars.replaceChildren(...products.map((product) => bar(product, largest)));
    const positive = products.filter((x) => x > 0).length;
    bars.setAttribute("aria-label", `${positive} of ${s.dim} products are positive; the sum is ${dot}`);
    const first = sumOfProducts(q.slice(0, WRITTEN_TERMS).map((x, i) => [x, k[i]]));
    const more = s.dim > WRITTEN_TERMS ? " + …" : "";
    const score = s.scaled ? `, and ${dot} / √${s.dim} = ${fmt(s.scores[s.row][s.column])}` : " (not scaled)";
    const hidden = s.causal && s.column > s.row ? "; it lies in the future, so the mask puts −∞ in its place" : "";
    written.textContent = `${first}${more} = ${dot}${score}${hidden}.`;
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
    const reader = h("b", { "data-tone": "accent" }, s.tokens[s.row]);
    title.replaceChildren("What ", reader, " receives", h("span", {}, " the values, mixed by this row of weights"));
    parts.forEach((part, j) => {
      part.style.flexBasis = `${100 * weights[j]}%`;
      part.hidden = weights[j] < 0.005;
      part.textContent = weights[j] > 0.12 ? s.tokens[j] : "";
    });
    const terms = weights.map((w, j) => `${fmt(w)}·value(${s.tokens[j]})`).filter((_, j) => weights[j] >= 0.005);
    const output = s.outputs[s.row].map((x) => fmt(x)).join(", ");
    bar.setAttribute("aria-label", s.tokens.map((token, j) => `${token} ${fmt(weights[j])}`).join(", "));
    written.textContent = `${terms.join(" + ")} = (${output})`;
  }
  return { root, draw };
}

function xrayState(model) {
  const get = (name) => model.get(name);
  const [permuted, order] = [get("permuted"), get("order")];
  const settings = {
    dim: get("head_dim"),
    scaled: get("scaled"),
    causal: get("causal"),
    rope: get("rope"),
    qkNorm: get("qk_norm"),
    base: get("rope_base"),
    eps: get("qk_norm_eps"),
  };
  const given = ["query", "key", "value"].map(get);
  const inOrder = (list) => (permuted ? order.map((token) => list[token]) : list);
  const before = attentionStages(...given, settings);
  const stages = permuted ? attentionStages(...given.map(inOrder), settings) : before;
  const change = permuted ? largestChange(before.outputs, stages.outputs, order) : 0;
  const [row, column, tokens] = [get("row"), get("column"), inOrder(get("tokens"))];
  return { ...settings, ...stages, change, permuted, row, column, tokens };
}

function xrayVerdict(s) {
  if (s.permuted && s.change < 1e-9)
    return ["✓ Permuted: every token receives exactly what it received before.", "good"];
  if (s.permuted) {
    const tellers = s.rope && s.causal ? "RoPE and the mask tell" : `${s.rope ? "RoPE" : "The mask"} tells`;
    return [`≠ Permuted: outputs change by up to ${fmt(s.change)}. ${tellers} the head what stands where.`, "accent"];
  }
  const largest = Math.max(...s.weights[s.row]);
  const token = `"${s.tokens[s.row]}"`;
  if (s.causal && s.row === 0) {
    return [`The first token has no past: ${token} reads itself, with weight 1, whatever its score.`, "good"];
  }
  if (largest > 0.95) {
    const share = `${fmt(100 * largest, 1)} %`;
    return [`Saturated: ${token} gives one token ${share} of its weight, the others hardly count.`, "bad"];
  }
  return [`${token} reads from several tokens; the largest weight is ${fmt(largest)}.`, "good"];
}

/** The slider and the switches. */
function createControls(model) {
  const headDim = slider({
    label: "head_dim D",
    min: 0,
    max: HEAD_DIMS.length - 1,
    step: 1,
    value: HEAD_DIMS.indexOf(model.get("head_dim")),
    format: (i) => fmt(HEAD_DIMS[i], 0),
    onInput: (i) => setTraits(model, { head_dim: HEAD_DIMS[i] }),
  });
  const switches = Object.entries(SWITCH_LABELS).map(([name, label]) => {
    const onChange = (on) => setTraits(model, { [name]: on });
    return [name, toggle({ label, checked: model.get(name), onChange })];
  });
  const set = () => {
    headDim.set(HEAD_DIMS.indexOf(model.get("head_dim")));
    switches.forEach(([name, control]) => control.set(model.get(name)));
  };
  const row = h(
    "div",
    { class: "mm-controls ax-switches" },
    switches.map(([, control]) => control.root),
  );
  return { roots: [headDim.root, row], set };
}

function xrayNumbers(s, tone) {
  const scores = s.scores.flat();
  const middle = mean(scores);
  const spread = Math.sqrt(mean(scores.map((x) => (x - middle) ** 2)));
  const largest = mean(s.weights.map((row) => Math.max(...row)));
  return [
    ["spread of the scores (std)", fmt(spread)],
    ["largest weight, mean of the rows", fmt(largest, 3), tone === "bad" ? "bad" : undefined],
    ["change by permuting", s.permuted ? fmt(s.change, 3) : "–"],
  ];
}

function renderXray({ model, el }) {
  const choose = (row, column) => {
    if (row !== model.get("row") || column !== model.get("column")) setTraits(model, { row, column });
  };
  const count = model.get("tokens").length;
  const scoreTable = createTable(count, "Scores", "before softmax", false, choose);
  const weightTable = createTable(count, "Weights", "after softmax", true, choose);
  const [product, mixture] = [createDotProduct(), createMixture(count)];
  const controls = createControls(model);
  const verdict = announcement("ax-verdict ax-wide");
  const numbers = readout([]);
  const parts = [scoreTable, weightTable, verdict, product, mixture];
  const stage = h(
    "div",
    { class: "mm-stage ax-stage" },
    parts.map((part) => part.root),
  );
  const root = h("div", { class: "mm-fig" }, controls.roots, stage, numbers.root, h("p", { class: "mm-note" }, NOTE));

  function draw() {
    const s = xrayState(model);
    const isHidden = (i, j) => s.causal && j > i;
    const seen = s.scores.flatMap((row, i) => row.filter((_, j) => !isHidden(i, j)));
    const largest = Math.max(...seen.map(Math.abs));
    scoreTable.draw(s, (i, j) => {
      const x = s.scores[i][j];
      const text = isHidden(i, j) ? "−∞" : scoreText(x);
      return { text, tone: x > 0 ? "accent" : "accent2", part: (34 * Math.abs(x)) / largest };
    });
    weightTable.draw(s, (i, j) => ({ text: fmt(s.weights[i][j]), tone: "good", part: 40 * s.weights[i][j] }));
    product.draw(s);
    mixture.draw(s);
    controls.set();
    const [text, tone] = xrayVerdict(s);
    verdict.set(text, tone);
    numbers.set(xrayNumbers(s, tone));
  }

  return mount(el, root, { model, traits: SETTINGS, draw });
}

export default { render: renderXray };
