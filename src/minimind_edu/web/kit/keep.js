// What a reader takes along of a figure: a picture that stands alone, SVG with every style written out and PNG drawn
// from it, and its address. Pages load this only when a reader asks for it.
//
// Drawings that are SVG stay what they are. Words, boxes and bars that are HTML become SVG text and rectangles where
// the browser has put them, so any program can open the file: a foreignObject, which html-to-image and its kin write,
// only a browser draws, and Safari never onto a canvas. dom-to-svg does the same as this in sixty kilobytes.

const NAMESPACE = "http://www.w3.org/2000/svg";
const SCALE = 2; // pixels of the PNG for each of the page

// What a part of a drawing gets from the page's styles: with the values that need not be said. The first ones are
// inherited.
const INHERITED = {
  fill: "rgb(0, 0, 0)",
  "fill-opacity": "1",
  "fill-rule": "nonzero",
  stroke: "none",
  "stroke-opacity": "1",
  "stroke-width": "1px",
  "stroke-dasharray": "none",
  "stroke-dashoffset": "0px",
  "stroke-linecap": "butt",
  "stroke-linejoin": "miter",
  "font-family": "",
  "font-size": "",
  "font-style": "normal",
  "font-weight": "400",
  "letter-spacing": "normal",
  "text-anchor": "start",
  "dominant-baseline": "auto",
  "paint-order": "normal",
};
const OWN = { opacity: "1", "clip-path": "none", mask: "none", "text-decoration-line": "none" };
const LEFT_OUT = /^(?:class|style|role|tabindex|focusable|data-.*|aria-.*|on.*)$/;

function part(tag, attrs = {}, ...children) {
  const node = document.createElementNS(NAMESPACE, tag);
  for (const [name, value] of Object.entries(attrs)) if (value !== null) node.setAttribute(name, value);
  node.append(...children);
  return node;
}

// The names of fonts, and one that every machine has.
const familyOf = (text) =>
  [text.replaceAll('"', "'"), ...(/(serif|monospace)$/.test(text) ? [] : ["sans-serif"])].join(", ");

const round = (x) => Math.round(100 * x) / 100;

// Any color of CSS, as #rrggbb and how opaque it is: few programs know oklab().
const pixel = Object.assign(document.createElement("canvas"), { width: 1, height: 1 }).getContext("2d", {
  willReadFrequently: true,
});
const colors = new Map();
function colorOf(text) {
  if (!colors.has(text)) {
    pixel.clearRect(0, 0, 1, 1);
    pixel.fillStyle = text;
    pixel.fillRect(0, 0, 1, 1);
    const [red, green, blue, alpha] = pixel.getImageData(0, 0, 1, 1).data;
    const hex = [red, green, blue].map((x) => x.toString(16).padStart(2, "0")).join("");
    colors.set(text, { hex: `#${hex}`, alpha: round(alpha / 255) });
  }
  return colors.get(text);
}

// fill or stroke, and its opacity, as attributes.
function paint(name, text, opacity = 1) {
  if (text === "none" || text.startsWith("url(")) return { [name]: text.replaceAll('"', "") };
  const { hex, alpha } = colorOf(text);
  const seen = round(alpha * opacity);
  return seen ? { [name]: hex, [`${name}-opacity`]: seen === 1 ? null : seen } : { [name]: "none" };
}

// Drawings that are SVG

function inlined(from, to, above) {
  const style = getComputedStyle(from);
  // the ring of a handle is not drawn but lights up: for a hand that is near, or once, to show that it moves
  if (style.display === "none" || from.matches(".mm-ring")) return to.remove();
  for (const { name } of [...to.attributes]) if (LEFT_OUT.test(name)) to.removeAttribute(name);
  const now = {};
  for (const [name, plain] of Object.entries({ ...INHERITED, ...OWN })) {
    now[name] = style.getPropertyValue(name);
    const given = name in OWN ? plain : (above[name] ?? plain);
    if (now[name] === given) to.removeAttribute(name);
    else if (name === "font-family") to.setAttribute(name, familyOf(now[name]));
    else to.setAttribute(name === "text-decoration-line" ? "text-decoration" : name, now[name].replaceAll('"', "'"));
  }
  for (const name of ["fill", "stroke"]) {
    if (now[name] === (above[name] ?? INHERITED[name]) && now[`${name}-opacity`] === (above[`${name}-opacity`] ?? "1"))
      continue;
    const painted = paint(name, now[name], Number(now[`${name}-opacity`]));
    to.removeAttribute(`${name}-opacity`);
    for (const [key, value] of Object.entries(painted)) if (value !== null) to.setAttribute(key, value);
    now[`${name}-painted`] = true;
  }
  if (from.localName === "text" && !from.children.length && from.textContent.trim()) {
    // another font, where this one is missing, takes as much room
    to.setAttribute("textLength", round(from.getComputedTextLength()));
    to.setAttribute("lengthAdjust", "spacingAndGlyphs");
  }
  if (from.localName === "stop") {
    const { hex, alpha } = colorOf(style.stopColor);
    to.setAttribute("stop-color", hex);
    to.setAttribute("stop-opacity", round(alpha * Number(style.stopOpacity)));
  }
  if (style.visibility !== "visible") to.setAttribute("visibility", "hidden");
  const isMoved = style.transform !== "none" && !from.hasAttribute("transform") && from.parentNode.getScreenCTM;
  if (isMoved) {
    const { a, b, c, d, e, f } = from.parentNode.getScreenCTM().inverse().multiply(from.getScreenCTM());
    to.setAttribute("transform", `matrix(${[a, b, c, d, e, f].map((x) => Math.round(1e5 * x) / 1e5).join(" ")})`);
  }
  const children = [...to.children];
  [...from.children].forEach((child, i) => inlined(child, children[i], now));
}

function drawing(node, at) {
  const copy = node.cloneNode(true);
  inlined(node, copy, {});
  const { width, height } = node.getBoundingClientRect();
  const overflow = getComputedStyle(node).overflow === "visible" ? "visible" : null;
  const box = { x: at.x, y: at.y, width: round(width), height: round(height), overflow };
  for (const [name, value] of Object.entries(box)) if (value !== null) copy.setAttribute(name, value);
  return copy;
}

// What is HTML

// Each line of a text where it stands. A browser tells of every piece where it is; pieces side by side are one text.
function linesOf(node) {
  const lines = [];
  const range = document.createRange();
  for (const { 0: word, index } of node.data.matchAll(/[\u2e80-\uffef]|[^\s\u2e80-\uffef]+/g)) {
    range.setStart(node, index);
    range.setEnd(node, index + word.length);
    for (const box of range.getClientRects()) {
      if (!box.width) continue;
      const line = lines.at(-1);
      const isBroken = range.getClientRects().length > 1; // inside a word: as a whole, in the first of its boxes
      if (line && Math.abs(line.box.top - box.top) < 2 && !isBroken) {
        line.text += node.data.slice(line.end, index) + word;
        line.right = box.right;
      } else lines.push({ text: word, box, right: box.right, end: 0 });
      lines.at(-1).end = index + word.length;
      if (isBroken) break;
    }
  }
  return lines;
}

const measuring = document.createElement("canvas").getContext("2d");

// How far below the top of a line of this font its letters stand.
function baselineIn(height, style) {
  // not style.font: with tabular numbers there is no such short form
  measuring.font = `${style.fontStyle} ${style.fontWeight} ${style.fontSize} ${style.fontFamily}`;
  const { fontBoundingBoxAscent, fontBoundingBoxDescent } = measuring.measureText("x");
  const [up, down] = [fontBoundingBoxAscent, fontBoundingBoxDescent].map(Math.round);
  return (height - up - down) / 2 + up;
}

function inFont(style) {
  return {
    ...paint("fill", style.color),
    "font-family": familyOf(style.fontFamily),
    "font-size": style.fontSize,
    "font-weight": style.fontWeight === "400" ? null : style.fontWeight,
    "font-style": style.fontStyle === "normal" ? null : style.fontStyle,
    "text-decoration": style.textDecorationLine === "none" || isRuled(style) ? null : style.textDecorationLine,
  };
}

// An underline of its own width, which SVG has no word for.
const isRuled = (style) => style.textDecorationLine === "underline" && style.textDecorationThickness.endsWith("px");

function ruleBelow({ x, y, textLength }, style) {
  const wide = pixels(style.textDecorationThickness);
  const top = y + pixels(style.textUnderlineOffset) + wide / 2;
  const stroke = { ...paint("stroke", style.textDecorationColor), "stroke-width": wide };
  return part("line", { x1: x, y1: top, x2: x + textLength, y2: top, ...stroke });
}

function wordsOn(node, style, at) {
  return linesOf(node).flatMap(({ text, box, right }) => {
    const [x, y] = at(box.left, box.top + baselineIn(box.height, style));
    const place = { x, y, textLength: round(right - box.left) };
    const attrs = { ...inFont(style), ...place, lengthAdjust: "spacingAndGlyphs" };
    const words = part("text", attrs, text.replace(/\s+/g, " "));
    return isRuled(style) ? [words, ruleBelow(place, style)] : [words];
  });
}

const pixels = (text) => Number.parseFloat(text) || 0;

function rectangle(box, at, attrs, grow = 0) {
  const [x, y] = at(box.left - grow, box.top - grow);
  const [width, height] = [box.width + 2 * grow, box.height + 2 * grow].map((size) => round(Math.max(0, size)));
  return part("rect", { x, y, width, height, ...attrs });
}

// A name for what a drawing refers to: a page may hold several drawings.
const newId = () => `mm-${Math.random().toString(36).slice(2, 8)}`;

// A layer of a background: one color that fills a part of the box, two that pass into each other, or stripes.
function layerOn(box, style, at) {
  const { backgroundImage: image } = style;
  const found = [...image.matchAll(/(?:rgba?|color|oklab|oklch|lab)\([^()]*\)/g)].map(([text]) => text);
  const isStriped = image.startsWith("repeating-linear-gradient");
  const color = isStriped ? found.findLast((text) => colorOf(text).alpha) : found[0];
  if (!color || !image.includes("linear-gradient")) return [];
  if (isStriped) {
    const lengths = [...image.matchAll(/([\d.]+)px/g)].map(([, size]) => Number(size));
    const [period, id] = [Math.max(...lengths), newId()];
    const sizes = { id, width: period, height: period, patternUnits: "userSpaceOnUse" };
    const wide = Math.max(1, period - Math.max(...lengths.filter((size) => size < period)));
    const stripe = part("rect", { width: wide, height: period, ...paint("fill", color) });
    const pattern = part("pattern", { ...sizes, patternTransform: "rotate(45)" }, stripe);
    return [part("defs", {}, pattern), rectangle(box, at, { fill: `url(#${id})` })];
  }
  if (image.startsWith("linear-gradient(to right")) {
    const id = newId();
    const stops = found.map((text, i) => {
      const { hex, alpha } = colorOf(text);
      return part("stop", { offset: i / (found.length - 1), "stop-color": hex, "stop-opacity": alpha });
    });
    return [part("defs", {}, part("linearGradient", { id }, ...stops)), rectangle(box, at, { fill: `url(#${id})` })];
  }
  const along = (text, whole) => {
    const found = [...text.matchAll(/(-?[\d.]+)(px|%)/g)].map(([, n, unit]) => (unit === "%" ? (whole * n) / 100 : +n));
    return Math.max(...found); // of max(1px, 76%)
  };
  const [wide, tall = "auto"] = style.backgroundSize.match(/[a-z]+\([^)]*\)|\S+/g);
  const width = wide === "auto" ? box.width : along(wide, box.width);
  const height = tall === "auto" ? box.height : along(tall, box.height);
  const [right, down = "0%"] = style.backgroundPosition.split(" ");
  const left = box.left + along(right, right.endsWith("%") ? box.width - width : 0);
  const top = box.top + along(down, down.endsWith("%") ? box.height - height : 0);
  return [rectangle({ left, top, width, height }, at, paint("fill", color))];
}

const placeOf = ({ left, top, width, height }) => ({ left, top, width, height });

// Background, border and ring of a box.
function boxOn(node, style, at, box = node.getBoundingClientRect()) {
  if (!box.width || !box.height) return [];
  const radius = Math.min(pixels(style.borderTopLeftRadius), box.height / 2, box.width / 2);
  const corner = style.borderTopLeftRadius.endsWith("%") ? Math.min(box.width, box.height) / 2 : radius;
  const rounding = (grow) => ({ rx: corner ? round(Math.max(0, corner + grow)) : null });
  const found = [];
  const fill = paint("fill", style.backgroundColor);
  if (fill.fill !== "none") found.push(rectangle(box, at, { ...fill, ...rounding(0) }));
  if (style.backgroundImage !== "none") found.push(...layerOn(box, style, at));
  const [, ring, spread, isInset] = style.boxShadow.match(/^(.*\)) 0px 0px 0px ([\d.]+)px( inset)?$/) ?? [];
  if (ring) {
    const grow = (isInset ? -0.5 : 0.5) * spread;
    const stroke = { fill: "none", ...paint("stroke", ring), "stroke-width": spread };
    found.push(rectangle(box, at, { ...stroke, ...rounding(grow) }, grow));
  }
  const [, edge, width] = style.boxShadow.match(/^(.*\)) ([\d.]+)px 0px 0px 0px inset$/) ?? [];
  if (edge) found.push(rectangle({ ...placeOf(box), width: pixels(width) }, at, paint("fill", edge)));
  const sides = ["Top", "Right", "Bottom", "Left"].map((side) => {
    const isDrawn = !["none", "hidden"].includes(style[`border${side}Style`]);
    const width = isDrawn ? pixels(style[`border${side}Width`]) : 0;
    return { width, color: style[`border${side}Color`], kind: style[`border${side}Style`] };
  });
  const [first, ...others] = sides;
  const lined = ({ width, color, kind }) => ({
    ...paint("stroke", color),
    "stroke-width": width,
    "stroke-dasharray": { dashed: `${2 * width} ${2 * width}`, dotted: `${width} ${width}` }[kind] ?? null,
  });
  if (first.width && others.every((edge) => edge.width === first.width && edge.color === first.color)) {
    const attrs = { fill: "none", ...lined(first), ...rounding(-first.width / 2) };
    found.push(rectangle(box, at, attrs, -first.width / 2));
    return found;
  }
  const { left, right, top, bottom } = box;
  const ends = [
    [left, top, right, top, 0, 1],
    [right, top, right, bottom, -1, 0],
  ];
  ends.push([left, bottom, right, bottom, 0, -1], [left, top, left, bottom, 1, 0]);
  sides.forEach((side, i) => {
    if (!side.width || paint("stroke", side.color).stroke === "none") return;
    const [x1, y1, x2, y2, inX, inY] = ends[i];
    const half = side.width / 2;
    const [[fromX, fromY], [toX, toY]] = [at(x1 + inX * half, y1 + inY * half), at(x2 + inX * half, y2 + inY * half)];
    found.push(part("line", { x1: fromX, y1: fromY, x2: toX, y2: toY, ...lined(side) }));
  });
  return found;
}

// What a style puts in front: a sign, or a square that stands on the line.
function beforeOn(node, box, style, at) {
  const before = getComputedStyle(node, "::before");
  const sign = before.content.match(/^"(.*?)"/)?.[1];
  if (sign === undefined || before.position !== "static" || before.display === "none") return [];
  const left = box.left + pixels(style.borderLeftWidth) + pixels(style.paddingLeft) + pixels(before.marginLeft);
  const line = Math.min(box.height, pixels(style.lineHeight) || box.height);
  const [x, y] = at(left, box.top + baselineIn(line, before));
  if (sign) return [part("text", { ...inFont(before), x, y }, sign)];
  const [width, height] = [pixels(before.width), pixels(before.height)];
  return [part("rect", { x, y: round(y - height), width, height, ...paint("fill", before.backgroundColor) })];
}

// A bar that a style puts on a box, at a place of its own.
function barsOn(node, box, style, at) {
  return ["::before", "::after"].flatMap((name) => {
    const bar = getComputedStyle(node, name);
    if (bar.content !== '""' || bar.position !== "absolute" || bar.display === "none") return [];
    const left = box.left + pixels(style.borderLeftWidth) + pixels(bar.left);
    const top = box.top + pixels(style.borderTopWidth) + pixels(bar.top);
    const fill = paint("fill", bar.backgroundColor);
    const size = { width: pixels(bar.width), height: pixels(bar.height) };
    return fill.fill === "none" ? [] : [rectangle({ left, top, ...size }, at, fill)];
  });
}

// A slider as a track with a thumb, a switch as a pill with a knob.
function inputOn(node, style, at) {
  const box = node.getBoundingClientRect();
  const middle = box.top + box.height / 2;
  const color = (name) => style.getPropertyValue(name).trim();
  const disk = (x, r, attrs) => {
    const [cx, cy] = at(x, middle);
    return part("circle", { cx, cy, r, ...attrs });
  };
  const resolved = (name) => {
    const probe = document.createElement("i");
    probe.style.color = `var(${name})`;
    node.parentNode.append(probe);
    const found = getComputedStyle(probe).color;
    probe.remove();
    return found;
  };
  if (node.type === "range") {
    const share = (node.value - node.min) / (node.max - node.min || 1);
    const x = box.left + 9 + share * (box.width - 18);
    const track = { left: box.left, top: middle - 2, width: box.width, height: 4 };
    const done = { ...track, width: (box.width * pixels(color("--mm-fill"))) / 100 };
    return [
      rectangle(track, at, { rx: 2, ...paint("fill", resolved("--mm-line")) }),
      rectangle(done, at, { rx: 2, ...paint("fill", resolved("--mm-tone")) }),
      disk(x, 8, {
        ...paint("fill", resolved("--mm-panel")),
        ...paint("stroke", resolved("--mm-tone")),
        "stroke-width": 2,
      }),
    ];
  }
  if (node.role !== "switch") return boxOn(node, style, at);
  const knob = getComputedStyle(node, "::before");
  const r = pixels(knob.width) / 2;
  const x = box.left + pixels(style.borderLeftWidth) + pixels(knob.left) + r;
  return [...boxOn(node, style, at), disk(x, r, paint("fill", knob.backgroundColor))];
}

function walk(node, at, inside = null) {
  if (node.nodeType === Node.TEXT_NODE) return inside ? wordsOn(node, inside, at) : [];
  if (node.nodeType !== Node.ELEMENT_NODE) return [];
  const style = getComputedStyle(node);
  if (style.display === "none" || style.opacity === "0" || style.clipPath.startsWith("inset(50%")) return [];
  if (node.matches(".mm-more, .mm-keep, .st-close")) return [];
  const box = node.getBoundingClientRect();
  const [x, y] = at(box.left, box.top);
  const isSeen = style.visibility === "visible";
  if (node.localName === "svg") return isSeen ? [drawing(node, { x, y })] : [];
  if (node.localName === "canvas") {
    const sizes = { x, y, width: round(box.width), height: round(box.height), preserveAspectRatio: "none" };
    const smooth = style.imageRendering === "auto" ? null : style.imageRendering; // or with the edges of its points
    return isSeen ? [part("image", { ...sizes, "image-rendering": smooth, href: node.toDataURL() })] : [];
  }
  if (node.localName === "input") return isSeen ? inputOn(node, style, at) : [];
  const parts = isSeen && style.display !== "contents" ? boxOn(node, style, at) : [];
  if (isSeen) parts.push(...beforeOn(node, box, style, at));
  const found = [...parts, ...[...node.childNodes].flatMap((child) => walk(child, at, isSeen ? style : null))];
  if (isSeen) found.push(...barsOn(node, box, style, at));
  const isCut =
    style.overflowX !== "visible" &&
    (node.scrollWidth > node.clientWidth + 1 || node.scrollHeight > node.clientHeight + 1);
  const attrs = { opacity: style.opacity === "1" ? null : style.opacity, "clip-path": null };
  if (isCut) {
    const id = newId();
    const clip = part("clipPath", { id }, rectangle(box, at, {}));
    return [part("defs", {}, clip), part("g", { ...attrs, "clip-path": `url(#${id})` }, ...found)];
  }
  return attrs.opacity ? [part("g", attrs, ...found)] : found;
}

// Fonts that this code brings with it, by name, as base64: a picture that stands alone loads none.
let fonts = {};

// Those that the page has in its own styles, by name, as rules.
function facesOfPage() {
  const rules = [...document.querySelectorAll("style")].flatMap(({ sheet }) => [...(sheet?.cssRules ?? [])]);
  const held = rules.filter((rule) => rule instanceof CSSFontFaceRule && rule.cssText.includes("data:font"));
  /** @type {(rule: any) => string} */
  const nameOf = ({ style }) => style.getPropertyValue("font-family").replaceAll('"', "");
  return Object.fromEntries(held.map((rule) => [nameOf(rule), rule.cssText]));
}

function facesIn(svg) {
  const face = ([name, woff2]) => [
    name,
    `@font-face{font-family:"${name}";src:url(data:font/woff2;base64,${woff2});font-weight:400 700}`,
  ];
  const faces = { ...facesOfPage(), ...Object.fromEntries(Object.entries(fonts).map(face)) };
  const named = Object.entries(faces)
    .filter(([name]) => svg.includes(`'${name}'`))
    .map(([, rule]) => rule);
  return named.length ? `<style>${named.join("")}</style>` : "";
}

const MARGIN = 14; // pixels around a part of a page that has none of its own

// The color on which something is seen, where it has none itself.
function groundOf(node) {
  for (let at = node; at; at = at.parentElement) {
    const color = getComputedStyle(at).backgroundColor;
    if (colorOf(color).alpha === 1) return color;
  }
  return "white";
}

/**
 * The figure as it is drawn now. source: the address at which it is found, if there is one.
 */
function picture(root, source = "") {
  root.dispatchEvent(new Event("mm-picture")); // what waits until it comes into sight is drawn now
  for (const animation of root.getAnimations({ subtree: true }))
    if (Number.isFinite(animation.effect.getComputedTiming().endTime)) animation.finish(); // as it will be in a moment
  const whole = root.getBoundingClientRect();
  const fold = root.querySelector(":scope > .mm-more"); // the last of a figure, and no part of its picture
  const style = getComputedStyle(root);
  const bottom = fold
    ? fold.previousElementSibling.getBoundingClientRect().bottom + pixels(style.paddingBottom)
    : whole.bottom;
  const { left, top, right, width } = whole;
  const box = { left, top, right, bottom, width, height: bottom - top };
  const margin = pixels(style.paddingLeft) ? 0 : MARGIN;
  const at = (x, y) => [round(x - left + margin), round(y - top + margin)];
  const [wide, tall] = [width, box.height].map((size) => Math.ceil(size + 2 * margin));
  const sizes = { xmlns: NAMESPACE, width: wide, height: tall, viewBox: `0 0 ${wide} ${tall}` };
  const named = root.querySelector(".mm-title, .st-title, h2") ?? root.closest(".mm-fig")?.querySelector("h1");
  const node = part("svg", { ...sizes, lang: root.closest("[lang]")?.lang || null });
  Object.assign(node.style, { fontVariantNumeric: "tabular-nums", textRendering: "geometricPrecision" });
  node.append(part("title", {}, named?.textContent ?? ""), part("desc", {}, source));
  if (margin) node.append(part("rect", { width: wide, height: tall, ...paint("fill", groundOf(root)) }));
  node.append(...boxOn(root, style, at, box));
  for (const child of root.children) node.append(...walk(child, at));
  const svg = new XMLSerializer().serializeToString(node);
  return { svg: svg.replace("<desc", `${facesIn(svg)}<desc`), width: wide, height: tall };
}

/** The same as pixels. */
async function pixelsOf({ svg, width, height }) {
  const image = new Image();
  image.src = `data:image/svg+xml;charset=utf-8,${encodeURIComponent(svg)}`;
  await image.decode();
  const canvas = Object.assign(document.createElement("canvas"), { width: SCALE * width, height: SCALE * height });
  canvas.getContext("2d").drawImage(image, 0, 0, canvas.width, canvas.height);
  return new Promise((resolve) => canvas.toBlob(resolve, "image/png"));
}

/** Hands a reader the figure as a file; kind: "svg" or "png". */
async function save(root, kind, name, source) {
  const drawn = picture(root, source);
  const blob = kind === "svg" ? new Blob([drawn.svg], { type: "image/svg+xml" }) : await pixelsOf(drawn);
  const link = document.createElement("a");
  link.href = URL.createObjectURL(blob);
  link.download = `${name}.${kind}`;
  document.body.append(link); // Firefox presses only what is on the page
  link.click();
  link.remove();
  setTimeout(() => URL.revokeObjectURL(link.href), 1000);
}

// The menu

// A page without a secure address has no clipboard, and a browser may ask first: the address bar has the link anyway.
async function copied(link, words) {
  let otherwise = words.inBar;
  try {
    history.replaceState(null, "", link);
  } catch {
    // a browser that lets no file change its address; the page may have told it this already
    if (location.hash !== new URL(link, location.href).hash) otherwise = words.failed;
  }
  const late = new Promise((_, reject) => setTimeout(reject, 1000));
  const write = navigator.clipboard?.writeText(link) ?? Promise.reject();
  return Promise.race([write, late]).then(
    () => words.copied,
    () => otherwise,
  );
}

/** Fills the menu of a figure: its picture as it is now, and the address of this state, if there is one. */
function offer(keeper, root, address, words) {
  const [summary, menu] = keeper.children;
  // a reader's own story is no part of a figure's state
  const here = () => (root.dataset.story === "true" ? null : address?.());
  const name = root.closest("[data-figure]")?.dataset.figure ?? "figure";

  function button(label, act) {
    const pressed = Object.assign(document.createElement("button"), { type: "button", textContent: label });
    pressed.setAttribute("aria-live", "polite");
    pressed.dataset.lmSuppressShortcuts = "true"; // JupyterLab takes Enter and Space as its own
    pressed.addEventListener("click", async () => {
      pressed.textContent = words.wait;
      pressed.textContent = await act().catch(() => words.failed);
      setTimeout(() => (pressed.textContent = label), 2000);
    });
    return pressed;
  }
  const file = (kind) => async () => {
    await save(root, kind, `minimind-${name.replaceAll("_", "-")}`, here() ?? "");
    return words.saved;
  };
  const offers = [button("SVG", file("svg")), button("PNG", file("png"))];
  const link = button(words.link, async () => copied(here(), words));
  const fill = () => menu.replaceChildren(...offers, ...(here() ? [link] : []));
  fill();
  keeper.addEventListener("toggle", () => keeper.open && fill()); // what is shown may have an address by now
  keeper.addEventListener("keydown", ({ key }) => {
    if (key !== "Escape") return;
    keeper.open = false;
    summary.focus();
  });
  keeper.addEventListener("focusout", ({ relatedTarget: next }) => {
    // a notebook gives the focus to the cell around, or to nothing
    const isLeft = next && !keeper.contains(next) && !next.contains(keeper);
    if (isLeft) keeper.open = false;
  });
}

function withFonts(given = {}) {
  fonts = given;
  return { picture, pixelsOf, offer };
}

export default withFonts;
