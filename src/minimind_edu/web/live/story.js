// The one story of a reader: in the page's address, in the browser's storage, and told to every figure of the page.
// Nothing of it leaves the browser. Stories are ids that begin with 0, `<s>`, of a world as createWorld makes it.

/** @typedef {import("./world.js").World} World */

const STORY_KEY = "minimind-story";
const STORY_CHANGED = "minimind-story-changed"; // event of the window; its detail is the text

/** The text of a story, as a person reads it. @type {(ids: number[], world: World) => string} */
const storyText = (ids, world) => world.decode(ids.slice(1));

/** The ids of a text; null for what has a word that is none of this world's. */
/** @type {(text: string, world: World) => number[] | null} */
function storyIds(text, world) {
  try {
    return [0, ...world.encode(text)];
  } catch (error) {
    if (error.word === undefined) throw error;
    return null;
  }
}

/** What an address like `#story=Mia_is_in_the_hall.&part=norm-1` says of a name, or null. */
/** @type {(hash: string, name: string) => string | null} */
function fieldInHash(hash, name) {
  const field = hash
    .slice(1)
    .split("&")
    .find((part) => part.startsWith(`${name}=`));
  try {
    return field === undefined ? null : decodeURIComponent(field.slice(name.length + 1));
  } catch {
    return null; // half of an escape, from an address that was cut
  }
}

/** @type {(hash: string) => string | null} */
export const storyInHash = (hash) => fieldInHash(hash, "story")?.replaceAll("_", " ") ?? null;

/** The part that the address opens on the page of the story, or null. @type {(hash: string) => string | null} */
export const partInHash = (hash) => fieldInHash(hash, "part");

/** The address of a story: `_` for a space, so that it can be read and sent. */
/** @type {(ids: number[], world: World) => string} */
export const hashOfStory = (ids, world) => `#story=${encodeURIComponent(storyText(ids, world).replaceAll(" ", "_"))}`;

/** Storage may be forbidden, as in a frame of another page; then nothing is kept. @type {() => string | null} */
function storedText() {
  try {
    return localStorage.getItem(STORY_KEY);
  } catch {
    return null;
  }
}

/** The story of the address, else the one that was kept, else the default text. */
/** @type {(world: World, byDefault?: string) => number[]} */
export function storyOf(world, byDefault = "") {
  const texts = [storyInHash(location.hash), storedText(), byDefault];
  return (
    texts
      .filter((text) => text !== null)
      .map((text) => storyIds(text, world))
      .find(Boolean) ?? [0]
  );
}

/** Keeps a story for the next visit and tells the other figures and tabs; with inAddress the page's address, too. */
/** @type {(ids: number[], world: World, options?: { inAddress?: boolean }) => void} */
export function keepStory(ids, world, { inAddress = false } = {}) {
  const text = storyText(ids, world);
  try {
    localStorage.setItem(STORY_KEY, text);
  } catch {
    // nothing is kept
  }
  if (inAddress) history.replaceState(history.state, "", hashOfStory(ids, world));
  dispatchEvent(new CustomEvent(STORY_CHANGED, { detail: text }));
}

/** Calls back with the ids when another figure, another tab or the address changes the story. Returns the clean-up. */
/** @type {(world: World, callback: (ids: number[]) => void) => () => void} */
export function onStory(world, callback) {
  const tell = (text) => {
    const ids = text === null ? null : storyIds(text, world);
    if (ids) callback(ids);
  };
  const here = (event) => tell(event.detail);
  const elsewhere = (event) => event.key === STORY_KEY && tell(event.newValue);
  const address = () => tell(storyInHash(location.hash));
  const heard = { [STORY_CHANGED]: here, storage: elsewhere, hashchange: address };
  for (const [name, listener] of Object.entries(heard)) addEventListener(name, listener);
  return () => {
    for (const [name, listener] of Object.entries(heard)) removeEventListener(name, listener);
  };
}
