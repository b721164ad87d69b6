// What TickTock multiplies: rows [x, y] of tick and of tock.

const dot = ([a, b], [x, y]) => a * x + b * y;
const minus = ([a, b], [x, y]) => [a - x, b - y];

function rotated([x, y], degrees) {
  const angle = (degrees * Math.PI) / 180;
  return [x * Math.cos(angle) - y * Math.sin(angle), x * Math.sin(angle) + y * Math.cos(angle)];
}

// What meets the scoring rows after tick and after tock.
export function hiddenOf({ model, tick, tock, reads_tick: first, reads_tock: second, angle }) {
  if (model === "two") return [first, second];
  return model === "block" ? [tick, tock].map((row) => rotated(row, angle)) : [tick, tock];
}

// By how much the right word's logit is above the other's, after tick and after tock.
export function leadsOf(state) {
  const rows = [state.tick, state.tock];
  return hiddenOf(state).map((hidden, read) => dot(hidden, minus(rows[1 - read], rows[read])));
}

// The probability of the right one of two words.
export function chanceOf(lead) {
  return 1 / (1 + Math.exp(-lead));
}

// What of a square from -edge to edge lies on the side of a line through `tip` to which `direction` points.
export function beyond(tip, direction, edge) {
  const corners = [[-edge, -edge], [edge, -edge], [edge, edge], [-edge, edge]]; // prettier-ignore
  const far = (point) => dot(direction, minus(point, tip));
  return corners.flatMap((corner, i) => {
    const next = corners[(i + 1) % corners.length];
    const [here, there] = [far(corner), far(next)];
    const kept = here >= 0 ? [corner] : [];
    if (here >= 0 === there >= 0) return kept;
    const share = here / (here - there);
    return [...kept, corner.map((x, axis) => x + share * (next[axis] - x))];
  });
}
