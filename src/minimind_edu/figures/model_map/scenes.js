// What the model map shows at each of its six levels, drawn for a stage of w by h pixels. A scene has a root, the
// portal that leads to the next level, and perhaps something that moves when the reader arrives.

import { WIDE, svg, textAt, fmt, grouped } from "../../web/kit/kit.js";
import { MAP_LEVELS, leadsTo } from "./math.js";

const STREAM_WIDTH = 6;

const box = (x, y, w, h, cls = "mp-box", rx = 7) => svg("rect", { x, y, width: w, height: h, rx, class: cls });
const wire = (d, cls = "mp-wire") => svg("path", { d, class: cls });
const label = (x, y, text, cls = "mp-name", anchor = "middle") => textAt(x, y, text, { anchor, cls });
const streamLine = (d) => [
  svg("path", { d, class: "mp-stream", "stroke-width": STREAM_WIDTH }),
  svg("path", { d, class: "mp-flow" }),
];

// The arrow's head at (x, y), pointing right or, with a quarter turn, down or up.
function tip(x, y, degrees = 0) {
  return svg("path", {
    class: "mp-tip",
    d: "M-8 -5 L0 0 L-8 5 Z",
    transform: `translate(${x} ${y}) rotate(${degrees})`,
  });
}

function plus(x, y) {
  const cross = svg("path", { d: `M${x - 6} ${y}H${x + 6}M${x} ${y - 6}V${y + 6}`, class: "mp-cross" });
  return svg("g", {}, svg("circle", { cx: x, cy: y, r: 11, class: "mp-plus" }), cross);
}

// A part that can be pressed: its shapes, room for a finger around them, a ring for the focus, and "you are here".
function mapPart(ctx, name, { tone, sym, hit, portal = false }, ...nodes) {
  const { words, here } = ctx;
  const title = words.names[name];
  const isHere = Boolean(here) && (portal ? leadsTo(name, here) : name === here);
  const spoken = portal ? words.opens(title) : words.tells(title);
  const area = { x: hit.x, y: hit.y, width: hit.w, height: hit.h, rx: 8 };
  return svg(
    "g",
    {
      class: `mp-part${isHere ? " mp-here" : ""}`,
      role: "button",
      tabindex: 0,
      "aria-label": isHere ? words.isHere(spoken) : spoken,
      "data-part": name,
      "data-tone": tone,
      "data-sym": sym,
    },
    svg("rect", { ...area, class: "mp-hit" }),
    nodes,
    svg("rect", { ...area, class: "mp-ring" }),
    isHere ? svg("circle", { cx: hit.x + hit.w - 4, cy: hit.y + 4, r: 6, class: "mp-pin" }) : null,
  );
}

// A table with rows and columns that nobody counts.
function tableGlyph(x, y, w, h, rows) {
  const lines = Array.from({ length: rows - 1 }, (_, i) => `M${x} ${y + (h * (i + 1)) / rows}h${w}`).join("");
  return [box(x, y, w, h, "mp-box", 4), wire(lines, "mp-grid")];
}

function modelScene(w, h, ctx) {
  const { words, sizes, shapes, small } = ctx;
  const line = Math.round(0.53 * h);
  const tall = 0.44 * h;
  const top = line - tall / 2;
  const bottom = line + tall / 2;
  const [tableX, tableW] = small ? [0.08 * w, 0.1 * w] : [0.11 * w, 0.07 * w];
  const headX = small ? 0.83 * w : 0.82 * w;
  const [from, to] = small ? [0.25 * w, 0.71 * w] : [0.25 * w, 0.71 * w];
  const normX = small ? 0.765 * w : 0.765 * w;
  const step = (to - from) / sizes.layers;
  const slab = { w: 0.78 * step, h: tall };
  const [above, under] = [top - 12, bottom + 20];

  const tokens = ctx.example.tokens.map((token, i) => {
    const y = line + (i / (ctx.example.tokens.length - 1) - 0.5) * (small ? 85 : 120);
    return small
      ? svg("rect", { x: 2, y: y - 4, width: 10, height: 8, rx: 2, class: "mp-token" })
      : label(0.045 * w, y + 4, token, "mp-word");
  });
  const slabs = Array.from({ length: sizes.layers }, (_, i) => {
    const x = from + i * step + (step - slab.w) / 2;
    const inner = (tone, part, at) =>
      svg("rect", {
        x: x + slab.w * at,
        y: line - tall * part,
        width: slab.w * 0.3,
        height: tall * 0.2,
        rx: Math.min(4, slab.w * 0.1),
        class: "mp-hint",
        "data-tone": tone,
      });
    return svg(
      "g",
      { "data-block": i },
      box(x, top, slab.w, slab.h, "mp-slab", Math.min(8, slab.w / 4)),
      inner("v", 0.34, 0.12),
      inner("ffn", 0.34, 0.58),
    );
  });
  const portals = slabs.map((_, i) => {
    const x = from + i * step + (step - slab.w) / 2;
    const height = (slab.w * h) / w;
    return { x, y: line - BLOCK_LINE * height, w: slab.w, h: height };
  });
  const bars = [0.35, 0.9, 0.25, 0.6, 0.15].map((size, i) => {
    const x = headX + tableW + (small ? 5 : 22);
    const room = w - x - (small ? 3 : 0.04 * w);
    return svg("rect", { x, y: line - 30 + i * 13, width: size * room, height: 8, rx: 2, class: "mp-token" });
  });
  const arc = small ? 8 : 12;
  const tableMiddle = tableX + tableW / 2;
  const headMiddle = headX + tableW / 2;
  const tied = sizes.tied
    ? svg(
        "g",
        {},
        wire(
          `M${tableMiddle} ${above - 18}C${tableMiddle} ${arc} ${headMiddle} ${arc} ${headMiddle} ${above - 18}`,
          "mp-dashed",
        ),
        label(w / 2, small ? 30 : 34, words.tied, "mp-sub mm-halo mp-halo"),
      )
    : null;
  const loop = h - (small ? 12 : 16);
  const root = svg(
    "g",
    {},
    tied,
    small ? label(0, line - 57, words.ids, "mp-sub", "start") : label(0.045 * w, line - 82, words.tokens, "mp-sub"),
    tokens,
    small ? null : [wire(`M${0.075 * w} ${line}H${tableX - 8}`), tip(tableX - 4, line)],
    mapPart(
      ctx,
      "stream",
      { tone: "stream", sym: "stream", hit: { x: from - 4, y: bottom + 4, w: to - from + 8, h: small ? 42 : 44 } },
      streamLine(`M${tableX + tableW} ${line}H${headX}`),
      label((from + to) / 2, under + 2, words.stream),
      label((from + to) / 2, under + 19, shapes.stream, "mp-shape"),
    ),
    mapPart(
      ctx,
      "embedding",
      { tone: "stream", sym: "embed", hit: { x: tableX - 6, y: top - 6, w: tableW + 12, h: tall + 12 } },
      tableGlyph(tableX, top, tableW, tall, 9),
      label(small ? tableX - 14 : tableMiddle, above, words.embedding, "mp-name", small ? "start" : "middle"),
      small ? null : label(tableMiddle, under, `${grouped(sizes.vocabulary)} × ${sizes.hidden}`, "mp-shape"),
    ),
    mapPart(
      ctx,
      "block",
      { tone: "stream", sym: "stream", portal: true, hit: { x: from - 2, y: top - 4, w: to - from + 4, h: tall + 8 } },
      slabs,
      label((from + to) / 2, above, words.blocks(sizes.layers)),
    ),
    // again, over the blocks: the line runs through them, it does not end there
    svg("path", { d: `M${from} ${line}H${to}`, class: "mp-stream mp-through", "stroke-width": STREAM_WIDTH }),
    svg("path", { d: `M${from} ${line}H${to}`, class: "mp-flow mp-through" }),
    mapPart(
      ctx,
      "norm",
      { tone: "norm", sym: "norm", hit: { x: normX - 14, y: line - tall * 0.36, w: 28, h: tall * 0.72 } },
      box(normX - 5, line - tall * 0.3, 10, tall * 0.6, "mp-box", 4),
      label(normX, small ? line + tall * 0.3 + 17 : line - tall * 0.3 - 12, words.norm),
    ),
    mapPart(
      ctx,
      "logits",
      { tone: "stream", sym: "logits", hit: { x: headX - 6, y: top - 6, w: w - headX + 2, h: tall + 12 } },
      tableGlyph(headX, top, tableW, tall, 9),
      bars,
      label(small ? w - 2 : headMiddle, above, words.logits, "mp-name", small ? "end" : "middle"),
      small ? null : label(headMiddle, under, shapes.logits, "mp-shape"),
    ),
    mapPart(
      ctx,
      "generation",
      { tone: "stream", hit: { x: 0.2 * w, y: loop - 14, w: 0.6 * w, h: 26 } },
      wire(`M${w - 8} ${line + 40}V${loop}H${small ? 7 : 0.045 * w}V${line + 3.4 * (small ? 17 : 24)}`, "mp-dashed"),
      tip(small ? 7 : 0.045 * w, line + 3.2 * (small ? 17 : 24), -90),
      label(w / 2, loop + 4, words.next, "mp-sub mm-halo mp-halo"),
    ),
  );
  return { root, portals, portal: portals[Math.floor(portals.length / 2)] };
}

const BLOCK_LINE = 0.8; // of the height: where the stream runs in the scene of a block

function blockScene(w, h, ctx) {
  const { words, sizes, shapes, small } = ctx;
  const line = Math.round(BLOCK_LINE * h);
  const [boxTop, boxH] = [0.12 * h, 0.33 * h];
  const bottom = boxTop + boxH;
  const normY = (bottom + line) / 2 - 14;
  const boxW = small ? 0.43 * w : 0.33 * w;
  const detours = (small ? [0.02, 0.53] : [0.1, 0.57]).map((x) => x * w);
  const detour = (x) => ({ up: x + 0.25 * boxW, down: x + 0.8 * boxW });
  const branch = (x, tone) => {
    const { up, down } = detour(x);
    return svg("g", { "data-tone": tone }, wire(`M${down} ${bottom}V${line - 12}`), tip(down, line - 12, 90));
  };
  const norm = (x, i) => {
    const { up } = detour(x);
    const nw = small ? 52 : 84;
    return mapPart(
      ctx,
      "norm",
      { tone: "norm", sym: "norm", hit: { x: up - nw / 2 - 4, y: normY - 5, w: nw + 8, h: 38 } },
      wire(`M${up} ${line}V${normY + 28}M${up} ${normY}V${bottom + 8}`, "mp-wire mp-of-stream"),
      tip(up, bottom + 2, -90),
      svg("circle", { cx: up, cy: line, r: 5, class: "mp-tap" }),
      box(up - nw / 2, normY, nw, 28),
      label(up, normY + 19, words.norm),
    );
  };
  const [a, f] = detours;
  const experts = sizes.moe ? words.expertsIn : words.experts;
  const triple = (x, y, size) =>
    ["q", "k", "v"].map((name, i) =>
      svg("rect", { x: x + i * size * 1.35, y, width: size, height: size, rx: 3, class: "mp-hint", "data-tone": name }),
    );
  const portal = { x: a, y: boxTop, w: boxW, h: boxH };
  const nameY = boxTop + boxH * 0.42;
  const root = svg(
    "g",
    {},
    mapPart(
      ctx,
      "stream",
      { tone: "stream", sym: "stream", hit: { x: 0.2 * w, y: line + 14, w: 0.6 * w, h: h - line - 16 } },
      streamLine(`M0 ${line}H${w}`),
      label(w / 2, line + (small ? 28 : 34), words.stream),
      label(w / 2, line + (small ? 45 : 53), shapes.stream, "mp-shape"),
    ),
    branch(a, "v"),
    branch(f, "ffn"),
    norm(a),
    norm(f),
    plus(detour(a).down, line),
    plus(detour(f).down, line),
    mapPart(
      ctx,
      "attention",
      { tone: "v", sym: "attn", portal: true, hit: portal },
      box(a, boxTop, boxW, boxH),
      label(a + boxW / 2, nameY, words.attention),
      label(a + boxW / 2, nameY + 19, words.heads(sizes.heads), "mp-sub"),
      triple(a + boxW / 2 - 20, nameY + 32, 11),
    ),
    mapPart(
      ctx,
      "experts",
      { tone: "ffn", hit: { x: f + 6, y: boxTop - 36, w: boxW + 6, h: 34 } },
      box(f + 9, boxTop - 9, boxW, boxH, sizes.moe ? "mp-box" : "mp-ghost"),
      label(f + boxW / 2 + 8, boxTop - 17, experts, "mp-sub"),
    ),
    mapPart(
      ctx,
      "ffn",
      { tone: "ffn", sym: "ffn", hit: { x: f, y: boxTop, w: boxW, h: boxH } },
      box(f, boxTop, boxW, boxH),
      label(f + boxW / 2, nameY, words.ffn),
      label(f + boxW / 2, nameY + 19, `${sizes.hidden} → ${sizes.inner} → ${sizes.hidden}`, "mp-sub"),
    ),
  );
  return { root, portal };
}

function attentionScene(w, h, ctx) {
  const { words, sizes, shapes, small } = ctx;
  const rows = { q: 0.22 * h, k: 0.52 * h, v: 0.78 * h };
  const boxH = small ? 40 : 52;
  const stream = h - (small ? 14 : 22);
  const busX = small ? 12 : 0.05 * w;
  const projX = small ? 22 : 0.085 * w;
  const projW = small ? 34 : 0.075 * w;
  const ropeX = small ? 84 : 0.25 * w;
  const r = small ? 12 : 17;
  const [cacheX, cacheW] = small ? [112, 44] : [0.345 * w, 0.12 * w];
  const cacheTop = rows.k - boxH / 2 - 8;
  const cacheBottom = rows.v + boxH / 2 + 8;
  const group = sizes.heads / sizes.kv_heads;
  const gridX = small ? 178 : 0.56 * w;
  const gridW = small ? 84 : 0.26 * w;
  const gridY = 0.14 * h;
  const gridH = 0.66 * h;
  const tile = Math.min(gridW / group, gridH / sizes.kv_heads) * 0.84;
  const [stepX, stepY] = [gridW / group, gridH / sizes.kv_heads];
  const outX = small ? w - 28 : 0.87 * w;
  const outW = small ? 26 : 0.06 * w;
  const middle = 0.5 * h;
  const gridCenterX = gridX + gridW / 2;

  const headTile = (i) => {
    const [row, column] = [Math.floor(i / group), i % group];
    const x = gridX + column * stepX + (stepX - tile) / 2;
    const y = gridY + row * stepY + (stepY - tile) / 2;
    return { x, y, w: tile, h: tile };
  };
  const heads = Array.from({ length: sizes.heads }, (_, i) => {
    const { x, y } = headTile(i);
    const p = tile * 0.16;
    return svg(
      "g",
      { "data-head": i },
      box(x, y, tile, tile, "mp-box", Math.min(6, tile / 6)),
      svg("path", { d: `M${x + p} ${y + p}V${y + tile - p}H${x + tile - p}Z`, class: "mp-hint", "data-tone": "v" }),
    );
  });
  const portals = heads.map((_, i) => headTile(i));
  const project = (name, count) =>
    svg(
      "g",
      { "data-tone": name, "data-sym": name },
      wire(`M${busX} ${rows[name]}H${projX - 3}`, "mp-wire mp-of-stream"),
      box(projX, rows[name] - boxH / 2, projW, boxH),
      label(projX + projW / 2, rows[name] + (small ? 5 : -2), words[name]),
      small ? null : label(projX + projW / 2, rows[name] + 16, `${count} × ${sizes.head_dim}`, "mp-shape"),
    );
  const dial = (name, degrees) =>
    svg(
      "g",
      { "data-tone": name },
      svg("circle", { cx: ropeX, cy: rows[name], r, class: "mp-dial" }),
      svg("path", {
        d: `M0 0H${r - 3}`,
        class: "mp-arrow",
        transform: `translate(${ropeX} ${rows[name]}) rotate(${degrees})`,
      }),
    );
  const cacheRight = cacheX + cacheW;
  const fanX = gridX - (small ? 8 : 20);
  const fan = (name, offset) =>
    Array.from({ length: sizes.kv_heads }, (_, i) => {
      const y = gridY + (i + 0.5) * stepY + offset;
      return `M${cacheRight} ${rows[name]}C${fanX} ${rows[name]} ${cacheRight} ${y} ${fanX + (small ? 6 : 16)} ${y}`;
    }).join("");
  const cells = ["k", "v"].map((name) =>
    Array.from({ length: small ? 3 : 6 }, (_, i) => {
      const size = small ? 8 : 11;
      const x = cacheX + (small ? 6 : 12) + i * (size + (small ? 3 : 4));
      return svg("rect", {
        x,
        y: rows[name] - size,
        width: size,
        height: 2 * size,
        rx: 2,
        class: "mp-hint",
        "data-tone": name,
      });
    }),
  );
  const cacheMiddle = cacheX + cacheW / 2;
  const between = (rows.k + rows.v) / 2;
  const root = svg(
    "g",
    {},
    streamLine(`M0 ${stream}H${w}`),
    svg("circle", { cx: busX, cy: stream, r: 5, class: "mp-tap" }),
    wire(`M${busX} ${stream}V${rows.q}`, "mp-wire mp-of-stream"),
    svg(
      "g",
      { "data-tone": "norm", "data-sym": "norm" },
      box(busX - (small ? 9 : 11), rows.v + 20, small ? 18 : 22, 8, "mp-box", 4),
    ),
    svg(
      "g",
      { "data-tone": "v" },
      wire(`M${outX + outW / 2} ${gridY + gridH}V${stream - 12}`),
      tip(outX + outW / 2, stream - 12, 90),
    ),
    plus(outX + outW / 2, stream),
    project("q", sizes.heads),
    project("k", sizes.kv_heads),
    project("v", sizes.kv_heads),
    svg("g", { "data-tone": "q" }, wire(`M${projX + projW} ${rows.q}H${gridX - 6}`), tip(gridX - 2, rows.q)),
    svg("g", { "data-tone": "k" }, wire(`M${projX + projW} ${rows.k}H${cacheX}`), wire(fan("k", -5))),
    svg("g", { "data-tone": "v" }, wire(`M${projX + projW} ${rows.v}H${cacheX}`), wire(fan("v", 5))),
    mapPart(
      ctx,
      "rope",
      {
        tone: "norm",
        sym: "theta",
        hit: { x: ropeX - r - 8, y: rows.q - r - 24, w: 2 * r + 16, h: rows.k - rows.q + 2 * r + 32 },
      },
      dial("q", -50),
      dial("k", -15),
      label(ropeX, rows.q - r - 9, words.rope),
    ),
    mapPart(
      ctx,
      "cache",
      { tone: "stream", sym: "cache", hit: { x: cacheX, y: cacheTop, w: cacheW, h: cacheBottom - cacheTop } },
      box(cacheX, cacheTop, cacheW, cacheBottom - cacheTop),
      cells,
      small
        ? words.cache.map((word, i) => label(cacheMiddle, between + (i ? 13 : -1), word))
        : label(cacheMiddle, between + 5, words.cache.join(" ")),
    ),
    mapPart(
      ctx,
      "head",
      { tone: "v", sym: "head", portal: true, hit: { x: gridX - 4, y: gridY - 4, w: gridW + 8, h: gridH + 8 } },
      heads,
      label(gridCenterX, gridY - 12, words.heads(sizes.heads)),
    ),
    mapPart(
      ctx,
      "groups",
      {
        tone: "stream",
        sym: "group",
        hit: { x: gridCenterX - Math.max(70, gridW / 2), y: gridY + gridH + 10, w: Math.max(140, gridW), h: 30 },
      },
      wire(`M${gridX} ${gridY + gridH + 8}v6h${gridW}v-6`),
      label(gridCenterX, gridY + gridH + 31, words.groups(group), "mp-sub"),
    ),
    mapPart(
      ctx,
      "output",
      { tone: "v", sym: "output", hit: { x: outX - 4, y: gridY - 4, w: outW + 8, h: gridH + 8 } },
      wire(`M${gridX + gridW + 4} ${middle}H${outX - 6}`),
      tip(outX - 2, middle),
      box(outX, gridY, outW, gridH, "mp-box", 5),
      label(outX + outW / 2, middle + 4, words.output),
    ),
  );
  return { root, portals, portal: portals[Math.min(1, portals.length - 1)] };
}

function headScene(w, h, ctx) {
  const { words, sizes, example, small } = ctx;
  const count = example.tokens.length;
  const size = small ? 96 : Math.min(0.56 * h, 0.27 * w);
  const cell = size / count;
  const top = small ? 46 : 50;
  const names = small ? 57 : 64;
  const gap = small ? 16 : 0.1 * w;
  const valueW = small ? 22 : 0.07 * w;
  const all = names + 2 * size + gap + valueW + (small ? 14 : 0.06 * w);
  const left = (w - all) / 2 + names;
  const second = left + size + gap;
  const valueX = second + size + (small ? 10 : 0.045 * w);
  const largest = Math.max(...example.scores.flat().map(Math.abs));
  const { reader, read } = example;
  const cellX = left + (read + 0.5) * cell;

  const cells = (x0, values, tone, share, isShown) =>
    Array.from({ length: count * count }, (_, at) => {
      const [i, j] = [Math.floor(at / count), at % count];
      const [x, y] = [x0 + j * cell, top + i * cell];
      const value = values[i][j];
      const hidden = value === undefined;
      return [
        svg("rect", {
          x: x + 0.5,
          y: y + 0.5,
          width: cell - 1,
          height: cell - 1,
          rx: 2,
          class: hidden ? "mp-masked" : "mp-cell",
          "data-tone": hidden ? null : tone(value),
          "data-sign": hidden || tone(value) ? null : value > 0 ? "plus" : "minus",
          style: hidden ? null : `--mp-share: ${Math.round(42 * share(value))}%`,
        }),
        isShown && !hidden && cell >= 29
          ? label(x + cell / 2, y + cell / 2 + 4, fmt(value, Math.abs(value) < 9.95 ? 1 : 0), "mp-value")
          : null,
      ];
    });
  const chosen = (x0) => {
    const [x, y] = [x0 + read * cell, top + reader * cell];
    return svg("rect", { x, y, width: cell, height: cell, rx: 3, class: "mp-chosen" });
  };
  const rowNames = example.tokens.map((token, i) =>
    label(left - 6, top + (i + 0.5) * cell + 4, token, `mp-word${i === reader ? " mp-strong" : ""}`, "end"),
  );
  // the words across are those down the side; only the one that is read has room for its name
  const columnNames = small ? null : label(cellX, top - 8, example.tokens[read], "mp-word mp-strong");

  // the chosen score taken apart: one bar for each pair of channels
  const pairs = example.products.length;
  const stripTop = top + size + (small ? 46 : 52);
  const stripH = h - stripTop - 6;
  const [stripX, stripW] = small ? [4, w - 8] : [left - names, all];
  const unit = stripH / 2 / Math.max(...example.products.map(Math.abs));
  const step = stripW / pairs;
  const base = stripTop + stripH / 2;
  const bars = example.products.map((product, i) =>
    svg("rect", {
      x: stripX + i * step + step * 0.15,
      y: product > 0 ? base - product * unit : base,
      width: step * 0.7,
      height: Math.max(1, Math.abs(product) * unit),
      rx: 1,
      class: "mp-bar",
      "data-sign": product > 0 ? "plus" : "minus",
    }),
  );
  const thisX = stripX + example.pair * step;
  const portal = { x: thisX, y: stripTop, w: step, h: stripH };
  const writtenPairs = small
    ? words.pairsShort(pairs)
    : words.pairs(example.tokens[reader], example.tokens[read], pairs);
  const root = svg(
    "g",
    {},
    svg("g", { "data-tone": "q", "data-sym": "q" }, rowNames),
    svg("g", { "data-tone": "k", "data-sym": "k" }, columnNames),
    mapPart(
      ctx,
      "scores",
      {
        tone: "stream",
        sym: "score",
        hit: { x: left - 2, y: top - (small ? 24 : 44), w: size + 4, h: size + (small ? 26 : 46) },
      },
      label(left + size / 2, top - (small ? 10 : 28), words.scores),
      cells(
        left,
        example.scores,
        () => null,
        (x) => Math.abs(x) / largest,
        !small,
      ),
      chosen(left),
    ),
    svg(
      "g",
      {},
      wire(`M${left + size + 5} ${top + size / 2}H${second - 9}`, "mp-wire mp-of-stream"),
      tip(second - 4, top + size / 2),
      small ? null : label(left + size + gap / 2, top + size / 2 - 10, words.softmax, "mp-sub"),
    ),
    mapPart(
      ctx,
      "weights",
      {
        tone: "stream",
        sym: "weights",
        hit: { x: second - 2, y: top - (small ? 24 : 44), w: size + 4, h: size + (small ? 26 : 46) },
      },
      label(second + size / 2, top - (small ? 10 : 28), words.weightsOf),
      cells(
        second,
        example.weights,
        () => "stream",
        (x) => x,
        !small,
      ),
      chosen(second),
    ),
    mapPart(
      ctx,
      "values",
      {
        tone: "v",
        sym: "v",
        hit: { x: valueX - 3, y: top - (small ? 24 : 44), w: valueW + 6, h: size + (small ? 26 : 46) },
      },
      label(valueX + valueW / 2, top - (small ? 10 : 28), words.values),
      example.tokens.map((_, i) => box(valueX, top + i * cell + 1, valueW, cell - 2, "mp-box", 3)),
      small ? null : [wire(`M${valueX + valueW + 4} ${top + size / 2}H${w - 10}`), tip(w - 4, top + size / 2)],
    ),
    mapPart(
      ctx,
      "pair",
      {
        tone: "stream",
        sym: "theta",
        portal: true,
        hit: { x: stripX - 2, y: stripTop - 26, w: stripW + 4, h: stripH + 30 },
      },
      wire(`M${cellX} ${top + size + 1}V${stripTop - 24}`, "mp-dashed"),
      label(stripX + stripW / 2, stripTop - 9, writtenPairs, "mp-sub"),
      wire(`M${stripX} ${base}H${stripX + stripW}`, "mp-grid"),
      bars,
      svg("rect", { x: thisX - 1, y: stripTop - 2, width: step + 2, height: stripH + 4, rx: 3, class: "mp-chosen" }),
    ),
  );
  return { root, portal };
}

const degreesOf = (radians) => (radians * 180) / Math.PI;
const angleOf = ([x, y]) => Math.atan2(y, x);
const lengthOf = ([x, y]) => Math.hypot(x, y);

// An arrow from a center, and what follows it when it rotates; y grows upwards, as in the books.
function arrowFrom(cx, cy, scale, tone, cls = "mp-arrow") {
  const shaft = svg("path", { class: cls });
  const head = svg("path", { class: "mp-tip", d: "M-10 -6 L0 0 L-10 6 Z" });
  const root = svg("g", { "data-tone": tone }, shaft, cls === "mp-arrow" ? head : null);
  const set = (length, angle) => {
    const [x, y] = [cx + scale * length * Math.cos(angle), cy - scale * length * Math.sin(angle)];
    shaft.setAttribute("d", `M${cx} ${cy}L${x} ${y}`);
    head.setAttribute("transform", `translate(${x} ${y}) rotate(${-degreesOf(angle)})`);
    return [x, y];
  };
  return { root, set };
}

function arcPath(cx, cy, r, from, to) {
  const at = (angle) => `${cx + r * Math.cos(angle)} ${cy - r * Math.sin(angle)}`;
  const large = Math.abs(to - from) > Math.PI ? 1 : 0;
  return `M${at(from)}A${r} ${r} 0 ${large} ${to > from ? 0 : 1} ${at(to)}`;
}

function pairScene(w, h, ctx) {
  const { words, example, small } = ctx;
  const { q, k, angle, reader, read } = example;
  const R = small ? 0.27 * h : 0.4 * h;
  const [cx, cy] = small ? [R + 8, R + 10] : [0.27 * w, 0.5 * h];
  const scale = (R * 0.94) / Math.max(lengthOf(q), lengthOf(k));
  const arms = [
    { tone: "q", vector: q, position: reader, radius: 0.42 * R, token: example.tokens[reader], text: words.query },
    { tone: "k", vector: k, position: read, radius: 0.28 * R, token: example.tokens[read], text: words.key },
  ].map((arm) => ({
    ...arm,
    before: arrowFrom(cx, cy, scale, arm.tone, "mp-before"),
    now: arrowFrom(cx, cy, scale, arm.tone),
    arc: svg("path", { class: "mp-arc", "data-tone": arm.tone }),
  }));
  const arrive = (t) => {
    for (const { vector, position, radius, before, now, arc } of arms) {
      const start = angleOf(vector);
      const end = start + t * position * angle;
      before.set(lengthOf(vector), start);
      now.set(lengthOf(vector), end);
      arc.setAttribute("d", arcPath(cx, cy, radius, start, end));
    }
  };
  arrive(1);
  const textX = small ? 2 * R + 24 : 0.52 * w;
  const lineY = small ? 28 : 0.15 * h;
  const textOf = ({ tone, position, token, text }, i) => {
    const y = lineY + i * (small ? 66 : 62);
    return svg(
      "g",
      { "data-tone": tone, "data-sym": tone },
      label(textX, y, text(token), "mp-name mp-toned", "start"),
      (small ? words.rotatedShort : words.rotated)(position, fmt(degreesOf(position * angle), 0)).map((line, at) =>
        label(textX, y + 19 + 17 * at, line, "mp-sub", "start"),
      ),
    );
  };
  const boxX = small ? w / 2 - 84 : textX;
  const portal = { x: boxX, y: small ? h - 48 : 0.52 * h - 14, w: small ? 168 : 0.22 * w, h: small ? 42 : 60 };

  // other pairs, each at its own speed
  const dials = small ? 4 : 5;
  const dialR = small ? 12 : 16;
  const dialX = small ? 2 * R + 24 : textX;
  const dialY = small ? h - 84 : 0.85 * h;
  const miniatures = Array.from({ length: dials }, (_, i) => {
    const x = small ? w / 2 + (i - (dials - 1) / 2) * 42 : dialX + dialR + i * 46;
    const turn = degreesOf(reader * example.speeds[i]);
    return svg(
      "g",
      {},
      svg("circle", { cx: x, cy: dialY, r: dialR, class: "mp-dial" }),
      svg("path", {
        d: `M0 0H${dialR - 3}`,
        class: "mp-arrow",
        transform: `translate(${x} ${dialY}) rotate(${-turn})`,
      }),
    );
  });
  const dialsX = small ? w / 2 - 84 : dialX;
  const dialsW = small ? 168 : 46 * dials;
  const root = svg(
    "g",
    {},
    svg("circle", { cx, cy, r: R, class: "mp-dial" }),
    wire(`M${cx - R} ${cy}H${cx + R}M${cx} ${cy - R}V${cy + R}`, "mp-grid"),
    arms.map(({ before, arc, now }) => [before.root, arc, now.root]),
    arms.map(textOf),
    mapPart(
      ctx,
      "product",
      { tone: "stream", sym: "score", portal: true, hit: portal },
      box(portal.x, portal.y, portal.w, portal.h),
      label(portal.x + portal.w / 2, portal.y + portal.h / 2 + 5, words.compare),
    ),
    mapPart(
      ctx,
      "frequencies",
      { tone: "stream", sym: "theta", hit: { x: dialsX - 4, y: dialY - dialR - 26, w: dialsW + 8, h: 2 * dialR + 32 } },
      label(small ? w / 2 : dialX, dialY - dialR - 10, words.speeds, "mp-sub", small ? "middle" : "start"),
      miniatures,
    ),
  );
  return { root, portal, arrive };
}

function productScene(w, h, ctx) {
  const { words, sizes, example, small } = ctx;
  const [q, k] = [example.rotated_q, example.rotated_k];
  const digits = small ? 2 : 3; // three are enough to compute it by hand
  const factor = (x) => (x < 0 ? `(${fmt(x, digits)})` : fmt(x, digits));
  const R = small ? 0.16 * h : 0.25 * h;
  const [cx, cy] = small ? [R + 6, R + 8] : [0.17 * w, 0.3 * h];
  const scale = (R * 0.95) / Math.max(lengthOf(q), lengthOf(k));
  const arms = [
    ["q", q],
    ["k", k],
  ].map(([tone, vector]) => {
    const arm = arrowFrom(cx, cy, scale, tone);
    arm.set(lengthOf(vector), angleOf(vector));
    return arm.root;
  });
  const x0 = small ? 2 * R + 26 : 0.36 * w;
  const y0 = small ? 30 : 0.17 * h;
  const line = small ? 27 : 0.14 * h;
  const products = [q[0] * k[0], q[1] * k[1]];
  const tone = (name, text) => svg("tspan", { class: `mp-${name}` }, text);
  const equation = (i) =>
    svg(
      "text",
      { x: x0, y: y0 + i * line, class: "mp-number" },
      tone("q", fmt(q[i], digits)),
      " × ",
      tone("k", factor(k[i])),
      ` ${small ? "≈" : "="} ${fmt(products[i])}`,
    );
  const sum = products[0] + products[1];
  const stripTop = small ? 0.5 * h : 0.66 * h;
  const stripH = small ? 0.2 * h : 0.2 * h;
  const stripW = small ? w - 8 : 0.56 * w;
  const stripX = small ? 4 : 0.05 * w;
  const unit = stripH / 2 / Math.max(...example.products.map(Math.abs));
  const step = stripW / example.products.length;
  const base = stripTop + stripH / 2;
  const bars = example.products.map((product, i) =>
    svg("rect", {
      x: stripX + i * step + step * 0.15,
      y: product > 0 ? base - product * unit : base,
      width: step * 0.7,
      height: Math.max(1, Math.abs(product) * unit),
      rx: 1,
      class: i === example.pair ? "mp-bar mp-this" : "mp-bar",
      "data-sign": product > 0 ? "plus" : "minus",
    }),
  );
  const written = small
    ? [
        [w / 2, h - 44, "middle"],
        [w / 2, h - 18, "middle"],
      ]
    : [
        [0.65 * w, base - 8, "start"],
        [0.65 * w, base + 24, "start"],
      ];
  const root = svg(
    "g",
    {},
    svg("circle", { cx, cy, r: R, class: "mp-dial" }),
    arms,
    equation(0),
    equation(1),
    wire(`M${x0} ${y0 + line + 11}h${small ? 150 : 250}`, "mp-grid"),
    svg(
      "text",
      { x: x0, y: y0 + 2 * line + 4, class: "mp-number" },
      svg("tspan", { class: "mp-strong" }, `${fmt(sum)}`),
      svg("tspan", { class: "mp-sub", dx: 10 }, words.thisPair(example.pair)),
    ),
    label(stripX + (example.pair + 0.5) * step, stripTop - 9, words.thisPair(example.pair), "mp-sub"),
    wire(`M${stripX} ${base}H${stripX + stripW}`, "mp-grid"),
    bars,
    label(
      written[0][0],
      written[0][1],
      words.allPairs(example.products.length, fmt(example.dot)),
      "mp-number",
      written[0][2],
    ),
    svg(
      "text",
      { x: written[1][0], y: written[1][1], class: "mp-number", "text-anchor": written[1][2] },
      `${words.divided(sizes.head_dim)} = `,
      svg("tspan", { class: "mp-strong" }, fmt(example.score)),
    ),
  );
  return { root, portal: null };
}

// All scenes for a stage of this size.
export function mapScenes(w, h, ctx) {
  const shapes = Object.fromEntries(Object.entries(ctx.flows).map(([part, flow]) => [part, flow.shapes.at(-1)]));
  const whole = { ...ctx, shapes, small: w < WIDE };
  const draw = [modelScene, blockScene, attentionScene, headScene, pairScene, productScene];
  return draw.map((scene, level) => {
    const made = scene(w, h, whole);
    made.root.setAttribute("class", "mp-scene");
    made.root.setAttribute("data-level", MAP_LEVELS[level]);
    return made;
  });
}
