// The words of the living model's page, by language.

const percentOf = (part) => {
  const value = 100 * part;
  const isRound = (value >= 10 && value <= 90) || value >= 99.95 || value < 0.05;
  return `${value.toFixed(isRound ? 0 : 1)}\u00a0%`;
};
const counted = (count, singular, plural) => (count === 1 ? `1 ${singular}` : `${count} ${plural}`);

export const minimindLiveWords = {
  en: {
    tongue: 0, // the language of the page, as the world counts them
    title: "Tell MiniMind a story, ask about it, and look inside while it answers.",
    titleCompact: "This model runs in your browser. It reads the story and answers.",
    caption: (words, parameters, trained) =>
      `${words} words and the rules of one house: that is all this model of ${parameters} weights has ever seen. It ` +
      `gets worse beyond ${trained} words. This is not language understanding.`,
    more: "More",
    openPage: "Seven presses through it: open the whole page",
    percent: percentOf,
    quoted: (word) => `“${word}”`,
    glossed: (word, gloss) => (gloss ? `${word} (${gloss})` : word),
    loading: "The weights are on their way…",
    unavailable: "The weights did not arrive: this page shows its first state only. Reload it.",

    story: "The story so far: arrow keys move along it",
    examples: ["Who has the ball?", "Where did the key go?", "Where is everybody?"],
    exampleLabel: "Other stories:",
    begin: "Start empty",
    undo: "Undo",
    chipWritten: "written by the model",
    chipBroken: "against the rules of the world",
    chipAfter: "after a break of the rules",
    road: "Four blocks of four heads: what each would say here",
    roadHead: (layer, head) => `Silence head ${head} of block ${layer}`,
    instead: (word) => `Instead of “${word}”`,
    openBelow: "Open it in the model",
    noInstead: "Press any word of the story to change it.",
    full: (most) => `This story is full: the page reads ${most} words, and no more.`,
    beginning: "Every story begins here.",
    unjudged: "The rules were broken before this word.",
    broken: (word) => `By the rules, “${word}” cannot stand here. The model reads it anyway.`,

    after: (word) => `What comes after “${word}”?`,
    bar: (word, model, exact, before) =>
      `${word}: ${model === null ? "not known yet" : percentOf(model)}` +
      (before === null ? "" : `, before ${percentOf(before)}`) +
      (exact === null ? "" : `, exactly ${percentOf(exact)}`),
    guessTitle: "Where is the drum? Your guess first.",
    guess: (word) => `Guess: ${word}`,
    guessHint: "Nothing is answered yet. Press a place, or let the model begin.",
    legend: "the exact probability in this world",
    noLegend: "The story has left the rules: there is no exact answer to compare with.",
    next: "Next word",
    play: "Play",
    stop: "Stop",
    sampling: "How a word is drawn",
    temperature: "temperature",
    greedy: "0, the likeliest",
    topK: "top-k",
    topP: "top-p",
    all: "all",

    palette: "Write the next word yourself",
    languages: ["English", "中文"],
    language: "words in",
    groups: {
      people: "people",
      objects: "things",
      places: "places",
      verbs: "verbs",
      questions: "questions",
      marks: "marks",
    },
    anything: "also words that the rules forbid",

    inside: "Inside, at this word",
    insideNote: "Each square is a head: its rows read, its columns are read.",
    gap: " ",
    insidePress: "Press any part to open it; point at a head to see what it reads.",
    embedding: "embedding",
    block: (layer) => `block ${layer}`,
    norm: "norm",
    ffn: "feed-forward",
    stream: "stream",
    finalNorm: "final norm",
    headTitle: (layer, head) => `Block ${layer}, head ${head}`,
    silent: (name) => `${name}, silent`,
    silence: "silence this head",
    bigMap: "Who reads whom in this head. Rows read, columns are read; the list says it for one word.",
    point: "Point at the map, or press a row to choose its word.",
    pointed: (reader, read, weight) => `“${reader}” reads “${read}”: ${percentOf(weight)}`,
    channel: (channel, value) => `channel ${channel}: ${value}`,
    later: (reader, read) => `“${read}” comes after “${reader}”, which cannot read it`,
    open: (part, layer) => (layer ? `${part} of block ${layer}` : part),
    chapter: (label) => `Chapter ${label}`,
    close: "Close",

    zoom: {
      embedding: (word, width) => `“${word}” is ${width} numbers, a row of the embedding table`,
      nearest: "rows that point the same way (cosine)",
      norm: (layer) => `The norm before the attention of block ${layer}`,
      norm2: "and the one before its feed-forward network",
      finalNorm: "The norm before the logits",
      before: "before",
      afterwards: "after",
      rms: (value) => `rms ${value}`,
      gains: (low, high) => `divided by its rms, then multiplied by learned gains from ${low} to ${high}`,
      reads: (word, position) => `“${word}” at position ${position} reads`,
      query: (word) => `query of “${word}”`,
      key: (word) => `key of “${word}”`,
      products: "their products",
      sum: (value) => `sum ${value}`,
      score: (value) => `After RoPE. The score is this sum by √D: ${value}, the largest here, so it is read most.`,
      ffn: (layer, count) => `The strongest of ${count} neurons of block ${layer}`,
      columns: ["neuron", "gate", "SiLU(gate)", "up", "product"],
      stream: (layer) => `What block ${layer} adds to the stream`,
      parts: ["comes in", "attention adds", "feed-forward adds", "goes out"],
      lens: "read with the final norm and the embedding table, the stream would say here",
    },

    cache: (kib) => `KV cache: ${kib}`,
    cacheNote: (positions, layers, kvHeads, dim, kib, heads, all) =>
      `${counted(positions, "position", "positions")} × ${layers} blocks × 2 (key and value) × ${kvHeads} heads × ` +
      `${dim} numbers × 4 bytes = ${kib}. With one key/value head for each of ${heads} query heads: ${all}.`,
    cacheLabel: (positions) => `Keys and values of ${counted(positions, "position", "positions")} in every block`,
    kib: (bytes) => `${(bytes / 1024).toFixed(1)} KiB`,

    train: {
      task:
        "A smaller model of 21,440 weights, random at first, learns to translate English into Chinese. " +
        "It predicts the next word of sentences that the grammar writes. The dashed line is their entropy, the " +
        "lowest loss that any model can reach.",
      start: "Train",
      stop: "Stop",
      changes: { positions: "no positions", residual: "no residual", initialization: "initialization 0.02" },
      unchanged: "nothing changed",
      lossAxis: "loss, nats per word",
      steps: (count) => `${count} steps`,
      entropy: (entropy) => `entropy ${entropy}`,
      chart: (steps, loss, entropy) =>
        `Loss after ${counted(steps, "step", "steps")}: ${loss} nats per word; entropy: ${entropy}.`,
      chartEmpty: "The loss of each step will appear here.",
      compared: (run, before) => `Solid: ${run}. Faint: the run before, ${before}. Both see the same sentences.`,
      writtenAt: (step) => `What it writes after step ${step}:`,
      insteadOf: (word) => `Right would be ${word}`,
      reached: (steps, averaged, excess) =>
        `After ${counted(steps, "step", "steps")} its loss, averaged over the last ${averaged}, is ${excess} nats ` +
        "above the best that any model can do.",
      wrote: (step, right, all, unseen) =>
        `At step ${step} it translates ${right} of ${all} sentences right` +
        (unseen ? `, ${unseen} of them about a person and a thing that it never saw together.` : "."),
      failed: (message) => `The training stopped: ${message}.`,
    },

    tabs: { label: "What to do with it", write: "Write", break: "Break", train: "Train" },
    noHead:
      "Point at a head above: the words that it reads are tinted. Press it: it falls silent, and what it reads " +
      "stands here. Which does this answer need?",
    breaks: {
      long: (words) => `Go on past ${words} words`,
      unknown: "Ask about somebody who is not there",
    },
    guideLabel: "Seven presses",
    guideStart: (parameters) => `${parameters} weights, running in your browser. Seven presses show what they do.`,
    guideStep: (number, text) => `${number} · ${text}`,
    guideAgain: "Start again",
    guide: {
      ask: "Let the model answer",
      other: "Ask the same in Chinese",
      owner: "Ask where Mia is instead",
      look: "Open the head that matters most",
      silence: "Silence this head",
      translate: "Ask for a translation instead",
      write: "Let it write by itself",
    },
    saw: {
      right: "That is right.",
      wrong: (word) => `Right would be ${word}.`,
      ask: (guess, answer, part, verdict) =>
        (guess === null ? "" : guess === answer ? "You agree. " : `You said ${guess}. `) +
        `It says ${answer} with ${percentOf(part)}. ${verdict}`,
      other: (answer, part, verdict) =>
        `The story is English, the question now Chinese. It says ${answer} with ${percentOf(part)}. ${verdict}`,
      owner: (answer, part, verdict) =>
        `The same story, asked about Mia. It says ${answer} with ${percentOf(part)}. ${verdict}`,
      look: (layer, head, word, part, isAnswer) =>
        `Head ${head} of block ${layer} gives ${percentOf(part)} of its weight to “${word}”` +
        `${isAnswer ? ", the very word it needs" : ""}. Tinted words are those that it reads.`,
      silence: (answer, before, after, newAnswer, newPart, isRight, isOwner) =>
        `Without this one head ${answer} ${after < before ? "falls" : "goes"} from ${percentOf(before)} to ` +
        percentOf(after) +
        (isRight ? "; it still says it." : `, and it says ${newAnswer} (${percentOf(newPart)}) instead`) +
        (isRight ? "" : isOwner ? ", as if the drum had followed Mia." : "."),
      translate: (answer, part, isRight) =>
        `The head is still silent. Translating ${isRight ? "does not need it" : "suffers, too"}: it says ${answer} ` +
        `with ${percentOf(part)}.`,
      write: (count, brokenWord) =>
        `All heads are back, and it wrote ${count} words. ` +
        (brokenWord ? `One breaks the rules of this world: “${brokenWord}”.` : "The rules allow every one of them."),
      long: (trained, nearRight, near, farRight, far) =>
        `Of the words that the rules leave no choice about, it knows ${nearRight} of ${near} up to word ${trained}, ` +
        `where its training ended, and ${farRight} of ${far} beyond.`,
      unknown: (answer, part) =>
        `The story never mentions Zoe, and this world has no word for “I don't know”. It says ${answer} with ` +
        `${percentOf(part)}.`,
    },
  },
};
