// What LongerText says.

export const longerTextWords = {
  en: {
    title: "",
    titles: {
      head: "Trained on 96 words, reading 384: how much stretch does it need?",
      stretch: "Red is what no training has shown.",
      far: "Stretch 8 again: what if near words stay where they are?",
    },
    caption:
      "Bars: loss above the least possible, mean of ten draws of 12 stories; the thin line is their spread, dashes " +
      "show it without a stretch. Dials: the 16 pairs; gray angles were met in training, red ones are new.",
    more: "",
    stretch: "stretch s",
    times: (stretch) => `${stretch}`,
    far: "slow the far words only",
    model: "model",
    models: { living: "the book's", twin: "its twin" },
    loss: "nats above the least loss",
    words: (first, last, isShort) => (isShort ? `${first}–${last}` : `words ${first}–${last}`),
    word: "looks back from word",
    away: (word) => `word ${word} looks back`,
    back: (distance) => `${distance} back`,
    met: "met",
    unmet: (isShort) => (isShort ? "never met" : "never met in training"),
    dial: (pair, met, isNew) => `pair ${pair}: ${met} degrees met in training${isNew ? ", and new ones now" : ""}`,
    picture: (stretch, losses) => `Stretch ${stretch}: the quarters of the text lose ${losses.join(", ")} nats`,
    verdict: {
      best: (stretch, first, last, loss) =>
        `Stretch ${stretch} is the best of the eight for words ${first} to ${last}: ${loss}.`,
      more: (stretch) => `Stretch ${stretch} is more than this text needs: no quarter loses least here.`,
      far: (stretch, loss, all) => `Stretch ${stretch}, last quarter: ${loss}. With near words slowed, too: ${all}.`,
    },
  },
};
