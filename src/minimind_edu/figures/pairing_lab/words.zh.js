// The Chinese words of words.js as of ef6a3895.

export const pairingLabWords = {
  zh: {
    title: "两种配对混用，不会报错，分数却漂走了。",
    caption: "只有表和旋转把同样的通道配成对，分数才不变。",
    more: "更多：表的排法、打乱通道",
    "half-split": "前后配对",
    interleaved: "相邻配对",
    rotation: "旋转",
    table: "表的排法",
    tableRow: "表给每个通道一个角度",
    rotationRow: "旋转把通道两两配对",
    partners: (pairs) => {
      const named = ([channel, angle]) => `通道 ${channel}（角度 ${angle}）`;
      return `配成对的：${pairs.map((partners) => partners.map(named).join("和")).join("；")}`;
    },
    matched: "✓ 一致：分数不变。",
    converted: "✓ 一致：就是相邻配对的分数。",
    mixed: "≠ 混用：分数漂走了。",
    matchedLine: (layout) => `${layout} ✓`,
    permute: "打乱通道",
    undo: "恢复通道次序",
    shift: "两个位置一起移",
    shiftHandle: "共同移动的距离",
    shiftAxis: "两个位置共同移动的距离（对数轴）",
    shiftValue: (shift, score) => `${shift}，分数 ${score}`,
    chart: (scores) => `分数随移动的变化：${scores.map(([shift, score]) => `移 ${shift} 时 ${score}`).join("，")}`,
    scoreAt: (shift) => `移 ${shift} 时的分数`,
    scoreNow: (shift) => `现在，移 ${shift}`,
  },
};
