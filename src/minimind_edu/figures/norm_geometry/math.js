// The arithmetic of the norm figure, without a page: the two norms, and the view of three channels as a globe whose
// axis is (1, 1, 1). Height over the equator plane is then the mean, distance from the axis the standard deviation
// (both times the root of 3), and distance from the center the RMS.

export function meanOf(values) {
  return values.reduce((sum, value) => sum + value, 0) / values.length;
}

// The package's formulas: eps inside the root, the gain last.
export function rmsNorm(values, eps, gain) {
  const factor = 1 / Math.sqrt(meanOf(values.map((value) => value * value)) + eps);
  return values.map((value, i) => (gain ? gain[i] : 1) * (value * factor));
}

export function layerNorm(values, eps, gain) {
  const mean = meanOf(values);
  return rmsNorm(
    values.map((value) => value - mean),
    eps,
    gain,
  );
}

// Mean, standard deviation and root mean square over the channels: rms² = mean² + std².
export function channelStats(values) {
  const mean = meanOf(values);
  const std = Math.sqrt(meanOf(values.map((value) => (value - mean) ** 2)));
  return { mean, std, rms: Math.sqrt(meanOf(values.map((value) => value * value))) };
}

export function dot3(a, b) {
  return a[0] * b[0] + a[1] * b[1] + a[2] * b[2];
}

export function scale3(a, factor) {
  return a.map((value) => value * factor);
}

export function add3(a, b) {
  return a.map((value, i) => value + b[i]);
}

export function multiply3(a, b) {
  return a.map((value, i) => value * b[i]);
}

// Degrees between two vectors, NaN if one is zero. atan2 stays exact where acos would lose half of the digits.
export function angleBetween(a, b) {
  const [na, nb] = [Math.hypot(...a), Math.hypot(...b)];
  if (na === 0 || nb === 0) return NaN;
  const [ua, ub] = [scale3(a, 1 / na), scale3(b, 1 / nb)];
  const apart = Math.hypot(...add3(ua, scale3(ub, -1)));
  return (2 * Math.atan2(apart, Math.hypot(...add3(ua, ub))) * 180) / Math.PI;
}

export const POLE = [1, 1, 1].map((value) => value / Math.sqrt(3));
const EAST = [1, -1, 0].map((value) => value / Math.sqrt(2));
const SOUTH = [1, 1, -2].map((value) => value / Math.sqrt(6));
export const RADIUS = Math.sqrt(3); // of the sphere of all vectors of three channels whose RMS is 1

// Three unit vectors in channel space: to the right, up the screen, toward the reader. Radians; pitch looks from above.
export function viewFrom(yaw, pitch) {
  const [c, s] = [Math.cos(yaw), Math.sin(yaw)];
  const right = add3(scale3(EAST, c), scale3(SOUTH, s));
  const level = add3(scale3(EAST, s), scale3(SOUTH, -c));
  return {
    right,
    up: add3(scale3(POLE, Math.cos(pitch)), scale3(level, -Math.sin(pitch))),
    toward: add3(scale3(level, Math.cos(pitch)), scale3(POLE, Math.sin(pitch))),
  };
}

// Where a vector points around the axis, in radians; NaN for one that lies on it.
export function azimuthOf(point) {
  const [east, south] = [dot3(point, EAST), dot3(point, SOUTH)];
  return Math.hypot(east, south) < 1e-9 * Math.hypot(...point) || !point.some(Boolean) ? NaN : Math.atan2(south, east);
}

// [right, up, toward the reader] of a point, and back.
export function project(view, point) {
  return [dot3(view.right, point), dot3(view.up, point), dot3(view.toward, point)];
}

export function unproject(view, [x, y, depth]) {
  return add3(add3(scale3(view.right, x), scale3(view.up, y)), scale3(view.toward, depth));
}

// Where a hand at [right, up] leads x, if it is near one of its two straight ways: along the arrow, which changes only
// its length, or along the axis, which adds one number to all channels. Null if it is farther from both than `near`.
export function ledTo(view, x, [right, up], near) {
  const [fromX, fromY] = project(view, x);
  const ways = [x, POLE].map((way) => {
    const [dx, dy] = project(view, way);
    const t = ((right - fromX) * dx + (up - fromY) * dy) / Math.max(dx * dx + dy * dy, 1e-12);
    return { point: add3(x, scale3(way, t)), off: Math.hypot(fromX + t * dx - right, fromY + t * dy - up) };
  });
  const [best] = ways.filter(({ point }) => dot3(point, x) > 0).sort((a, b) => a.off - b.off);
  return best?.off < near ? best.point : null;
}

// Outline of the sphere of the given radius after the gain has stretched it, as seen: an ellipse with two half-axes and
// the angle of the first one, in radians, counterclockwise.
export function outlineOf(view, gain, radius) {
  const [across, along] = [multiply3(view.right, gain), multiply3(view.up, gain)];
  const [a, b, d] = [dot3(across, across), dot3(across, along), dot3(along, along)];
  const [middle, spread] = [(a + d) / 2, Math.hypot((a - d) / 2, b)];
  const half = (square) => radius * Math.sqrt(Math.max(0, square));
  return { major: half(middle + spread), minor: half(middle - spread), angle: Math.atan2(2 * b, a - d) / 2 };
}

// Points of the circle of latitude (radians over the equator) on a sphere around the origin.
export function parallel(latitude, radius, count) {
  const [level, height] = [radius * Math.cos(latitude), radius * Math.sin(latitude)];
  return Array.from({ length: count + 1 }, (_, i) => {
    const turn = (2 * Math.PI * i) / count;
    const flat = add3(scale3(EAST, level * Math.cos(turn)), scale3(SOUTH, level * Math.sin(turn)));
    return add3(flat, scale3(POLE, height));
  });
}

// Half a great circle from pole to pole through a point: where RMSNorm(x + c) goes while c runs through all numbers.
// Null for a point on the axis, which has no such half circle.
export function meridianThrough(point, radius, count) {
  const flat = add3(point, scale3(POLE, -dot3(point, POLE)));
  const length = Math.hypot(...flat);
  if (length < 1e-12) return null;
  return Array.from({ length: count + 1 }, (_, i) => {
    const latitude = Math.PI * (i / count - 0.5);
    return add3(scale3(flat, (radius * Math.cos(latitude)) / length), scale3(POLE, radius * Math.sin(latitude)));
  });
}
