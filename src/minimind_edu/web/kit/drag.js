// What is dragged in a drawing: by mouse, pen and finger, and by keys.

import { svg } from "./kit.js";

/**
 * @typedef {{ onMove: (x: number, y: number, event: Event) => void, onStart?: (event: Event) => void, keyStep?: number,
 *   onEnd?: (event: Event) => void, position?: () => number[] }} DragOptions
 * @typedef {{ label: string, min?: number, max?: number, reach?: number, ring: number, shape: Element }} HandleOptions
 */

/** @type {(element: any, clientX: number, clientY: number) => [number, number]} */
function localPoint(element, clientX, clientY) {
  const drawing = element.ownerSVGElement || (element.localName === "svg" ? element : null);
  if (drawing) {
    const point = new DOMPoint(clientX, clientY).matrixTransform(drawing.getScreenCTM().inverse());
    return [point.x, point.y];
  }
  const box = element.getBoundingClientRect();
  return [clientX - box.left, clientY - box.top];
}

const ARROW_KEYS = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] };
const FAR = 1e5; // steps: beyond every end, where figures stop by themselves
// More along both axes is right and up. What only slides along one of them ignores the other.
const PAGE_KEYS = { PageUp: [5, -5], PageDown: [-5, 5], Home: [-FAR, FAR], End: [FAR, -FAR] };

// Drag with mouse, pen or finger, and with arrow keys when focused (Shift: five times as far, as Page Up and Page
// Down lead; Home and End: to the ends). onMove(x, y, event) gets
// the coordinates of the surrounding svg's viewBox. For the keys, position() says where the handle is now; without it
// the middle of the element is taken. Give the element role, aria-label and tabindex yourself. Returns the clean-up.
/** @type {(element: any, options: DragOptions) => () => void} */
export function draggable(element, { onMove, onStart, onEnd, keyStep = 5, position }) {
  let active = null;
  const middle = () => {
    const box = element.getBoundingClientRect();
    return localPoint(element, box.left + box.width / 2, box.top + box.height / 2);
  };
  const move = (event) => {
    if (event.pointerId === active) onMove(...localPoint(element, event.clientX, event.clientY), event);
  };
  const down = (event) => {
    if (active !== null || (event.pointerType === "mouse" && event.button !== 0)) return;
    active = event.pointerId;
    element.setPointerCapture(active);
    element.focus?.({ preventScroll: true });
    event.preventDefault();
    if (onStart) onStart(event);
    move(event);
  };
  const up = (event) => {
    if (event.pointerId !== active) return;
    active = null;
    if (onEnd) onEnd(event);
  };
  const key = (event) => {
    const direction = ARROW_KEYS[event.key] ?? PAGE_KEYS[event.key];
    if (!direction || event.altKey || event.ctrlKey || event.metaKey) return;
    event.preventDefault();
    const [x, y] = position ? position() : middle();
    const step = keyStep * (event.shiftKey && event.key in ARROW_KEYS ? 5 : 1);
    onMove(x + direction[0] * step, y + direction[1] * step, event);
  };
  const handlers = { pointerdown: down, pointermove: move, pointerup: up, pointercancel: up, keydown: key };
  for (const [name, handler] of Object.entries(handlers)) element.addEventListener(name, handler);
  element.classList.add("mm-draggable");
  return () => {
    for (const [name, handler] of Object.entries(handlers)) element.removeEventListener(name, handler);
    element.classList.remove("mm-draggable");
  };
}

// What can be dragged in a drawing: a shape with room for a finger around it, and a ring that shows the focus.
/** @type {(options: HandleOptions) => any} */
export function handle({ label, min, max, reach = 18, ring, shape }) {
  return svg(
    "g",
    {
      class: "mm-handle",
      tabindex: 0,
      role: "slider",
      "aria-label": label,
      "aria-valuemin": min,
      "aria-valuemax": max,
    },
    svg("circle", { r: reach, fill: "transparent" }),
    svg("circle", { class: "mm-ring", r: ring }),
    shape,
  );
}

// The white disk that most handles are.
/** @type {(r: number) => any} */
export function grip(r) {
  return svg("circle", { class: "mm-grip", r });
}

// How far a key leads: 1 up or right, -1 down or left, five times as far with Shift or by Page Up and Page Down,
// without end by Home and End; 0 for any other event.
/** @type {(event: any) => number} */
export function arrowStep(event) {
  const direction = { ArrowRight: 1, ArrowUp: 1, ArrowLeft: -1, ArrowDown: -1 }[event.key];
  if (direction) return direction * (event.shiftKey ? 5 : 1);
  return { PageUp: 5, PageDown: -5, Home: -Infinity, End: Infinity }[event.key] ?? 0;
}
