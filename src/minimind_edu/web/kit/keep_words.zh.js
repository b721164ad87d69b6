// The Chinese words of keep_words.js as of 9fcb9c46.

export const keepWords = {
  zh: {
    keep: "存图",
    hint: "存下这张图现在的样子",
    link: "链接",
    wait: "…",
    saved: "已保存",
    copied: "已复制",
    inBar: "见地址栏",
    failed: "这里不行",
  },
};
