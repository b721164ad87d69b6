// The Chinese words of words.js as of 8b7629a0.

const activations = { silu: "SiLU", gelu: "GELU", relu: "ReLU" };

export const gateSurfaceWords = {
  zh: {
    title: "门是一个因子：有门的神经元做乘法，没有门的只会拐弯。",
    caption:
      "一个神经元把输入 x 读两遍：g 出自 gate_proj 的一行，u 出自 up_proj 的一行。" +
      "蓝灰是正的输出，棕色是负的，颜色越深，绝对值越大。",
    more: "更多：不要门、精确的乘积",
    gatedPlane: (name) => `有门：${name}(g) · u`,
    plainPlane: (name) => `没有门：${name}(g)`,
    alongGate: "沿着 g，u 任意",
    alongGateAt: (u) => `沿着 g，u = ${u}`,
    alongValue: (factor) => `沿着 u：${factor} · u`,
    gateAxis: "g",
    valueAxis: "u",
    gate: "门 g",
    value: "值 u",
    point: "门 g 和值 u",
    pointAt: (g, u, output) => `g ${g}，u ${u}，输出 ${output}`,
    surface: (title) => `g 和 u 上的曲面，${title}`,
    verdict: {
      open: (g, factor, u, output) => `g = ${g} 时，门是 ${factor}：u = ${u} 变成 ${output}。`,
      shut: (factor) => `门差不多关上了，只有 ${factor}：u 几乎过不去。`,
      leaks: (factor) => `零以下会漏过一点，符号相反：${factor} · u。`,
      plain: "没有门，就只读 g：沿着 u 走，什么也不变。",
    },
    factor: (name) => `因子 ${name}(g)`,
    times: "乘以 u",
    output: "输出",
    notRead: "没有读",
    activation: "激活函数",
    activations,
    layer: "神经元",
    layers: { gated: "有门", plain: "没有门" },
    product: "两个有门的神经元能精确地做乘法：一个的门是 g，另一个的是 −g，两者相减。",
    first: (name) => `${name}(g) · u`,
    second: (name) => `${name}(−g) · u`,
    difference: "差：g · u",
  },
};
