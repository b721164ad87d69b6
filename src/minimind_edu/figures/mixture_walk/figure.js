// MixtureWalk: a word's row goes past the router to its experts and back; then the rows of a whole text do.

import { NARROW, h, svg, fill, setAttributes, textAt, setSize, clamp, fmt, slider } from "../../web/kit/kit.js";
import { toggle, choice, namedOptions, optionsFor, announcement, readout } from "../../web/kit/kit.js";
import { controlsOf, setTraits, wordsOf, frame, mount } from "../../web/kit/kit.js";
import { createTransport } from "../../web/kit/transport.js";
import {
  vectorOf,
  shadesOfStrip,
  softmaxOf,
  variantOf,
  routesOf,
  placesOf,
  sharesOf,
  mixedOf,
  linesOf,
} from "./math.js";
import { mixtureWalkWords } from "./words.js";

const TRAITS = ["view", "step", "token", "trained", "top_k", "renormalize", "balanced"];
const LAST = { word: 6, text: 2 };
// The switches of a section are those of which it speaks.
const SWITCHES = {
  word: [],
  text: [],
  weights: ["view", "top_k", "renormalize"],
  load: ["trained", "balanced", "top_k"],
};
const BEAT = 1700; // milliseconds of a step that plays
const EXPERTS = 4;
const MOST = 2; // experts that a word may visit
const WIDEST = 760; // pixels

// Sizes, in pixels: of a word's box, of the rows in the boxes of experts, of strips.
const CHIP = { height: 24, line: 30, gap: 3, letter: 6.8, padding: 10 };
const LOW_CHIP = { height: 22, line: 26, gap: 2, letter: 6.1, padding: 8 };
const NUMBERS = 13; // of the experts, below a word
const PITCH = 13; // of the rows in a box
const STRIP = 9; // height
const SHADES = 6; // of a sign
const BARS = { broad: 50, narrow: 46 }; // height of 100 %

const moveTo = (node, x, y) => (node.style.transform = `translate(${x.toFixed(1)}px, ${y.toFixed(1)}px)`);

/** A vector as a strip of cells, x being its left end: cells of one shade are one path. */
function strip(vector, x, y, width, height = STRIP) {
  const shades = new Map();
  shadesOfStrip(vector, SHADES).forEach((shade, i) => {
    if (shade) shades.set(shade, `${shades.get(shade) ?? ""}M${i} 0h1.1v1H${i}z`);
  });
  const paths = [...shades].map(([shade, d]) => {
    const opacity = (Math.abs(shade) / SHADES).toFixed(2);
    return svg("path", { class: shade < 0 ? "mw-minus" : "mw-plus", d, "fill-opacity": opacity });
  });
  const scaled = `translate(${x.toFixed(1)} ${y}) scale(${(width / vector.length).toFixed(3)} ${height})`;
  const frame = svg("rect", { class: "mw-frame", x, y, width, height, rx: 1.5 });
  return svg("g", {}, svg("g", { transform: scaled }, paths), frame);
}

/** What the picture needs of the traits. */
function stateOf(model) {
  const traits = Object.fromEntries(TRAITS.map((name) => [name, model.get(name)]));
  const stored = model.get("stored");
  // Each may be set alone, by a link: a view has its own last step, and a word is seen at the end, without balancing.
  traits.step = Math.min(traits.step, LAST[traits.view]);
  if (traits.view === "word") Object.assign(traits, { trained: stored.stops.at(-1), balanced: false });
  const variant = variantOf(stored, traits.top_k, traits.renormalize, traits.balanced);
  const look = variant.looks[stored.stops.indexOf(traits.trained)];
  const routes = routesOf(look, traits.top_k);
  const { places, rows } = placesOf(routes, EXPERTS);
  const logits = variant.portrait?.logits[traits.token];
  const probabilities = logits && softmaxOf(logits);
  return {
    ...traits,
    tokens: stored.words,
    look,
    portrait: variant.portrait,
    logits,
    probabilities,
    routes,
    places,
    rows,
  };
}

/** What the sentence of a step needs. */
function described(s, words) {
  const route = s.routes[s.token];
  const isOne = s.top_k === 1;
  const weights = route.map(([, weight]) => fmt(weight, 2));
  const best = route[0][0];
  const percentOf = (expert) => Math.round(100 * (s.probabilities?.[expert] ?? 0));
  const most = s.rows.indexOf(Math.max(...s.rows));
  const rule = s.renormalize
    ? isOne
      ? words.keptOne
      : words.kept(weights.join(" + "))
    : isOne
      ? words.asIsOne(weights[0])
      : words.asIs(weights.join(", "));
  const whole = route.reduce((sum, [, weight]) => sum + weight, 0);
  return {
    word: s.tokens[s.token],
    best: best + 1,
    logit: fmt(s.logits?.[best] ?? 0, 2),
    percent: percentOf(best),
    guess: words.guess(
      route.map(([expert]) => percentOf(expert)),
      s.renormalize,
    ),
    chosen: words.experts(route.map(([expert]) => expert + 1).sort()),
    rule,
    sum: words.sum(route.map(([expert, weight]) => [expert + 1, fmt(weight, 2)])),
    left: isOne || s.renormalize ? "" : words.missing(fmt(whole, 2)),
    tokens: s.tokens.length,
    k: s.top_k,
    isOne,
    most: most + 1,
    mostRows: words.rows(s.rows[most]),
  };
}

/** The words of the text as boxes in lines, and where each is. */
function layChips(tokens, width, isNarrow) {
  const size = isNarrow ? LOW_CHIP : CHIP;
  const widths = tokens.map((word) => Math.max(isNarrow ? 20 : 22, word.length * size.letter + size.padding));
  const { places, lines } = linesOf(widths, size.gap, width);
  return { size, widths, places, lines };
}

/** Heights of the view of a word, in pixels from the top. */
function layWord(chips, isNarrow, isWhole) {
  const bars = BARS[isNarrow ? "narrow" : "broad"];
  const top = chips.lines * chips.size.line + 6;
  const y = { vector: top + 18 };
  y.copy = y.vector + STRIP + 14;
  y.row = y.copy + STRIP + 15;
  y.product = y.row + STRIP + 4;
  y.logit = y.product + STRIP + 14;
  y.bars = y.logit + 22 + bars;
  y.weight = y.bars + 16;
  y.box = y.weight + 7;
  y.boxEnd = y.box + (isNarrow ? 62 : 66);
  y.sum = y.boxEnd + 24;
  return { ...y, top, height: isWhole ? y.sum + STRIP + 20 : y.boxEnd + 4 };
}

/** Heights of the view of a text. */
function layText(chips, seats, { isNarrow, isCompact, isLoad }) {
  const numbers = isNarrow || isCompact ? 0 : NUMBERS;
  const inLine = chips.size.line + numbers;
  const top = chips.lines * inLine;
  const first = top + (isLoad ? 60 : 42); // the first seat
  const end = first + seats * PITCH + 4; // of the boxes
  const out = end + (isLoad ? 0 : isCompact ? 12 : 20); // the words below
  return { inLine, top, first, end, out, numbers, height: isLoad ? end + 4 : out + chips.lines * chips.size.line + 2 };
}

function createPicture(model, words, about, isCompact) {
  const root = svg("svg", { role: "group", class: "mw-still" }); // nothing moves before the reader asks
  const [back, fore, moving, over] = [svg("g", {}), svg("g", {}), svg("g", {}), svg("g", {})];
  const tokens = model.get("stored").words;
  const copies = tokens.map((word) =>
    Array.from({ length: MOST }, () => svg("g", { class: "mw-copy" }, svg("rect", {}), svg("text", {}, word))),
  );
  const travellers = Array.from({ length: MOST }, () => svg("g", { class: "mw-traveller" }));
  const bars = Array.from({ length: EXPERTS }, () => svg("rect", { class: "mw-bar", rx: 2 }));
  const loads = Array.from({ length: EXPERTS }, () => svg("rect", { class: "mw-load", height: 8, rx: 2 }));
  fill(moving, copies, travellers);
  fill(
    root,
    back,
    svg("g", { "data-sym": "weights" }, bars),
    svg("g", { "data-sym": "ffn" }, loads),
    fore,
    moving,
    over,
  );
  const follow = (token) => setTraits(model, { token });

  function chipOf(s, chips, i, y, { isIn }) {
    const [x] = chips.places[i];
    const isFollowed = i === s.token && !isCompact;
    const cls = `mw-chip${isFollowed ? " mw-followed" : ""}${isIn ? "" : " mw-slot"}`;
    const word = s.tokens[i];
    const [width, { height }] = [chips.widths[i], chips.size];
    const pressed = isIn &&
      !isCompact && {
        "data-word": i,
        role: "button",
        tabindex: 0,
        "aria-label": words.follow(word),
        "aria-pressed": String(isFollowed),
        onClick: () => follow(i),
        onKeydown: (event) => {
          if (event.key !== "Enter" && event.key !== " ") return;
          event.preventDefault();
          follow(i);
        },
      };
    return svg(
      "g",
      { class: cls, ...pressed },
      svg("rect", { x: x.toFixed(1), y, width: width.toFixed(1), height, rx: 4 }),
      isIn && wordOf(chips, word, i, y),
    );
  }

  const wordOf = (chips, word, i, y) =>
    textAt((chips.places[i][0] + chips.widths[i] / 2).toFixed(1), y + chips.size.height / 2 + 4.5, word, {
      anchor: "middle",
      cls: null,
      tone: "stream",
    });

  const sentenceOf = (s, chips, line) =>
    s.tokens.map((_, i) => chipOf(s, chips, i, 1 + chips.places[i][1] * line, { isIn: true }));

  function columnsOf(width, isNarrow) {
    const wide = width / EXPERTS;
    const inner = wide - (isNarrow ? 8 : 22);
    return { inner, left: (i) => i * wide + (wide - inner) / 2, middle: (i) => (i + 0.5) * wide };
  }

  /** The network in an expert's box: broader inside. */
  function networkOf(left, inner, y, height) {
    const [a, b, c, d] = [left + 0.28 * inner, left + 0.16 * inner, left + 0.84 * inner, left + 0.72 * inner];
    const [top, low] = [y, y + height];
    const [up, down] = [y + height * 0.36, y + height * 0.64];
    return svg("path", {
      class: "mw-network",
      d: `M${a} ${top}L${b} ${up}V${down}L${a} ${low}H${d}L${c} ${down}V${up}L${d} ${top}Z`,
    });
  }

  function drawWord(s, width, chips, columns, isNarrow) {
    const { portrait, token, step, logits, probabilities } = s;
    const high = BARS[isNarrow ? "narrow" : "broad"];
    const y = layWord(chips, isNarrow, about === "word");
    const route = s.routes[token];
    const weightOf = (i) => route.find(([expert]) => expert === i)?.[1];
    const answerOf = (i) => vectorOf(portrait.answers[token * s.top_k + route.findIndex(([expert]) => expert === i)]);
    const isOut = (i) => step >= 3 && weightOf(i) === undefined;
    const { inner } = columns;
    const x0 = (width - inner) / 2;
    const vector = vectorOf(portrait.vectors[token]);
    const [chipX, line] = chips.places[token];
    const chipMiddle = chipX + chips.widths[token] / 2;
    const chipEnd = line * chips.size.line + chips.size.height + 1;
    fill(
      back,
      svg("path", { class: "mw-way", d: `M${chipMiddle} ${chipEnd}V${y.top}H${width / 2}V${y.vector}` }),
      svg("g", { "data-sym": "stream" }, sentenceOf(s, chips, chips.size.line)),
    );
    const parts = [
      textAt(width / 2 + inner / 2 + 8, y.vector + STRIP, isNarrow ? "" : words.vector(s.tokens[token])),
      svg("g", { "data-sym": "stream" }, strip(vector, x0, y.vector, inner)),
    ];
    const fork = y.vector + STRIP + 7;
    const ends = Array.from(
      { length: EXPERTS },
      (_, i) => `M${width / 2} ${fork - 7}V${fork}H${columns.middle(i)}V${y.copy}`,
    );
    if (step >= 1) parts.push(svg("path", { class: "mm-level mw-fork", d: ends.join("") }));
    for (let i = 0; i < EXPERTS; i++) {
      const [left, middle] = [columns.left(i), columns.middle(i)];
      const isFaded = isOut(i) ? "mw-faded" : null;
      const row = vectorOf(portrait.rows[i]);
      const upper = [
        step >= 1 && strip(vector, left, y.copy, inner),
        textAt(middle, y.row - 4, words.rowOf(i + 1, isNarrow), { anchor: "middle" }),
        strip(row, left, y.row, inner),
        step >= 1 && [
          strip(
            vector.map((value, c) => value * row[c]),
            left,
            y.product,
            inner,
          ),
          textAt(middle, y.logit, words.logit(fmt(logits[i], 2), isNarrow), { anchor: "middle", cls: null }),
        ],
        step >= 2 &&
          textAt(middle, y.bars - probabilities[i] * high - 5, words.percent(Math.round(100 * probabilities[i])), {
            anchor: "middle",
            cls: null,
          }),
        svg("line", { class: "mm-level", x1: left, x2: left + inner, y1: y.bars, y2: y.bars }),
      ];
      const works = step >= 4 && !isOut(i);
      const kind = works ? " mw-works" : isOut(i) ? " mw-rests" : "";
      const boxed = y.boxEnd - y.box;
      const box = [
        svg("rect", { class: `mw-box${kind}`, x: left, y: y.box, width: inner, height: boxed, rx: 6 }),
        networkOf(left, inner, y.box + 17, boxed - 34),
        textAt(middle, y.box + boxed / 2 + 5, words.expert(i + 1), { anchor: "middle", cls: null, tone: "ffn" }),
      ];
      const share = step >= 3 && (isOut(i) ? words.left : words.weight(fmt(weightOf(i), 2)));
      const looks = isOut(i) ? { anchor: "middle" } : { anchor: "middle", cls: "mm-strong" };
      parts.push(
        svg("g", { class: isFaded }, upper),
        share && textAt(middle, y.weight - 2, share, looks),
        svg("g", { class: isFaded, "data-sym": "ffn" }, box),
      );
      if (step >= 5 && works) parts.push(strip(answerOf(i), left + 7, y.boxEnd - 4 - STRIP, inner - 14));
      if (step >= 6 && works) {
        const d = `M${middle} ${y.boxEnd}V${y.boxEnd + 12}H${width / 2}V${y.sum}`;
        parts.push(svg("path", { class: "mw-way mw-answer", d }));
      }
      const wide = Math.min(46, inner * 0.6);
      setAttributes(bars[i], {
        x: middle - wide / 2,
        y: y.bars - high,
        width: wide,
        height: high,
        class: `mw-bar ${isFaded ?? ""}`,
      });
      bars[i].style.transformOrigin = `${middle}px ${y.bars}px`;
      bars[i].style.transform = `scaleY(${(step >= 2 ? probabilities[i] : 0).toFixed(4)})`;
    }
    if (step >= 6) {
      const sum = mixedOf(route.map(([i, weight]) => [weight, answerOf(i)]));
      parts.push(
        strip(sum, x0, y.sum, inner),
        textAt(width / 2, y.sum + STRIP + 15, words.added, { anchor: "middle" }),
      );
    }
    fill(fore, parts);
    fill(over);
    travellers.forEach((node, at) => {
      const expert = route[at]?.[0];
      const isThere = expert !== undefined && step >= 4;
      fill(node, strip(vector, 0, 0, inner - 14));
      node.style.opacity = isThere ? 1 : 0;
      if (isThere) moveTo(node, columns.left(expert) + 7, y.box + 4);
      else moveTo(node, x0 + 7, y.vector);
    });
    return y.height;
  }

  /** The way of the word that is followed: to its experts, and back with its weights. */
  function wayOf(s, chips, columns, at) {
    const [x, line] = chips.places[s.token];
    const middle = x + chips.widths[s.token] / 2;
    return s.places[s.token].map(({ expert, seat }, choice) => {
      const there = columns.middle(expert);
      const y = at.first + (seat + 0.5) * PITCH;
      const from = line * at.inLine + chips.size.height + at.numbers;
      const to = at.out + line * chips.size.line;
      const weight = fmt(s.routes[s.token][choice][1], 2);
      return [
        svg("path", {
          class: "mw-way",
          d: `M${middle} ${from}C${middle} ${at.top + 30} ${there} ${at.top} ${there} ${y}`,
        }),
        s.step >= 2 && [
          svg("path", {
            class: "mw-way mw-answer",
            d: `M${there} ${y}C${there} ${at.end + 10} ${middle} ${at.end - 20} ${middle} ${to}`,
          }),
          textAt(there, at.end + 14, words.weight(weight), { anchor: "middle", cls: "mm-strong" }),
        ],
      ];
    });
  }

  /** Where the rows of an expert were before they went back. */
  function shadesOf(s, chips, columns, at) {
    return s.places.flatMap((pair, token) =>
      pair.map(({ expert, seat }) => {
        const width = chips.widths[token] - 4;
        const x = columns.middle(expert) - width / 2;
        return svg("rect", { class: "mw-shade", x, y: at.first + seat * PITCH, width, height: PITCH - 1, rx: 3 });
      }),
    );
  }

  function drawText(s, width, chips, columns, isNarrow) {
    const { step, rows, look } = s;
    const isLoad = about === "load";
    const seats = SWITCHES[about].length ? s.tokens.length : Math.max(...rows); // room for all settings
    const at = layText(chips, seats, { isNarrow, isCompact, isLoad });
    const even = at.first - 1 + ((s.tokens.length * s.top_k) / EXPERTS) * PITCH;
    const [parts, labels] = [[], []];
    for (let i = 0; i < EXPERTS; i++) {
      const [left, middle] = [columns.left(i), columns.middle(i)];
      const kind = step === 1 && rows[i] ? " mw-works" : step && !rows[i] ? " mw-rests" : "";
      const height = at.end - at.first + 4;
      parts.push(
        svg("rect", { class: `mw-box${kind}`, x: left, y: at.first - 4, width: columns.inner, height, rx: 6 }),
      );
      labels.push(
        textAt(middle, at.top + 16, words.expert(i + 1), { anchor: "middle", cls: "mm-halo", tone: "ffn" }),
        step >= 1 && textAt(middle, at.top + 32, words.rows(rows[i]), { anchor: "middle" }),
      );
      loads[i].style.display = isLoad ? "" : "none";
      if (!isLoad) continue;
      const long = columns.inner - 38;
      setAttributes(loads[i], { x: left, y: at.top + 41 });
      loads[i].style.width = `${((look.loads[i] / 100) * long).toFixed(1)}px`;
      labels.push(
        svg("rect", { class: "mw-rail", x: left, y: at.top + 41, width: long, height: 8, rx: 2 }),
        svg("path", { class: "mw-tick", d: `M${left + long / EXPERTS} ${at.top + 39}V${at.top + 51}` }),
        textAt(left + columns.inner, at.top + 49, words.percent(look.loads[i]), { anchor: "end", cls: "mm-strong" }),
      );
    }
    if (isLoad) parts.push(svg("path", { class: "mw-even", d: `M0 ${even}H${width}` }));
    if (step >= 1 && !isCompact) parts.push(wayOf(s, chips, columns, at));
    if (step >= 2) parts.push(shadesOf(s, chips, columns, at));
    if (step >= 1 && at.numbers) {
      s.routes.forEach((route, i) => {
        const [x, line] = chips.places[i];
        const numbers = route.map(([expert]) => expert + 1).join(" ");
        const y = line * at.inLine + chips.size.height + 12;
        parts.push(textAt((x + chips.widths[i] / 2).toFixed(1), y, numbers, { anchor: "middle", tone: "ffn" }));
      });
    }
    const below = (i) => at.out + chips.places[i][1] * chips.size.line;
    const slots = isLoad ? [] : s.tokens.map((_, i) => chipOf(s, chips, i, below(i), { isIn: false }));
    fill(back, svg("g", { "data-sym": "stream" }, sentenceOf(s, chips, at.inLine)));
    fill(fore, parts, labels, svg("g", { "data-sym": "stream" }, slots));
    fill(over, step >= 2 && s.tokens.map((word, i) => wordOf(chips, word, i, below(i))));
    copies.forEach((pair, i) => {
      const [x, line] = chips.places[i];
      const shares = sharesOf(s.routes[i]);
      pair.forEach((node, which) => {
        const place = s.places[i][which];
        const wide = chips.widths[i] - 4;
        const [box, text] = node.children;
        const isBack = place && step >= 2;
        const row = isBack ? chips.size.height - 4 : PITCH - 1;
        const [start, share] = shares[which] ?? [0, 1];
        box.style.width = `${(isBack ? share * wide : wide).toFixed(1)}px`;
        box.style.height = `${row}px`;
        setAttributes(box, { rx: isBack ? 1 : 3 });
        setAttributes(text, { x: wide / 2, y: (PITCH - 1) / 2 + 4, "text-anchor": "middle" });
        const isThere = place && step >= 1;
        text.style.display = isThere && !isBack ? "" : "none"; // the word itself stands in the text
        node.style.opacity = isThere ? 1 : 0;
        node.style.setProperty("--mw-turn", i);
        const names = [isBack && `mw-back mw-back-${which}`, i === s.token && !isCompact && "mw-followed"];
        setAttributes(node, { class: ["mw-copy", ...names.filter(Boolean)].join(" ") });
        if (isBack) moveTo(node, x + 2 + start * wide, below(i) + 2);
        else if (isThere) moveTo(node, columns.middle(place.expert) - wide / 2, at.first + place.seat * PITCH);
        else moveTo(node, x + 2, line * at.inLine + 6);
      });
    });
    return at.height;
  }

  function draw(s, given, sentence) {
    const width = Math.min(given, WIDEST);
    const isNarrow = width < NARROW;
    setAttributes(root, { "data-low": String(isNarrow) });
    const chips = layChips(s.tokens, width, isNarrow);
    const columns = columnsOf(width, isNarrow);
    const isWord = s.view === "word";
    for (const node of [...bars, ...travellers]) node.style.display = isWord ? "" : "none";
    for (const node of copies.flat()) node.style.display = isWord ? "none" : "";
    if (isWord) for (const node of loads) node.style.display = "none";
    // a word that is drawn anew keeps the focus
    const focused = root.getRootNode().activeElement?.getAttribute("data-word");
    const height = (isWord ? drawWord : drawText)(s, width, chips, columns, isNarrow);
    if (focused) root.querySelector(`[data-word="${focused}"]`)?.focus({ preventScroll: true });
    // both views of one figure are equally high
    const other = SWITCHES[about].includes("view")
      ? Math.max(
          layWord(chips, isNarrow, false).height,
          layText(chips, s.tokens.length, { isNarrow, isCompact, isLoad: false }).height,
        )
      : 0;
    setSize(root, width, Math.round(Math.max(height, other)), words.picture(sentence));
  }
  const release = () => root.classList.remove("mw-still");
  return { root, draw, release };
}

function renderWalk({ model, el }) {
  const isCompact = Boolean(model.get("compact"));
  const about = model.get("about");
  const all = wordsOf(mixtureWalkWords);
  const words = isCompact ? all : { ...all, title: all.titles[about], caption: all.captions[about] };
  const isLoad = about === "load" && !isCompact;
  const picture = createPicture(model, words, isCompact ? "text" : about, isCompact);
  const { bound, follow } = controlsOf(model, change);
  const transport = createTransport(words, go, { beat: BEAT, isCompact });
  const verdict = announcement("mm-verdict mw-verdict");
  const numbers = readout([]);
  const makers = {
    view: () => bound(choice, "view", { label: words.view, options: namedOptions(words.views) }),
    trained: () => bound(slider, "trained", { label: words.trained, stops: model.get("stored").stops }),
    top_k: () => bound(choice, "top_k", { label: words.topK, options: optionsFor([1, 2]) }),
    renormalize: () => bound(toggle, "renormalize", { label: words.renormalize }),
    balanced: () => bound(toggle, "balanced", { label: words.balanced }),
  };
  const switches = isCompact ? [] : SWITCHES[about].map((name) => makers[name]());
  const stage = h("div", { class: "mm-stage" }, picture);
  const isSwitched = !isCompact && switches.length > 0; // in place of steps
  const control = h(
    "div",
    {},
    isCompact ? null : verdict,
    h("div", { class: "mw-control" }, isSwitched ? switches : transport),
  );
  const root = frame(words, { stage, control, numbers: about === "weights" && !isCompact ? numbers : null }, isCompact);

  // A view is entered where weights are to be seen: a word when they are named, a text when its answers are back.
  function change(values) {
    picture.release();
    setTraits(model, values.view ? { step: 0 } : {}); // a step that every view has
    setTraits(model, values.view ? { ...values, step: values.view === "word" ? 3 : 2 } : values);
  }

  function go(direction) {
    picture.release();
    const { step, view } = stateOf(model);
    setTraits(model, { step: clamp(step + direction, 0, LAST[view]) });
  }

  function draw(width) {
    const s = stateOf(model);
    const given = described(s, words);
    const sentence = isLoad
      ? words.loads(given.most, given.mostRows, s.look.loads[given.most - 1], given.word, given.chosen)
      : words.steps[s.view][s.step](given);
    picture.draw(s, width, sentence);
    verdict.set(sentence);
    numbers.set([
      [words.moved, words.percent(s.look.moved)],
      [words.loss, fmt(s.look.loss, 2)],
    ]);
    transport.set(s.step, LAST[s.view]);
    follow();
  }
  return mount(el, root, { model, traits: TRAITS, boxes: [stage], draw, parts: [transport] });
}

export default { render: renderWalk };
