// All that makes a poem as the end of an address, after its #, and back. What it says is checked: an address may come
// from anybody. No DOM. tests/inside/test_inside_verse_link.py reads back what it wrote.
//
//   begin=远上寒山石径斜   what is typed of it        rhyme=花      what its second line shall end with
//   form=4x7             lines and their length     seed=12345    of all draws; without it nothing is written yet
//   heat=0.8             the temperature            silent=1.3    heads that add nothing

export const AT_FIRST = { begin: "", rhyme: "", lines: 4, width: 5, seed: null, temperature: 0.8, silenced: [] };
export const HOTTEST = 1.5;
export const MOST_SEED = 2 ** 31;
const MOST_TYPED = 200; // characters

/** @type {(asked: typeof AT_FIRST) => string} */
export function addressOf({ begin, rhyme, lines, width, seed, temperature, silenced }) {
  const fields = {
    begin,
    rhyme,
    form: `${lines}x${width}`,
    seed: seed === null ? "" : String(seed),
    heat: temperature === AT_FIRST.temperature ? "" : String(temperature),
    silent: silenced.join("_"),
  };
  return String(new URLSearchParams(Object.entries(fields).filter(([, value]) => value)));
}

/** What an address says, or AT_FIRST where it says nothing that fits. hash: without its #. */
/** @type {(hash: string, config: any) => typeof AT_FIRST} */
export function readAddress(hash, { num_hidden_layers: L, num_attention_heads: H }) {
  const fields = new URLSearchParams(hash);
  const [, lines, width] = /^([48])x([57])$/.exec(fields.get("form") ?? "") ?? [null, AT_FIRST.lines, AT_FIRST.width];
  const whole = (text, below) => (/^\d{1,10}$/.test(text ?? "") && Number(text) < below ? Number(text) : null);
  const temperature = Number(fields.get("heat") ?? AT_FIRST.temperature);
  const places = (fields.get("silent") ?? "").split("_").map((place) => place.split("."));
  const heads = places.filter(
    ([layer, head, ...more]) => !more.length && whole(layer, L) !== null && whole(head, H) !== null,
  );
  return {
    begin: (fields.get("begin") ?? "").slice(0, MOST_TYPED),
    rhyme: (fields.get("rhyme") ?? "").slice(0, MOST_TYPED),
    lines: Number(lines),
    width: Number(width),
    seed: whole(fields.get("seed"), MOST_SEED),
    temperature: temperature >= 0 && temperature <= HOTTEST ? temperature : AT_FIRST.temperature,
    silenced: [...new Set(heads.map(([layer, head]) => `${Number(layer)}.${Number(head)}`))].sort(),
  };
}
