// The camera of the model map, and the words of a page's address that say where it is.

export const MAP_LEVELS = ["model", "block", "attention", "head", "pair", "product"];
export const MAP_SIDES = [
  ["embedding", "stream", "norm", "logits", "generation"],
  ["stream", "norm", "ffn", "experts"],
  ["rope", "cache", "groups", "output"],
  ["scores", "weights", "values"],
  ["frequencies"],
  [],
];

// The smallest rectangle of the stage's proportions around a portal: what the camera sees when it has arrived there.
export function portalView(portal, width, height) {
  const scale = Math.max(portal.w / width, portal.h / height);
  const [w, h] = [scale * width, scale * height];
  return { x: portal.x + (portal.w - w) / 2, y: portal.y + (portal.h - h) / 2, w, h };
}

// Between two levels, t from 0 (the outer one fills the stage) to 1 (the inner one does), as { x, y, scale } of both.
// One point stays where it is and everything grows around it, by the same factor in equal times.
export function cameraAt(t, portal, width, height) {
  const view = portalView(portal, width, height);
  const whole = width / view.w;
  const scale = whole ** t;
  const fixed = [view.x, view.y].map((start) => (whole === 1 ? 0 : (whole * start) / (whole - 1)));
  const at = (x, i) => fixed[i] + scale * (x - fixed[i]);
  return {
    outer: { x: at(0, 0), y: at(0, 1), scale },
    inner: { x: at(view.x, 0), y: at(view.y, 1), scale: scale / whole },
  };
}

// Slow at both ends.
export function eased(t) {
  return t * t * (3 - 2 * t);
}

// Where a part is found: its own level, or the deepest level that shows it beside the way.
export function placeOf(name) {
  const level = MAP_LEVELS.indexOf(name);
  if (level >= 0) return { level, part: "" };
  const shown = MAP_SIDES.map((sides) => sides.includes(name)).lastIndexOf(true);
  return shown < 0 ? null : { level: shown, part: name };
}

// "#map/cache" -> { level: 2, part: "cache" }; null for any other address.
export function placeInHash(hash) {
  return hash.startsWith("#map/") ? placeOf(hash.slice(5)) : null;
}

// What "norm" or "stream" is at the level of the whole model has no address of its own: it is the block's.
export function hashOfPlace(level, part) {
  return `#map/${part || MAP_LEVELS[level]}`;
}

// Whether `name` is what `part` at `level` leads to, or the part itself: the way to "you are here".
export function leadsTo(part, name) {
  if (part === name) return true;
  const [of, place] = [MAP_LEVELS.indexOf(part), placeOf(name)];
  return of >= 0 && place !== null && (place.level > of || (place.level === of && place.part !== ""));
}
