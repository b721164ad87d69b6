// All words of PairingLab, one table a language; what holds a number is a function.

export const pairingLabWords = {
  en: {
    title: "Mixing two layouts raises no error, but the score drifts.",
    caption: "The score stays only if table and rotation pair the same channels.",
    more: "More: table layout, permutation",
    "half-split": "half-split",
    interleaved: "interleaved",
    rotation: "rotation",
    table: "table layout",
    tableRow: "the table gives every channel an angle",
    rotationRow: "the rotation joins channels as partners",
    partners: (pairs) => {
      const named = ([channel, angle]) => `channel ${channel} with angle ${angle}`;
      return `Partners: ${pairs.map((partners) => partners.map(named).join(" and ")).join("; ")}`;
    },
    matched: "✓ Matched: the score is constant.",
    converted: "✓ Matched: the interleaved score.",
    mixed: "≠ Mixed: the score drifts.",
    matchedLine: (layout) => `${layout} ✓`,
    permute: "Permute channels",
    undo: "Undo the permutation",
    shift: "slide both positions by",
    shiftHandle: "common shift",
    shiftAxis: "common shift of both positions (logarithmic)",
    shiftValue: (shift, score) => `${shift}, score ${score}`,
    chart: (scores) => `score against shift: ${scores.map(([shift, score]) => `${score} at ${shift}`).join(", ")}`,
    scoreAt: (shift) => `score at shift ${shift}`,
    scoreNow: (shift) => `now, at ${shift}`,
  },
};
