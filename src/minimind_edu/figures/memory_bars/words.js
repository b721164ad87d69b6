// What the bars of memory say.

export const memoryBarsWords = {
  en: {
    title: "Where does the memory go?",
    caption:
      "Full width: the card; where it is too small, a line marks its end. Each part begins where the one above ends; " +
      "gradients come as activations go.",
    more: "More: other models",
    most: (part, share) => `Most of it is ${part}: ${share}`,
    all: "at most",
    parts: {
      weights: "weights",
      reference: "reference",
      adam: "Adam",
      copies: "16-bit copies",
      cache: "KV cache",
      activations: "activations",
      logits: "logits",
      gradients: "gradients",
    },
    moments: {
      backward: "when the backward pass begins",
      step: "while Adam steps",
      serve: "while it writes",
    },
    fits: (card, bytes, when) => `Fits ${card} GB: ${bytes} at most, ${when}.`,
    doesNotFit: (card, bytes, when) => `Out of memory on ${card} GB: ${bytes}, ${when}.`,
    cardLabel: (card, share) => `${share} of a card of ${card} GB`,
    cardOf: (card) => `${card} GB`,
    percent: (number) => `${number} %`,
    kind: "what runs (training: pre-training or SFT)",
    kinds: { train: "training", lora: "LoRA", dpo: "DPO", serve: "serving" },
    batch: "texts at once (batch)",
    length: "tokens of each",
    card: "GPU memory",
    half: "bfloat16 products (autocast)",
    model: "model",
    models: { small: "MiniMind2 small", base: "MiniMind2", minimind3: "MiniMind3" },
    tokens: "tokens at once",
    perToken: "a token keeps",
    measured: "on an H200",
  },
};
