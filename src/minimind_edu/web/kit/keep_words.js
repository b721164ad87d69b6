// The words of what keeps a figure.

export const keepWords = {
  en: {
    keep: "Keep",
    hint: "Keep this picture as it is now",
    link: "Link",
    wait: "…",
    saved: "Saved",
    copied: "Copied",
    inBar: "In the address bar",
    failed: "Not here",
  },
};
