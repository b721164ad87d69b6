// MiniMindLive: compose a story, ask about it, and look inside the trained model while it answers. One story, one
// position, one open part. The first picture comes from Python; the weights arrive after it.

import {
  h,
  fill,
  grouped,
  button,
  announcement,
  observeTraits,
  loadLiving,
  wordsOf,
  frame,
  mount,
} from "../../web/kit/kit.js";
import { hashOfStory, keepStory, onStory, partInHash, storyOf } from "../../web/live/story.js";
import { softmax } from "../../web/live/sampling.js";
import { createWorld } from "../../web/live/world.js";
import { colorsOf } from "../../web/stage/colors.js";
import { leadTo } from "../../web/stage/opened.js";
import { createRoad, shine } from "../../web/stage/road.js";
import { createSampling, createWriteButtons } from "../../web/stage/writing.js";
import { createBars } from "./bars.js";
import { createBlocks } from "./blocks.js";
import { createCache } from "./cache.js";
import { createBreaks, createGuide, createPresses } from "./guide.js";
import { glossary, linksToChapters, wordWithGloss } from "./marks.js";
import { createPalette } from "./palette.js";
import { MOST_WORDS, createSession, descending } from "./session.js";
import { createAlternatives, createLens, createStory } from "./story.js";
import { createTabs } from "./tabs.js";
import { createTrainView } from "./train.js";
import { minimindLiveWords } from "./words.js";
import { createZoom, nameOfZoom, zoomOfName } from "./zoom.js";

const HERO_BARS = 4;
const ANSWERED = ["ask", "other", "owner", "silence", "translate", "unknown"]; // presses that ask for a word

/** The session of a figure, and the promise of its model: load() begins it. */
function openSession(model, ids, changed) {
  const tables = model.get("world");
  const session = createSession({ world: createWorld(tables), tables }, ids, changed);
  let arriving = null;
  const load = () => {
    arriving ??= loadLiving(model).then(({ model: live, tensors, heads }) => {
      session.attach(live, tensors);
      return heads;
    });
    return arriving;
  };
  return { session, load };
}

/** The first story of the figure, and what Python computed for it. */
function firstPicture(model, world) {
  const { story, bars } = model.get("first");
  return { ids: [0, ...world.encode(story)], bars };
}

/** The buttons of the stories to begin with. */
function createExamples(words, session, stories) {
  const texts = [...stories.examples, ""];
  const buttons = [...words.examples, words.begin].map((label, at) => {
    const onClick = () => session.load([0, ...session.world.encode(texts[at])]);
    return h("button", { type: "button", class: "ml-chip", onClick }, label);
  });
  const label = h("span", { class: "ml-label" }, words.exampleLabel);
  return { root: h("div", { class: "ml-examples scripted" }, label, buttons) };
}

/** Keeps the story where other figures, other tabs and the address find it, and follows them. */
function shareStory(model, session) {
  let shared = `${session.ids}`;
  const isNew = (ids) => `${ids}` !== shared;
  const release = onStory(session.world, (ids) => {
    if (!isNew(ids)) return;
    shared = `${ids}`;
    session.load(ids);
  });
  const draw = () => {
    if (!isNew(session.ids)) return;
    shared = `${session.ids}`;
    keepStory(session.ids, session.world, { inAddress: model.get("in_url") });
  };
  return { draw, release };
}

/**
 * Leads to the part that the address names: one inside the model, or one of `folds`, name -> element, in its tab. Where
 * nothing is shown yet, as below a still, there is nothing to scroll to.
 */
async function openNamed(session, sizes, folds, root, tabs) {
  const name = partInHash(location.hash);
  if (name === null || session.zoom) return;
  const named = zoomOfName(name, sizes) ?? (Object.hasOwn(folds, name) ? folds[name] : null);
  while (root.closest(".mm-unseen")) await new Promise(requestAnimationFrame);
  if (named instanceof Element) tabs.reveal(named);
  if (named) leadTo(session, named);
}

/** What views of heads ask, as heads.js has it. */
function readingOf(session, glossOf, root) {
  const wordAt = (at) => session.world.words[session.ids[at]];
  return {
    count: () => session.traces.length,
    texts: () => session.ids.map((_, at) => wordAt(at)),
    named: (at) => wordWithGloss(wordAt(at), glossOf(session.ids[at])),
    isHere: () => Boolean(session.now),
    weightAt: ({ layer, head }, y, x) => session.traces[y].blocks[layer].weights[head][x],
    colors: () => colorsOf(root),
  };
}

/** The places of a story: what a reader guesses from. */
const guessesOf = ({ words, places }, ids) =>
  places
    .flat()
    .map((word) => words.indexOf(word))
    .filter((id) => ids.includes(id));

/** All blocks in a row, and what each would say of the next word; a head that is pressed falls silent or comes back. */
function createRoadHere(words, session, sizes, look, isOpen, onHead) {
  const silence = (place) => {
    const key = `${place.layer}.${place.head}`;
    session.show(place);
    session.silenceSome([key], !session.silenced.has(key));
    onHead();
  };
  const road = createRoad(words, sizes, silence, look);
  const topOf = ({ lens }) => {
    const chances = softmax(lens);
    const [id] = descending(chances);
    return [session.world.words[id], chances[id]];
  };
  const draw = () => road.draw(isOpen() ? session.now?.blocks.map(topOf) : null, session.silenced, session.shown);
  return { root: road.root, draw };
}

/** The whole page. */
async function renderPage({ model, el }) {
  const words = wordsOf(minimindLiveWords);
  const [sizes, stories, links] = ["sizes", "stories", "links"].map((name) => model.get(name));
  const world = createWorld(model.get("world"));
  const first = firstPicture(model, world);
  let looked = null; // the head under the mouse or the focus
  let views = [];
  const changed = () => views.forEach((view) => view.draw());
  const asked = stories.told.map((text, language) => `${text} ${stories.question[language]}`);
  const isFirst = model.get("story") === asked[0]; // the page begins with a question, in its own language
  const byDefault = isFirst ? asked[words.tongue] : model.get("story");
  const opening = storyOf(world, byDefault);
  const isDefault = `${opening}` === `${[0, ...world.encode(byDefault)]}`;
  let isAsked = isFirst && isDefault;
  const { session, load } = openSession(model, opening, changed);
  const glossOf = glossary(session.tables);

  const story = createStory(words, session, glossOf);
  const tint = () => {
    const head = looked ?? (session.zoom?.part === "head" ? session.zoom : session.shown);
    const isHeard = head && !session.silenced.has(`${head.layer}.${head.head}`); // a silent head reads nothing
    story.tint(isHeard ? session.now?.blocks[head.layer].weights[head.head] : null);
  };
  let waiting = null; // the mouse leaves one head and enters the next: one drawing for both
  const look = (head) => {
    looked = head;
    waiting ??= requestAnimationFrame(() => {
      waiting = null;
      tint();
    });
  };
  const stage = h("div", { class: "mm-stage mm-column ml-stage" });
  const reading = readingOf(session, glossOf, stage);
  const blocks = createBlocks(words, session, sizes, look, links);
  const zoom = createZoom(words, session, glossOf, reading, blocks.rowOf, links);
  const isFull = () => session.ids.length >= MOST_WORDS;
  const [broken, full] = [announcement("ml-broken"), announcement("mm-note ml-full")];
  const warn = {
    draw() {
      const at = session.brokenAt;
      broken.set(at === null ? "" : words.broken(world.words[session.ids[at]]));
      full.set(isFull() ? words.full(MOST_WORDS) : "");
    },
  };
  const guess = {
    ids: guessesOf(session.tables, opening),
    isOpen: () => isAsked && `${session.ids}` === `${opening}` && !session.silenced.size,
    take: (id) => guide.go(0, id),
  };
  const bars = createBars(words, session, glossOf, first, undefined, guess);
  const sampling = createSampling(words, session, words.sampling, 20, linksToChapters(words, links, ["generation"]));
  const palette = createPalette(words, session, session.tables, glossOf);
  const alternatives = createAlternatives(words, session, glossOf);
  const lens = createLens(words, session, reading);
  const writing = createWriteButtons(words, session, () => !session.model || isFull());
  const road = createRoadHere(
    words,
    session,
    sizes,
    look,
    () => !guess.isOpen(),
    () => tabs.show("break"),
  );
  writing.next.root.addEventListener("click", () => session.model && shine(stage));
  const cache = createCache(words, session, sizes, links);
  const examples = createExamples(words, session, stories);
  const sharing = shareStory(model, session);

  let presses = null; // from the moment in which the model is here
  const press = async (name, given) => {
    try {
      const heads = await load();
      presses ??= createPresses(words, session, stories, sizes, glossOf, heads);
      [guide, breaks].forEach((view) => view.say(""));
      isAsked = false;
      const answer = await { ...presses.guide, ...presses.breaks }[name](given);
      if (session.shown) tabs.show("break");
      if (ANSWERED.includes(name)) shine(stage);
      return answer;
    } catch (error) {
      if (session.model) throw error;
      return words.unavailable;
    }
  };
  const guide = createGuide(words, grouped(sizes.parameters), press);
  const breaks = createBreaks(words, sizes, lens, press);
  const ownTraining = createTrainView(words, session, () => loadLiving(model), links);

  const column = (...content) => ({ root: h("div", { class: "mm-column" }, ...content) });
  const tabs = createTabs(words.tabs.label, [
    { name: "write", label: words.tabs.write, ...column(writing, full, alternatives, palette, sampling, examples) },
    { name: "break", label: words.tabs.break, root: breaks.root },
    { name: "train", label: words.tabs.train, root: ownTraining.root },
  ]);
  views = [story, road, lens, alternatives, bars, palette, zoom, blocks, cache, writing, warn, sharing, { draw: tint }];
  fill(
    stage,
    guide,
    h("div", { class: "mm-column ml-telling" }, story, broken),
    road,
    h("div", { class: "ml-beside" }, bars, tabs),
    blocks,
    cache,
  );
  const caption = words.caption(world.words.length, grouped(sizes.parameters), sizes.trained);
  const root = frame({ ...words, caption }, { stage });
  root.querySelector("figcaption").classList.add("scripted"); // a still answers nothing; it is named so all the same
  const unlisten = observeTraits(model, ["story"], () => session.load([0, ...world.encode(model.get("story"))]));
  const release = () => {
    unlisten();
    model.off("msg:custom"); // an answer that is still to come
    removeEventListener("hashchange", openPart);
    sharing.release();
    session.stop();
    zoom.release();
    ownTraining.release();
  };
  const opened = () => (session.zoom ? `&part=${nameOfZoom(session.zoom)}` : "");
  const here = () => `${location.href.split("#")[0]}${hashOfStory(session.ids, world)}${opened()}`;
  const address = model.get("in_url") ? here : null;
  const unmount = mount(el, root, { model, traits: [], draw: changed, boxes: [stage], parts: [{ release }], address });
  const folds = { cache: cache.root, sampling: sampling.root, training: ownTraining.root };
  const openPart = () => openNamed(session, sizes, folds, root, tabs);
  addEventListener("hashchange", openPart);
  const arrived = load().then(
    () => void openPart(),
    () => guide.say(words.unavailable),
  );
  if (isDefault) blocks.take(el.parentElement?.querySelector(".mm-still .ml-inside"));
  // weights that are here are drawn at once
  await Promise.race([arrived, new Promise((resolve) => setTimeout(resolve))]);
  return unmount;
}

/** The story with its question and its bars, as another page shows it; the weights come at the first press. */
function renderHero({ model, el }) {
  const words = wordsOf(minimindLiveWords);
  const world = createWorld(model.get("world"));
  const first = firstPicture(model, world);
  let views = [];
  const { session, load } = openSession(model, first.ids, () => views.forEach((view) => view.draw()));
  const glossOf = glossary(session.tables);
  const story = createStory(words, session, glossOf);
  const bars = createBars(words, session, glossOf, first, HERO_BARS);
  const status = announcement("ml-seen");
  const next = button({ label: words.next, onClick: () => begin().then(() => session.next()) });
  /** The weights come when something is asked of them. */
  async function begin() {
    if (session.model) return;
    status.set(words.loading);
    await load().then(
      () => status.set(""),
      () => status.set(words.unavailable),
    );
  }
  const more = h("a", { class: "ml-open" }, words.openPage);
  const address = () => `${model.get("page")}${hashOfStory(session.ids, world)}`;
  const link = { draw: () => (more.href = address()) };
  const wanted = { draw: () => session.selected === first.ids.length - 1 || begin() };
  views = [story, bars, link, wanted];
  const stage = h("div", { class: "mm-stage mm-column ml-stage ml-hero" }, story, bars);
  const control = h("div", { class: "st-presses" }, next, model.get("page") ? more : null, status);
  const root = frame({ ...words, title: words.titleCompact }, { stage, control }, true);
  const parts = [{ release: () => model.off("msg:custom") }];
  const wholeStory = model.address && (() => new URL(address(), location.href).href); // a notebook has no such page
  const draw = () => views.forEach((view) => view.draw());
  return mount(el, root, { model, traits: [], draw, boxes: [stage], parts, address: wholeStory });
}

const renderLive = (view) => (view.model.get("compact") ? renderHero(view) : renderPage(view));

export default { render: renderLive };
