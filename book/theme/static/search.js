// The search: what is in the book for words that somebody types, best first. It reads search_texts.js, the words of all
// pages, from beginning to end: no index, see minimind_book/search_texts.py. found.js shows what it finds.
globalThis.bookSearch = (() => {
  const STOP = new Set(
    (
      "a about all an and any are as at be but by can could did do does for from get had has have how i if in into " +
      "is it " +
      "its me mine my of on or our own shall should so than that the their them then there these they this to us was " +
      "we were what when where which who why will with would you your 的 了 吗 呢 怎么 怎样 如何 什么 是什么 为什么 有什么 哪些 我 自己 我的 自己的"
    ).split(" "),
  );
  const STEP = 0.6; // of its weight has what was typed only begun, or misspelt
  const MOST = 30; // results
  const OF_A_PAGE = 3;

  const HAN = "\u3400-\u9fff";
  const TOKEN = new RegExp(`[${HAN}]+|[\\p{L}\\p{N}_]+(?:[-.'’][\\p{L}\\p{N}_]+)*`, "gu");
  const isHan = (word) => word >= "\u3400" && word <= "\u9fff\uffff";
  const tokensOf = (text) => [...text.matchAll(TOKEN)].map(([word]) => word).flatMap((word) => apart(word));
  // \p{L} takes Chinese, too: "KV缓存" is two words.
  const apart = (word) => word.match(new RegExp(`[${HAN}]+|[^${HAN}]+`, "g"));
  const escaped = (text) => text.replace(/[.*+?^${}()|[\]\\]/g, "\\$&");
  const BEFORE = "(?<![a-z0-9_])";
  const AFTER = "(?![a-z0-9_])";

  // "heads" finds "head", "rotated" finds "rotation": endings are taken off, and any of them may follow.
  const ENDINGS = /(?<=.{4})(?:izations?|ations?|ions?|ings?|ers?|ed|es|s|e)$/;
  const MAY_FOLLOW = "(?:e?s|e|ed|ers?|ings?|ions?|ations?|izations?)?";
  function stemOf(word) {
    if (!/^[a-z_]{4,}$/.test(word)) return word;
    const stem = word.replace(ENDINGS, "").replace(/([b-df-hj-np-tv-z])\1$/, "$1"); // embedding, embeding
    return stem.length > 3 ? stem : word.replace(/s$/, "");
  }
  function anyForm(word) {
    const stem = stemOf(word);
    if (!/^[a-z_]+$/.test(word)) return escaped(word);
    return stem.length > 3 ? `${stem}{1,2}${MAY_FOLLOW}` : `${stem}(?:e?s)?`;
  }
  // A hyphen may be a space, or nothing: top-p, top p.
  const hyphens = (pattern) => pattern.replace(/-/g, "[-\\s]?");
  const whole = (word) => (isHan(word) ? escaped(word) : BEFORE + hyphens(anyForm(word)) + AFTER);
  const begun = (word) => (isHan(word) ? escaped(word) : BEFORE + hyphens(escaped(word)));
  // Names are the same if their words are: "Top-p" and "top p", "Open your own model" and "open my own model".
  const keyOf = (text) => wordsOf(text).map(stemOf).join(" ");
  const wordsOf = (text) => {
    const all = tokensOf(text.toLowerCase()).flatMap((word) => word.split("-"));
    const content = all.filter((word) => !STOP.has(word) && !/^\d+\.?$/.test(word));
    return content.length ? content : all;
  };
  const times = (text, pattern) => (text.match(pattern) ?? []).length;

  // How many letters must change, up to three.
  function distance(a, b) {
    if (Math.abs(a.length - b.length) > 2) return 3;
    let above = Array.from({ length: b.length + 1 }, (_, i) => i);
    for (let i = 1; i <= a.length; i++) {
      const row = [i];
      for (let j = 1; j <= b.length; j++)
        row[j] = Math.min(above[j] + 1, row[j - 1] + 1, above[j - 1] + (a[i - 1] !== b[j - 1]));
      above = row;
    }
    return above[b.length];
  }

  return ({ pages, terms }) => {
    const sections = pages.flatMap(([page, parts], place) =>
      parts.map(([anchor, heading, text, code, bold], number) => ({
        page,
        place,
        anchor,
        isTop: !number,
        title: parts[0][1],
        heading: number ? heading : "",
        said: text,
        shown: code,
        text: text.toLowerCase(),
        code: code.toLowerCase(),
        names: `${number ? "" : parts[0][1]} ${heading}`.toLowerCase(),
        key: keyOf(number ? heading : parts[0][1]),
        asked: tokensOf(heading.toLowerCase()).join(" "),
        bold: bold.map(keyOf),
      })),
    );
    const length = sections.reduce((sum, section) => sum + section.text.length, 0) / sections.length;
    const known = terms.map(([names, meaning, page, anchor]) => ({
      names,
      keys: names.map(keyOf),
      meaning,
      page,
      anchor,
    }));
    let vocabulary;
    const allWords = () =>
      (vocabulary ??= new Set(
        [
          ...sections.map((section) => `${section.names} ${section.text}`),
          ...known.map((term) => term.names.join(" ").toLowerCase()),
        ]
          .join(" ")
          .match(/[a-z]{4,}/g),
      ));
    const counted = (source) => {
      const pattern = new RegExp(source, "g");
      return sections.map((section) => [
        times(section.names, pattern),
        times(section.text, pattern),
        times(section.code, pattern),
      ]);
    };
    const isSomewhere = (counts) => counts.some((three) => three.some(Boolean));
    const nameHas = (pattern) => known.some((term) => term.names.some((name) => pattern.test(name.toLowerCase())));

    // Chinese has no spaces: what stands nowhere as a whole is cut into the longest parts that do.
    function parted(run) {
      const found = [];
      for (let begin = 0; begin < run.length;) {
        let end = run.length;
        const occurs = (part) => STOP.has(part) || sections.some((section) => section.text.includes(part));
        while (end > begin + 1 && !occurs(run.slice(begin, end))) end--;
        if (end > begin + 1 && !STOP.has(run.slice(begin, end))) found.push(run.slice(begin, end));
        begin = end;
      }
      return found;
    }

    // What is counted for a word: itself, or what begins so, or what is spelled nearly so.
    function sought(word) {
      const exact = { word, weight: 1, source: whole(word) };
      const tried = [exact, { word, weight: STEP, source: begun(word) }];
      for (const form of tried) {
        form.counts = counted(form.source);
        if (isSomewhere(form.counts) || nameHas(new RegExp(form.source))) return [form];
      }
      if (isHan(word)) return word.length > 2 ? parted(word).flatMap(sought) : [exact];
      if (!/^[a-z]{4,}$/.test(word)) return [exact];
      const near = [...allWords()].map((other) => [distance(word, other), other]).sort(([a], [b]) => a - b);
      const [far, instead] = near[0];
      if (far > (word.length < 7 ? 1 : 2)) return [exact];
      const source = whole(instead);
      return [{ word, instead, weight: STEP, source, counts: counted(source) }];
    }

    // The terms of that name, or of a name that begins so, by the place that explains them.
    function termsOf(key, typed) {
      const found = new Map();
      for (const entry of known) {
        const begin = key.length > 2 ? entry.keys.filter((name) => name.startsWith(key)) : [];
        const spelled = entry.names.some((name) => name.toLowerCase() === typed); // activation is not activations
        const same = spelled ? 1.2 : Number(entry.keys.includes(key));
        const share = Math.max(same, ...begin.map((name) => (key.length / name.length) ** 2));
        const place = `${entry.page}#${entry.anchor}`;
        if (share > (found.get(place)?.share ?? 0)) found.set(place, { ...entry, share });
      }
      return new Map([...found].sort(([, a], [, b]) => b.share - a.share));
    }

    function find(query) {
      const notes = /^\s*(00[0134])\s*(RoPE|GQA|KV|RMS|mask|MoE)?\s*§?\s*(Q\d+|\d(?:\.\d+)?)?\s*$/i.exec(query);
      if (notes) {
        const anchor = ["notes", ...notes.slice(1)].filter(Boolean).join("-").toLowerCase().replace(".", "-");
        const row = sections.find((section) => section.anchor === anchor);
        if (row) return { results: [result({ ...row, heading: query.trim() }, [], "")], instead: [] };
      }
      const words = wordsOf(query);
      const lower = query.toLowerCase().trim();
      const asked = tokensOf(lower);
      // one word stays one: top-p is not every "p"
      const typed = asked.filter((word) => words.some((part) => word.split("-").includes(part)));
      let parts = (typed.length ? typed : words).flatMap(sought);
      if (!parts.length) return { results: [], instead: [] };
      const key = parts.some((part) => part.instead)
        ? keyOf(parts.map((part) => part.instead ?? part.word).join(" "))
        : keyOf(query);
      const explained = termsOf(key, lower);
      // A word that stands nowhere but is another name of something: what is found is that.
      const isFound = (part) => part.counts && isSomewhere(part.counts);
      const [term] = explained.values();
      if (term && !parts.some(isFound))
        parts = term.names.map((name) => wordsOf(name).flatMap(sought)).find((all) => all.every(isFound)) ?? parts;
      const near = parts.map((part) => part.source).join("[-_\\s]*");
      const phrase = parts.length > 1 ? new RegExp(near, "g") : null;
      const rarity = parts.map(({ counts }) => {
        const having = counts?.filter((three) => three.some(Boolean)).length ?? 0;
        return Math.log(1 + sections.length / (having + 1));
      });
      const all = rarity.reduce((sum, value) => sum + value, 0);

      const scored = sections.map((section, number) => {
        let score = 0;
        let met = 0;
        parts.forEach(({ counts, weight }, at) => {
          if (!counts) return;
          const [named, written, shown] = counts[number];
          if (!named && !written && !shown) return;
          met += rarity[at];
          const many = written + 0.2 * shown;
          const filled = many / (many + 0.6 + 0.6 * (section.text.length / length));
          score += weight * rarity[at] * (filled + 1.5 * Boolean(named));
        });
        score *= (met / all) ** 2;
        if (phrase && met) {
          const together = times(section.text, phrase) + 0.2 * times(section.code, phrase);
          score += all * (together / (together + 1) + 1.5 * phrase.test(section.names));
          phrase.lastIndex = 0;
        }
        // a heading that says little else, and what this section explains
        const share = all && section.key ? Math.min(1, key.length / section.key.length) : 0;
        if (parts.every((_, at) => parts[at].counts?.[number][0])) score += 2 * all * share;
        // "Why does it repeat?" is more than its one word that is no stop word
        if (asked.length > words.length && section.asked === asked.join(" ")) score += 8 * all;
        if (section.key === key) score += (section.isTop ? 10 : 4) * all;
        if (section.bold.includes(key)) score += 3 * all;
        const term = explained.get(`${section.page}#${section.anchor}`);
        if (term) score += 8 * term.share * (all || 1);
        // the tables name everything, too
        if (/reference\/(?:notes|sources|corr)/.test(section.page)) score /= 8;
        if (/^(?:exercise|quiz|练习|测验)/.test(section.heading.toLowerCase())) score /= 2;
        // The corrections of the notes quote everything, so they come last.
        return { section, score, term, isLast: section.page.startsWith("chapters/C"), share: met / all };
      });
      scored.sort((a, b) => a.isLast - b.isLast || b.score - a.score || a.section.place - b.section.place);
      const isWhole = scored.some(({ share }) => share === 1);
      const taken = new Map();
      const best = scored.filter(({ section, score, term, share }) => {
        // where some have all words, those with the lesser part of them are noise
        if (!(score > 0) || (isWhole && !term && share < 0.5)) return false;
        taken.set(section.page, (taken.get(section.page) ?? 0) + 1);
        return taken.get(section.page) <= OF_A_PAGE;
      });
      return {
        results: best.slice(0, MOST).map(({ section, term }) => result(section, parts, lower, term)),
        instead: parts.flatMap(({ word, instead }) => (instead ? [[word, instead]] : [])),
      };
    }

    // An excerpt is what the glossary says, or the text around the first place with all that was typed, or with the
    // rarest of its words; of code only where the text does not say it.
    function result(section, parts, typed, term) {
      const patterns = parts.map(({ source }) => source);
      const marks = [...(typed ? [escaped(typed)] : []), ...patterns];
      const at = (text, sources) =>
        sources.map((source) => text.search(new RegExp(source))).find((place) => place >= 0);
      const address = `${section.page}.html${section.isTop ? "" : `#${section.anchor}`}`;
      const head = { address, page: section.page, title: section.title, heading: section.heading, marks };
      if (term) return { ...head, excerpt: term.meaning, term: term.names[0] };
      const inText = at(section.text, marks);
      const source = inText === undefined && at(section.code, marks) !== undefined ? "code" : "text";
      const whole = source === "code" ? section.shown : section.said;
      const first = (source === "code" ? at(section.code, marks) : inText) ?? 0;
      // Chinese has no spaces to cut at, or far apart.
      const begin = first < 100 ? 0 : Math.min(whole.indexOf(" ", first - 100) + 1 || first, first);
      const end =
        begin + 240 < whole.length ? Math.max(whole.lastIndexOf(" ", begin + 240), begin + 200) : whole.length;
      const excerpt = `${begin ? "… " : ""}${whole.slice(begin, end)}${end < whole.length ? " …" : ""}`;
      return { ...head, excerpt };
    }
    return find;
  };
})();
