// The words of the gate's surface, by language.

const activations = { silu: "SiLU", gelu: "GELU", relu: "ReLU" };

export const gateSurfaceWords = {
  en: {
    title: "The gate is a factor: a gated neuron multiplies, a plain one only bends.",
    caption:
      "One neuron reads the input x twice: g from a row of gate_proj, u from a row of up_proj. " +
      "Slate is a positive output, brown a negative one, and darker is larger.",
    more: "More: no gate, exact products",
    gatedPlane: (name) => `gated: ${name}(g) · u`,
    plainPlane: (name) => `plain: ${name}(g)`,
    alongGate: "along g, any u",
    alongGateAt: (u) => `along g, u = ${u}`,
    alongValue: (factor) => `along u: ${factor} · u`,
    gateAxis: "g",
    valueAxis: "u",
    gate: "gate g",
    value: "value u",
    point: "gate g and value u",
    pointAt: (g, u, output) => `g ${g}, u ${u}, output ${output}`,
    surface: (title) => `Surface over g and u, ${title}`,
    verdict: {
      open: (g, factor, u, output) => `At g = ${g} the gate is ${factor}: u = ${u} becomes ${output}.`,
      shut: (factor) => `The gate is nearly shut, at ${factor}: little of u passes.`,
      leaks: (factor) => `Below zero a little passes, with the other sign: ${factor} · u.`,
      plain: "Without a gate only g is read: along u nothing changes.",
    },
    factor: (name) => `factor, ${name}(g)`,
    times: "times u",
    output: "output",
    notRead: "not read",
    activation: "activation",
    activations,
    layer: "the neuron",
    layers: { gated: "with a gate", plain: "without" },
    product: "Two gated neurons multiply exactly: one has gate g, the other −g, and the second is subtracted.",
    first: (name) => `${name}(g) · u`,
    second: (name) => `${name}(−g) · u`,
    difference: "difference: g · u",
  },
};
