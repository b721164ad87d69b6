// The colors of the theme for what is drawn on a canvas, which knows no variables of a style.

import { h } from "../kit/kit.js";

/** In the theme of now: text, faint text, what is read and what experts do, as CSS; rgb: what is read, [r, g, b]. */
export function colorsOf(root) {
  const named = (name) => {
    const probe = h("span", { style: { color: `var(--mm-${name})` } });
    root.append(probe);
    const { color } = getComputedStyle(probe);
    probe.remove();
    return color;
  };
  const [ink, read, faint, feed] = ["ink", "v", "muted", "ffn"].map(named);
  const context = h("canvas", { width: 1, height: 1 }).getContext("2d", { willReadFrequently: true });
  context.fillStyle = read;
  context.fillRect(0, 0, 1, 1);
  return { ink, read, faint, feed, rgb: [...context.getImageData(0, 0, 1, 1).data].slice(0, 3) };
}
