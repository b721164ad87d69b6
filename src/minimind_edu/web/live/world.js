// The house of minimind_edu.world in a page: its stories, and the exact distribution of every next word. No DOM.
// All words and weights come from world.tables(); tests/web/test_live_world.py compares everything here with Python.

/**
 * Lists of words are in both languages; weights of choices are whole numbers.
 * @typedef {{ words: string[], languages: string[], translate: string, people: string[][], objects: string[][],
 *   places: string[][], pronouns: string[][], marks: string[][], put_down: string[], told: string[],
 *   sentences: Record<string, string[]>, slots: Record<string, "people" | "objects" | "places">,
 *   weights: Record<string, number>, after_question: number, by_objects: string[], language: number[],
 *   translation: number[], pronoun: number[], most: { people: number, objects: number, places: number } }} Tables
 * @typedef {{ [name in "people" | "objects" | "places" | "pronouns" | "marks"]: number[][] }} WordIds
 * @typedef {Omit<Tables, keyof WordIds> & WordIds & { id: Map<string, number>, kinds: string[] }} Grammar
 * @typedef {(weights: number[]) => number} Pick  the index of one weight
 * @typedef {{ P?: number, Q?: number, X?: number, A?: number, B?: number }} Slots
 * @typedef {{ kind: string, language: number, slots: Slots, ids: number[] }} Sentence
 * @typedef {{ place: Record<string, string>, holder: Record<string, string>, where: Record<string, string> }} State
 * @typedef {{ words: string[], encode(text: string): number[], decode(ids: number[]): string, reader(): StoryReader,
 *   distributions(ids: number[]): { rows: Float64Array[], brokenAt: number | null },
 *   nextWords(ids: number[]): number[], stateAfter(ids: number[]): State,
 *   write(random: () => number, length: number, languages?: string): number[] }} World
 */

const LETTER = /[a-zA-Z]/;
const NOBODY = 8; // the index that follows the eight people
const EIGHT = [0, 1, 2, 3, 4, 5, 6, 7];

/** @type {(weights: { reduce: Function }) => number} */
const totalOf = (weights) => weights.reduce((sum, weight) => sum + weight, 0);

/** One of the items, each as likely as the others. @type {<T>(pick: Pick, items: T[]) => T} */
const oneOf = (pick, items) => items[pick(items.map(() => 1))];

/** One of the items; where there are both, the old and the new ones are equally likely. */
/** @type {(pick: Pick, old: number[], fresh: number[]) => number} */
function oldOrNew(pick, old, fresh) {
  const both = old.length > 0 && fresh.length > 0;
  return oneOf(pick, both ? [old, fresh][pick([1, 1])] : old.length ? old : fresh);
}

/** @type {<T>(items: T[]) => T[][]} */
function permutations(items) {
  if (items.length < 2) return [items];
  return items.flatMap((item, at) =>
    permutations(items.filter((_, other) => other !== at)).map((rest) => [item, ...rest]),
  );
}

/** A pick that follows a path of choices, and takes the first one where the path ends. */
/** @type {(path: number[]) => { widths: number[], probability: number, pick?: Pick }} */
function replay(path) {
  const taken = { widths: [], probability: 1 };
  taken.pick = (weights) => {
    if (weights.length === 1) return 0;
    if (taken.widths.length === path.length) path.push(0);
    const choice = path[taken.widths.length];
    taken.widths.push(weights.length);
    taken.probability *= weights[choice] / totalOf(weights);
    return choice;
  };
  return taken;
}

/** A random pick. random() is in [0, 1). @type {(random: () => number) => Pick} */
function dice(random) {
  return (weights) => {
    let rest = Math.floor(random() * totalOf(weights));
    return weights.findIndex((weight) => (rest -= weight) < 0);
  };
}

/** The tables in the form in which the grammar reads them: sentences and lists of words as ids. */
/** @type {(tables: Tables) => Grammar} */
function grammarOf(tables) {
  const id = new Map(tables.words.map((word, at) => [word, at]));
  const ids = (lists) => lists.map((words) => words.map((word) => id.get(word)));
  return {
    ...tables,
    id,
    people: ids(tables.people),
    objects: ids(tables.objects),
    places: ids(tables.places),
    pronouns: ids(tables.pronouns),
    marks: ids(tables.marks),
    kinds: Object.keys(tables.weights),
  };
}

/** What a text has told so far, and what may come next: House of minimind_edu.world.house. */
class House {
  /** @param {Grammar} grammar  @param {number[]} languages */
  constructor(grammar, languages) {
    this.grammar = grammar;
    this.languages = languages;
    this.place = new Map(); // person -> place
    this.holder = new Map(); // object -> person or NOBODY
    this.lies = new Map(); // object that nobody holds -> place
    this.seen = []; // the places that were mentioned
    /** @type {number | null} */
    this.spoken = null; // the language of the sentence before
    /** @type {Sentence | null} */
    this.statement = null; // the sentence before, if a translation may follow
    this.asked = false; // whether the sentence before was a question
    this.named = []; // the people of the statement before, whom "she" or "he" may mean
    this.look();
  }

  /** Find out who can do what. */
  look() {
    const { place, holder, lies, grammar } = this;
    const people = [...place.keys()];
    const objects = [...holder.keys()];
    const ofEach = (list) => new Map(people.map((p) => [p, list(p)]));
    this.held = ofEach((p) => objects.filter((x) => holder.get(x) === p));
    const free = people.filter((p) => !this.held.get(p).length); // everybody holds one thing at most
    this.near = ofEach((p) => free.filter((q) => q !== p && place.get(q) === place.get(p)));
    this.lying = ofEach((p) => [...lies.keys()].filter((x) => lies.get(x) === place.get(p)));
    this.unseen = objects.length < grammar.most.objects ? EIGHT.filter((x) => !holder.has(x)) : [];
    const some = (list) => list.length > 0;
    this.able = {
      is: people.length < grammar.most.people ? EIGHT.filter((p) => !place.has(p)) : [],
      go: people,
      take: free.filter((p) => some(this.lying.get(p)) || some(this.unseen)),
      drop: people.filter((p) => some(this.held.get(p))),
      give: people.filter((p) => some(this.held.get(p)) && some(this.near.get(p))),
      where: people,
      "where object": objects,
      who: objects,
      people: people.length > 1 ? permutations(people) : [],
      objects: objects.length > 1 ? permutations(objects) : [],
    };
  }

  /** Choose one sentence that may come next: { kind, language, slots, ids }. `happen` makes it true. */
  /** @type {(pick: Pick) => Sentence} */
  sentence(pick) {
    const { grammar, statement } = this;
    if (statement && pick(grammar.translation)) {
      const language = 1 - statement.language;
      const ids = [grammar.id.get(grammar.translate), ...this.say(statement.kind, language, statement.slots)];
      return { kind: "translation", language, slots: statement.slots, ids };
    }
    const language = this.languageOf(pick);
    const kinds = grammar.kinds.filter((kind) => this.able[kind].length);
    const kind = kinds[pick(kinds.map((each) => this.weightOf(each)))];
    const who = oneOf(pick, this.able[kind]); // or which object, or in which order
    if (kind === "people" || kind === "objects") {
      return { kind, language, slots: {}, ids: this.rollCall(kind, language, who) };
    }
    if (kind === "where object" || kind === "who") {
      const slots = kind === "who" ? { X: who, Q: this.holder.get(who) } : { X: who, A: this.placeOf(who) };
      return { kind, language, slots, ids: this.say(kind, language, slots) };
    }
    const slots = { P: who, A: kind === "is" ? this.somewhere(pick) : this.place.get(who) };
    const pronoun = kind === "go" ? this.pronounFor(pick, who, language) : null;
    if (kind === "go") slots.B = this.somewhere(pick, slots.A);
    else if (kind === "take") slots.X = oldOrNew(pick, this.lying.get(who), this.unseen);
    else if (kind === "drop" || kind === "give") slots.X = oneOf(pick, this.held.get(who));
    if (kind === "give") slots.Q = oneOf(pick, this.near.get(who));
    return { kind, language, slots, ids: this.say(kind, language, slots, pronoun) };
  }

  /** Most often that of the sentence before. @type {(pick: Pick) => number} */
  languageOf(pick) {
    if (this.spoken === null || this.languages.length === 1) return oneOf(pick, this.languages);
    return pick(this.grammar.language) ? 1 - this.spoken : this.spoken;
  }

  /** After a question it is likelier that something is told; the more objects, the likelier is a question about one. */
  /** @type {(kind: string) => number} */
  weightOf(kind) {
    const { weights, told: statements, after_question: times, by_objects: byObjects } = this.grammar;
    if (statements.includes(kind)) return weights[kind] * (this.asked ? times : 1);
    return weights[kind] * (byObjects.includes(kind) ? this.holder.size ** 2 : 1);
  }

  /** Where an object is: where it lies, or where its holder is. @type {(object: number) => number} */
  placeOf(object) {
    const holder = this.holder.get(object);
    return holder === NOBODY ? this.lies.get(object) : this.place.get(holder);
  }

  /** "she" or "he", if that can mean nobody else and is picked. */
  /** @type {(pick: Pick, who: number, language: number) => number | null} */
  pronounFor(pick, who, language) {
    const alike = this.named.filter((p) => p % 2 === who % 2);
    const clear = alike.length === 1 && alike[0] === who;
    return clear && pick(this.grammar.pronoun) ? this.grammar.pronouns[language][who % 2] : null;
  }

  /** @type {(pick: Pick, but?: number) => number} */
  somewhere(pick, but = null) {
    const fresh = this.seen.length < this.grammar.most.places ? EIGHT.filter((a) => !this.seen.includes(a)) : [];
    return oldOrNew(
      pick,
      this.seen.filter((a) => a !== but),
      fresh,
    );
  }

  /** The ids of one sentence; a pronoun takes the place of P. */
  /** @type {(kind: string, language: number, slots: Slots, pronoun?: number) => number[]} */
  say(kind, language, slots, pronoun = null) {
    const { grammar } = this;
    return grammar.sentences[kind][language].split("|").map((word) => {
      if (word === "P" && pronoun !== null) return pronoun;
      return word in grammar.slots ? grammar[grammar.slots[word]][language][slots[word]] : grammar.id.get(word);
    });
  }

  /** The ids of a roll call: of people and their places, or of objects and their holders. */
  /** @type {(kind: string, language: number, order: number[]) => number[]} */
  rollCall(kind, language, order) {
    const { people, objects, places, marks } = this.grammar;
    const [keys, values, find] = kind === "people" ? [people, places, this.place] : [objects, people, this.holder];
    const [stop, , colon, comma] = marks[language];
    const entries = order.flatMap((key) => [keys[language][key], colon, values[language][find.get(key)], comma]);
    return [...this.say(kind, language, {}), ...entries.slice(0, -1), stop];
  }

  /** Change the house as the sentence says. @type {(sentence: Sentence) => void} */
  happen(sentence) {
    const { kind, slots } = sentence;
    const isTold = this.grammar.told.includes(kind);
    this.spoken = sentence.language;
    this.statement = isTold ? sentence : null;
    if (kind === "translation") return;
    this.asked = !isTold;
    this.named = isTold ? ["P", "Q"].filter((letter) => letter in slots).map((letter) => slots[letter]) : [];
    if (kind === "is" || kind === "go") {
      const goal = kind === "is" ? slots.A : slots.B;
      this.place.set(slots.P, goal);
      if (!this.seen.includes(goal)) this.seen.push(goal);
    } else if (kind === "take" || kind === "give") {
      this.holder.set(slots.X, kind === "take" ? slots.P : slots.Q);
      this.lies.delete(slots.X);
    } else if (kind === "drop") {
      this.holder.set(slots.X, NOBODY);
      this.lies.set(slots.X, slots.A);
    }
    this.look();
  }

  /** Every sentence that may come next, as [probability, sentence]: the grammar, replayed over all picks. */
  /** @type {() => [number, Sentence][]} */
  sentences() {
    /** @type {[number, Sentence][]} */
    const found = [];
    const path = [];
    do {
      const taken = replay(path);
      const sentence = this.sentence(taken.pick);
      found.push([taken.probability, sentence]);
      while (path.length && path.at(-1) === taken.widths[path.length - 1] - 1) path.pop();
      if (path.length) path[path.length - 1] += 1;
    } while (path.length);
    return found;
  }
}

/** A story read word by word: a word more costs its own part only. */
class StoryReader {
  /** @param {Grammar} grammar */
  constructor(grammar) {
    this.grammar = grammar;
    this.length = 0; // words that were read; a story begins with <s>
    /** @type {[number, { ids: number[] }][]} */
    this.options = [[1, { ids: [0] }]]; // the sentences that the words read since the last whole one may become
    this.begun = 0; // words read of the sentence
    /** @type {House | null} */
    this.house = null;
  }

  /** The exact distribution [V] of the word that comes next. @type {() => Float64Array} */
  next() {
    const row = new Float64Array(this.grammar.words.length);
    for (const [probability, { ids }] of this.options) row[ids[this.begun]] += probability;
    const sum = totalOf(row);
    return row.map((share) => share / sum);
  }

  /** Read the next word; false, and nothing is read, if it cannot follow. @type {(id: number) => boolean} */
  push(id) {
    const left = this.options.filter(([, { ids }]) => ids[this.begun] === id);
    if (!left.length) return false;
    this.options = left;
    this.begun += 1;
    this.length += 1;
    const [, sentence] = left[0];
    if (sentence.ids.length === this.begun) this.finish(sentence); // nothing else begins like a whole sentence
    return true;
  }

  finish(sentence) {
    if (this.house) this.house.happen(sentence);
    else this.house = new House(this.grammar, [0, 1]);
    this.options = this.house.sentences();
    this.begun = 0;
  }
}

/** Who is where and who holds what: the reader of minimind_edu.world.state, which does not know the grammar. */
class Account {
  /** @param {Tables} tables */
  constructor(tables) {
    this.tables = tables;
    this.english = new Map(
      ["people", "objects", "places"].flatMap((name) => {
        const [english, chinese] = tables[name];
        return chinese.map((word, at) => [word, english[at]]);
      }),
    );
    this.meant = new Map(); // pronoun -> the person named last whom it fits
    /** @type {Record<string, string>} */
    this.place = {}; // person, or object that lies -> place
    /** @type {Record<string, string>} */
    this.holder = {}; // object -> person or "nobody"
  }

  /** Change the account as one statement says; a sentence that says nothing changes nothing. */
  read(sentence) {
    const { tables, meant, place, holder } = this;
    const words = sentence.map((word) => this.english.get(word) ?? word).map((word) => meant.get(word) ?? word);
    const [people, things, places] = [tables.people, tables.objects, tables.places].map(([english]) =>
      words.filter((word) => english.includes(word)),
    );
    for (const person of people) {
      const fits = tables.people[0].indexOf(person) % 2;
      for (const pronouns of tables.pronouns) meant.set(pronouns[fits], person);
    }
    const putDown = words.some((word) => tables.put_down.includes(word));
    if (!things.length) {
      if (people.length && places.length) place[people[0]] = places.at(-1);
    } else if (putDown && places.length) {
      holder[things[0]] = tables.people[0][NOBODY];
      place[things[0]] = places[0];
    } else if (!putDown && people.length) {
      holder[things[0]] = people.at(-1); // who picks it up, or to whom it is given
      delete place[things[0]];
    }
  }

  /** { place, holder, where }; where: every person and object -> its place, if the text has told it. */
  /** @type {() => State} */
  summary() {
    const { place, holder } = this;
    const carried = Object.entries(holder).filter(([, person]) => person in place);
    return { place, holder, where: { ...place, ...Object.fromEntries(carried.map(([x, p]) => [x, place[p]])) } };
  }
}

/** The ids of a text, with or without spaces. Throws an Error whose `word` is no word of this world. */
/** @type {(grammar: Grammar, longestFirst: string[], text: string) => number[]} */
function encodeText(grammar, longestFirst, text) {
  const ids = [];
  let rest = text.trim();
  const joins = (word) => LETTER.test(word.at(-1)) && LETTER.test(rest[word.length] ?? ""); // "to" in "tower"
  while (rest) {
    const word = longestFirst.find((each) => rest.startsWith(each) && !joins(each));
    if (word === undefined) {
      const [unknown] = rest.match(/[\p{L}\p{N}_]+|\S/u);
      throw Object.assign(new Error(`"${unknown}" is no word of this world`), { word: unknown });
    }
    ids.push(grammar.id.get(word));
    rest = rest.slice(word.length).trimStart();
  }
  return ids;
}

/** The text of words: no space before a mark, nor between two Chinese words. */
/** @type {(tables: Tables, words: string[]) => string} */
function joinWords({ marks, translate }, words) {
  const ascii = (text) => text.charCodeAt(0) < 128;
  return words.reduce((text, word) => {
    const last = text.slice(-1);
    const chinese = !ascii(word) && last !== translate && !ascii(last) && word !== translate;
    return text + (marks[0].includes(word) || chinese ? word : ` ${word}`);
  });
}

/**
 * The world of `tables`, as minimind_edu.world.tables() gives them. Stories are arrays of ids that begin with 0, `<s>`.
 *
 *   words             [V], by id
 *   encode(text)      ids; throws an Error whose `word` is no word of this world
 *   decode(ids)       text
 *   reader()          reads a story word by word: push(id) -> whether it can follow, next() -> Float64Array [V]
 *   distributions(ids) -> { rows, brokenAt }: rows[t] [V] is the exact distribution of the word after word t.
 *                     brokenAt is the position of the first word that cannot follow, where the rows end; or null
 *   nextWords(ids)    the ids that may follow; none after a story that is broken
 *   write(random, length, languages)  a story of `length` words; random() is in [0, 1), languages like "en zh"
 *   stateAfter(ids)   { place, holder, where } in English words, whatever the text is: it believes what is said
 */
/** @type {(tables: Tables) => World} */
export function createWorld(tables) {
  const grammar = grammarOf(tables);
  const { words } = tables;
  const longestFirst = [...words].sort((a, b) => b.length - a.length);
  const reader = () => new StoryReader(grammar);

  function distributions(ids) {
    const story = reader();
    const rows = [];
    for (const [at, id] of ids.entries()) {
      if (!story.push(id)) return { rows, brokenAt: at };
      rows.push(story.next());
    }
    return { rows, brokenAt: null };
  }

  function nextWords(ids) {
    const story = reader();
    if (!ids.every((id) => story.push(id))) return [];
    const row = story.next();
    return words.map((_, id) => id).filter((id) => row[id] > 0);
  }

  function write(random, length, languages = tables.languages.join(" ")) {
    const spoken = languages.split(" ").map((name) => tables.languages.indexOf(name));
    const house = new House(grammar, spoken);
    const pick = dice(random);
    const ids = [0];
    while (ids.length < length) {
      const sentence = house.sentence(pick);
      house.happen(sentence);
      ids.push(...sentence.ids);
    }
    return ids.slice(0, length);
  }

  function stateAfter(ids) {
    const account = new Account(tables);
    const silent = new Set([tables.translate, ...tables.marks.map((marks) => marks[1])]);
    const stops = tables.marks.map((marks) => marks[0]);
    let sentence = [];
    for (const id of ids) {
      sentence.push(words[id]);
      if (!stops.includes(words[id])) continue;
      if (!sentence.some((word) => silent.has(word))) account.read(sentence);
      sentence = [];
    }
    return account.summary();
  }

  return {
    words,
    encode: (text) => encodeText(grammar, longestFirst, text),
    decode: (ids) =>
      ids.length
        ? joinWords(
            tables,
            Array.from(ids, (id) => words[id]),
          )
        : "",
    reader,
    distributions,
    nextWords,
    write,
    stateAfter,
  };
}
