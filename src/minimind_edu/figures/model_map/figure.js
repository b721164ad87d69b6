// ModelMap: one picture to zoom into, from the whole model down to one product. Also the strip that opens a chapter.

import { WIDE, h, svg, fill, setAttributes, setSize, clamp, grouped, prefersReducedMotion } from "../../web/kit/kit.js";
import { setTraits, wordsOf, frame, mount } from "../../web/kit/kit.js";
import { MAP_LEVELS, MAP_SIDES, cameraAt, eased, hashOfPlace, placeInHash, placeOf } from "./math.js";
import { mapScenes } from "./scenes.js";
import { modelMapWords } from "./words.js";

const LAST = MAP_LEVELS.length - 1;
const FLIGHT = { start: 250, perLevel: 550, longest: 2200 }; // milliseconds
const ARRIVAL = 1100;

// Calls step(0 … 1) for so long, or step(1) at once where motion is not wanted. Returns how to stop it.
function animateFor(milliseconds, step, onEnd = () => {}) {
  if (prefersReducedMotion() || !milliseconds) {
    step(1);
    onEnd();
    return () => {};
  }
  const begin = performance.now();
  let frameId = requestAnimationFrame(function next(now) {
    const t = clamp((now - begin) / milliseconds, 0, 1);
    step(t);
    if (t < 1) frameId = requestAnimationFrame(next);
    else onEnd();
  });
  return () => cancelAnimationFrame(frameId);
}

/** The drawing: scenes one inside the other, and the camera between two of them. */
function createMapStage(model, words, go) {
  const drawing = svg("svg", { class: "mp-drawing", role: "group", tabindex: -1 });
  const root = h("div", { class: "mm-stage mp-stage" }, drawing);
  let scenes = [];
  let [width, height, depth] = [0, 0, model.get("level")]; // depth: the level, with the way between two as a fraction
  const chosen = {}; // which of several equal blocks or heads was pressed
  let [stopFlight, stopArrival] = [() => {}, () => {}];
  let wantsFocus = false;

  const portalAt = (level) => {
    const { portal, portals } = scenes[level];
    const index = chosen[MAP_LEVELS[level + 1]];
    return portals?.[index] ?? portal;
  };

  function show(next) {
    depth = next;
    const [outer, t] = [Math.min(Math.floor(next), LAST), next - Math.floor(next)];
    const views = t ? cameraAt(t, portalAt(outer), width, height) : { outer: { x: 0, y: 0, scale: 1 } };
    scenes.forEach(({ root: scene }, level) => {
      const view = [views.outer, views.inner][level - outer];
      scene.style.display = view ? "" : "none";
      if (!view) return;
      scene.setAttribute("transform", `translate(${view.x} ${view.y}) scale(${view.scale})`);
      const seen = level === outer ? 1 - clamp((t - 0.35) / 0.5, 0, 1) : clamp((t - 0.3) / 0.5, 0, 1);
      scene.style.opacity = seen === 1 ? "" : seen;
    });
    drawing.classList.toggle("mp-flying", t > 0);
  }

  function arrive() {
    const level = model.get("level");
    const { root: scene, arrive: move } = scenes[level];
    if (move) stopArrival = animateFor(ARRIVAL, (t) => move(eased(t)));
    if (wantsFocus) focusFirst(scene, level);
    wantsFocus = false;
  }

  function focusFirst(scene, level) {
    const next = scene.querySelector(`[data-part="${MAP_LEVELS[level + 1]}"]`) ?? scene.querySelector(".mp-part");
    (next ?? drawing).focus({ preventScroll: true });
  }

  function fly() {
    const target = model.get("level");
    if (Math.abs(depth - target) < 1e-9) return;
    wantsFocus = drawing.contains(document.activeElement);
    stopFlight();
    stopArrival();
    const from = depth;
    const { start, perLevel, longest } = FLIGHT;
    const duration = Math.min(longest, start + perLevel * Math.abs(target - from));
    const far = Math.sign(target - from);
    stopFlight = animateFor(
      duration,
      (t) => {
        const next = t === 1 ? target : from + (target - from) * eased(t);
        show(far > 0 ? Math.min(next, target) : Math.max(next, target));
      },
      arrive,
    );
  }

  function rebuild(nextWidth) {
    width = nextWidth;
    height = Math.round(width < WIDE ? 0.96 * width : clamp(0.47 * width, 300, 410));
    setSize(drawing, width, height);
    const [sizes, flows, example, here] = ["sizes", "flows", "example", "here"].map((name) => model.get(name));
    stopFlight();
    stopArrival();
    scenes = mapScenes(width, height, { words, sizes, flows, example, here });
    fill(drawing, scenes);
    show(model.get("level"));
    arrive();
  }

  function draw(nextWidth) {
    if (nextWidth !== width) rebuild(nextWidth);
    else fly();
    const [level, part] = [model.get("level"), model.get("part")];
    const name = MAP_LEVELS[level];
    setAttributes(drawing, { "aria-label": words.picture(words.names[name], words.says[name](model.get("sizes"))) });
    for (const node of drawing.querySelectorAll("[data-part]")) {
      const isChosen = node.dataset.part === part;
      node.classList.toggle("mp-chosen-part", isChosen);
      if (!MAP_LEVELS.includes(node.dataset.part)) node.setAttribute("aria-pressed", isChosen);
    }
  }

  function press(part, target) {
    const place = placeOf(part);
    if (MAP_LEVELS.includes(part)) {
      const choice = target.closest(`[data-${part}]`);
      if (choice) chosen[part] = Number(choice.dataset[part]);
      go(place.level, "");
    } else go(model.get("level"), part === model.get("part") ? "" : part);
  }

  drawing.addEventListener("click", (event) => {
    const part = event.target.closest("[data-part]");
    if (part) press(part.dataset.part, event.target);
  });
  drawing.addEventListener("keydown", (event) => {
    const part = event.target.closest("[data-part]");
    if (!part || event.altKey || event.ctrlKey || event.metaKey) return;
    const step = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 }[event.key];
    if (event.key === "Enter" || event.key === " ") press(part.dataset.part, part);
    else if (step) {
      const parts = [...part.closest(".mp-scene").querySelectorAll(".mp-part")];
      parts[(parts.indexOf(part) + step + parts.length) % parts.length].focus();
    } else return;
    event.preventDefault();
  });
  const release = () => {
    stopFlight();
    stopArrival();
  };
  return { root, draw, release };
}

/** The levels as a row of steps, and the two buttons. */
function createMapControl(words, go) {
  const steps = MAP_LEVELS.map((name, level) =>
    h("button", { type: "button", class: "mp-step", onClick: () => go(level, "") }, words.names[name]),
  );
  const zoom = (text, name, way) => {
    const onClick = () => go((level) => level + way, "");
    return h("button", { type: "button", class: "mm-button mp-zoom", "aria-label": name, title: name, onClick }, text);
  };
  const [out, into] = [zoom("−", words.zoomOut, -1), zoom("+", words.zoomIn, 1)];
  const items = steps.map((step) => h("li", {}, step));
  const list = h("ol", { class: "mp-steps" }, items);
  const root = h("div", { class: "mp-control", role: "group", "aria-label": words.levels }, list, out, into);
  const set = (level) => {
    steps.forEach((step, i) => {
      if (i === level) step.setAttribute("aria-current", "step");
      else step.removeAttribute("aria-current");
      step.classList.toggle("mp-passed", i < level);
    });
    out.disabled = level === 0;
    into.disabled = level === LAST;
  };
  return { root, set };
}

/** What happens in the part that is shown: the shapes, the way to its chapter, one sentence. */
function createMapText(model, words) {
  const everything = [...new Set([...MAP_LEVELS, ...MAP_SIDES.flat()])];
  const [sizes, flows] = [model.get("sizes"), model.get("flows")];
  const flowText = (part) => {
    const { shapes, weights } = flows[part];
    const learned = weights ? words.weights(grouped(weights)) : (words.weightsElsewhere[part] ?? words.noWeights);
    return [
      h("b", {}, words.names[part]),
      h("span", { class: "mp-shapes" }, shapes.join(" → ")),
      h("span", {}, learned),
    ];
  };
  const linkText = (part) => {
    const link = model.get("links")[part];
    return link ? h("a", { href: link.href }, words.read(link.label), " →") : words.toCome;
  };
  // All texts share one place and one height, so that nothing below moves from level to level.
  const stack = (tag, cls, textOf) => {
    const shown = h("span", { class: "mp-shown", "aria-live": "polite" });
    const written = (part) => h("span", { class: cls }, textOf(part));
    const room = everything.map((part) => h("span", { "aria-hidden": "true" }, written(part)));
    return { root: h(tag, { class: "mp-stack" }, shown, room), set: (part) => fill(shown, written(part)) };
  };
  const flow = stack("p", "mp-flow-line", flowText);
  const says = stack("span", "mp-says", (part) => words.says[part](sizes));
  const link = h("p", { class: "mp-link", "aria-live": "polite" });
  const numbers = h("div", { class: "mp-numbers" }, flow, link);
  const set = (part) => {
    [flow, says].forEach((texts) => texts.set(part));
    const isHere = part === model.get("here");
    fill(link, linkText(part), isHere && h("span", { class: "mp-here-word" }, words.here));
  };
  return { numbers, caption: says, set };
}

/** Keeps the level in the page's address, so that it can be linked and the back button works. */
function followAddress(model, root) {
  const first = { level: model.get("level"), part: model.get("part") };
  const read = () => setTraits(model, placeInHash(location.hash) ?? first);
  const write = () => {
    const hash = hashOfPlace(model.get("level"), model.get("part"));
    const place = placeInHash(location.hash) ?? first;
    if (place.level !== model.get("level") || place.part !== model.get("part")) location.hash = hash;
  };
  addEventListener("hashchange", read);
  if (placeInHash(location.hash)) {
    read();
    requestAnimationFrame(() => root.scrollIntoView({ block: "nearest" }));
  }
  return { write, release: () => removeEventListener("hashchange", read) };
}

function renderMap({ model, el }) {
  const words = wordsOf(modelMapWords);
  let address = null;
  const go = (to, part) => {
    const level = clamp(typeof to === "function" ? to(model.get("level")) : to, 0, LAST);
    setTraits(model, { level, part });
    address?.write();
  };
  const stage = createMapStage(model, words, go);
  const control = createMapControl(words, go);
  const text = createMapText(model, words);
  const title = [words.title, h("span", { class: "scripted" }, words.gap, words.press)];
  const root = frame({ ...words, title, caption: text.caption }, { stage, control, numbers: text.numbers });
  root.addEventListener("keydown", (event) => {
    if (event.altKey || event.ctrlKey || event.metaKey) return;
    const way = { "+": 1, "=": 1, "-": -1, Escape: -1 }[event.key];
    const level = model.get("level");
    if (!way || level + way < 0 || level + way > LAST) return;
    event.preventDefault();
    go(level + way, "");
  });
  if (model.get("in_url")) address = followAddress(model, root);
  const draw = (width) => {
    stage.draw(width);
    control.set(model.get("level"));
    text.set(model.get("part") || MAP_LEVELS[model.get("level")]);
  };
  const place = () => location.href.split("#")[0] + hashOfPlace(model.get("level"), model.get("part"));
  const parts = [stage, address];
  return mount(el, root, {
    model,
    traits: ["level", "part"],
    draw,
    boxes: [stage.root],
    parts,
    address: model.get("in_url") ? place : model.address,
  });
}

/** The strip at the head of a chapter: the small drawing, and the way to the part as words. */
function renderStrip({ model, el }) {
  const words = wordsOf(modelMapWords);
  const [here, target] = [model.get("here"), model.get("map_href")];
  const { level, part } = placeOf(here || MAP_LEVELS[0]);
  const way = [...MAP_LEVELS.slice(0, level + 1), part].filter(Boolean);
  const steps = way.map((step) => {
    const current = step === here ? "location" : null;
    const attrs = target ? { href: `${target}#map/${step}`, "aria-current": current } : { "aria-current": current };
    return h("li", {}, h(target ? "a" : "span", attrs, words.names[step]));
  });
  const root = h("div", { class: "mm-fig mp-strip", role: "navigation", "aria-label": words.strip });
  root.innerHTML = model.get("strip"); // the package's own drawing, without words
  root.append(h("ol", {}, steps));
  el.append(root);
  return () => root.remove();
}

const renderMapOrStrip = (view) => (view.model.get("compact") ? renderStrip(view) : renderMap(view));

export default { render: renderMapOrStrip };
