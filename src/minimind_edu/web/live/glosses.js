// What the Chinese words of the world mean, by the language of the page.

export const phraseGlosses = {
  en: {
    在: "is in",
    从: "from",
    去: "goes to",
    被: "by",
    拿起了: "picked up",
    放下了: "put down",
    交给了: "given to",
    在哪里: "where is",
    大家: "everybody",
    谁拿着: "who has",
    什么: "what",
    "⇒": "translation",
    "<s>": "start",
  },
};
