// Rings and sectors around a point. No state.

// The point at a share of a rotation, counter-clockwise from the right.
/** @type {(radius: number, share: number) => string} */
function onCircle(radius, share) {
  const angle = share * 2 * Math.PI;
  return `${(radius * Math.cos(angle)).toFixed(2)} ${(-radius * Math.sin(angle)).toFixed(2)}`;
}

// The path of an arc around 0 that begins on the right, for so many rotations; a full circle needs two arcs.
/** @type {(radius: number, rotations: number) => string} */
function ring(radius, rotations) {
  const arc = (large, to) => `A${radius} ${radius} 0 ${large} 0 ${onCircle(radius, to)}`;
  if (rotations >= 1) return `M${onCircle(radius, 0)}${arc(0, 0.5)}${arc(0, 1)}`;
  return `M${onCircle(radius, 0)}${arc(rotations > 0.5 ? 1 : 0, rotations)}`;
}

// The path of a sector around 0 between two shares of a rotation; a full circle where it is one.
/** @type {(radius: number, from: number, to: number) => string} */
export function sector(radius, from, to) {
  if (to - from >= 1) return `${ring(radius, 1)}Z`;
  const [start, end] = [from, to].map((share) => onCircle(radius, share));
  return `M0 0L${start}A${radius} ${radius} 0 ${to - from > 0.5 ? 1 : 0} 0 ${end}Z`;
}
