// The words of the gate's surface, by language.

const activations = { silu: "SiLU", gelu: "GELU", relu: "ReLU" };

export const gateSurfaceWords = {
  en: {
    title: "The gate is a slope: a gated neuron multiplies, a plain one only bends.",
    caption:
      "One neuron reads the input x twice: g from a row of gate_proj, u from a row of up_proj. " +
      "Slate is a positive output, brown a negative one, and darker is larger.",
    more: "More: activations, no gate, exact products",
    gatedPlane: (name) => `gated: ${name}(g) · u`,
    plainPlane: (name) => `plain: ${name}(g)`,
    alongGate: "along g, any u",
    alongGateAt: (u) => `along g, u = ${u}`,
    alongValue: (slope) => `along u: slope ${slope}`,
    gateAxis: "g",
    valueAxis: "u",
    gate: "gate g",
    value: "value u",
    point: "gate g and value u",
    pointAt: (g, u, output) => `g ${g}, u ${u}, output ${output}`,
    surface: (title) => `Surface over g and u, ${title}`,
    verdict: {
      open: (g, slope, u, output) => `At g = ${g} the gate is a slope of ${slope}: u = ${u} becomes ${output}.`,
      shut: (slope) => `The gate is nearly shut: slope ${slope}, so little of u passes.`,
      leaks: (slope) => `Below zero a little passes, with the other sign: slope ${slope}.`,
      plain: "Without a gate only g is read: along u nothing changes.",
    },
    slope: (name) => `slope, ${name}(g)`,
    times: "times u",
    output: "output",
    notRead: "not read",
    activation: "activation",
    activations,
    layer: "the neuron",
    layers: { gated: "with a gate", plain: "without" },
    product: "Two gated neurons multiply exactly: one has gate g and value u, the other −g and −u.",
    first: (name) => `${name}(g) · u`,
    second: (name) => `${name}(−g) · (−u)`,
    sum: "sum: g · u",
  },
};
