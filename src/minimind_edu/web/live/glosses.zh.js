// The Chinese words of glosses.js as of 61037ce6: Chinese words need no gloss.

export const phraseGlosses = {
  zh: {
    "⇒": "翻译",
    "<s>": "开头",
  },
};
