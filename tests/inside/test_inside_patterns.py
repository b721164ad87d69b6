"""Patterns of the tokenizers library find the same in JavaScript, or are refused by name."""

import random
import re
from collections import Counter

import pytest
from tokenizer_builders import PATTERNS, wild_texts
from tokenizers import Regex, pre_tokenizers

from minimind_edu.inside import patterns, tokenizer
from minimind_edu.inside.patterns import PatternError, translate

SPLIT = """async ([source, texts]) => {
    const { cutBy } = await import("/inside/bpe.js");
    const pattern = new RegExp(source, "gu");
    return texts.map((text) => cutBy(text, pattern).flatMap(([piece]) => (piece ? [piece] : [])));
}"""
MEMBERS = """([source, all]) => {
    const pattern = new RegExp(`^(?:${source})$`, "u");
    return [...all].filter((one) => pattern.test(one)).join("");
}"""
# Each plane that has more than unassigned characters or private ones, the edges of the others, and a part of all that.
EVERYTHING = [*range(0xD800), *range(0xE000, 0x32400), *range(0xE0000, 0xE0200), 0xF0000, 0xFFFFD, 0x100000, 0x10FFFF]
A_PART = [*range(0x3100), *EVERYTHING[0x3100::53]]
REFUSED = {
    r"\X": r"\\X",
    r"a\K": r"\\K",
    r"\Ga": r"\\G",
    r"(a)\1": r"\\1",
    r"(?<n>a)\k<n>": r"\\k",
    r"\012": r"\\0",
    r"(?~a)": r"\(\?~",
    r"(?(1)a|b)": r"\(\?\(",
    r"(?x: a )": r"\(\?x",
    r"(?W:\w)": r"\(\?W",
    r"\p{Klingon}": "Klingon",
    r"[[:klingon:]]": "klingon",
    r"(?i:ss)": "one character may stand for",
    r"(?i:s)(?i:s)": "one character may stand for",
    r"(?i:st?t)": "one character may stand for",
    r"(?i:[sf]{2})": "one character may stand for",
    r"(?i:é)": "é where case is ignored",
    r"(?i:[^a])": "where case is ignored",
    r"(?i:\p{Lu})": "where case is ignored",
    r"(?:a*)*": "after what may be empty",
    r"\b+": "after what may be empty",
    r"a**": "two quantifiers",
    r"a{2}{3}": "two quantifiers",
    r"a{3,2}": "the quantifier",
    r"(?<=a+)b": "inside a lookbehind",
    r"(?<=(?>a))b": "inside a lookbehind",
    r"(?<=a|\R)b": "of no certain length",
    r"(?<=\b)b": "of no certain length",
    r"(?<=a(?=b))b": "inside a lookbehind",
    r"[]a]": "without anything|without its",
    r"[\w-a]": "a - inside",
    r"[a-\d]": "ends in a set",
    r"[z-a]": "runs backwards",
    r"[a&&]": "&&",
    r"[&&a]": "&&",
    r"\xe4": "x",
    r"\x{d800}": "d800",
    r"\ud800": "d800",
    r"\cA": r"\\c",
    r"a)": "closes nothing",
    r"(a": "without its",
    r"[a": "without its",
    r"*a": "after nothing",
    r"a{,b": "begins no quantifier",
    "\\": r"\\",
}


def pieces_of_library(pattern, texts):
    split = pre_tokenizers.Split(Regex(pattern), "isolated")
    return [[piece for piece, _ in split.pre_tokenize_str(text)] for text in texts]


def pieces_of_page(node, source, texts):
    return node.evaluate(SPLIT, [source, texts])


@pytest.mark.parametrize("name", PATTERNS)
def test_well_known_patterns_cut_texts_as_the_library_does(node, name):
    texts = [
        *wild_texts(random.Random(name), 1500),
        "they'LL see it's 3.14 and 'S 'ſ",
        "a\r\n\r\n  b  ",
        "x  \n \n y  ",
    ]
    found = pieces_of_page(node, translate(PATTERNS[name]).source, texts)
    expected = pieces_of_library(PATTERNS[name], texts)
    wrong = [[text, *both] for text, *both in zip(texts, found, expected, strict=True) if both[0] != both[1]]
    assert wrong == []


# Where the two languages differ, a pattern with a text that shows it -> how the library cuts the text.
SHOWN = {
    (r"a++a|.", "aaab"): ["a", "a", "a", "b"],
    (r"a?+a|b", "ab"): ["a", "b"],
    (r"[ab]*+b|c", "abc"): ["ab", "c"],
    (r"(?>a|ab)c", "abc"): ["abc"],
    (r"a{1,2}+a", "aaab"): ["aaa", "b"],
    (r"a{2}?", "aaaaa"): ["aa", "aa", "a"],
    (r"a{,2}", "aaaaab"): ["aa", "aa", "a", "b"],
    (r"a$", "xa\nb"): ["x", "a", "\nb"],
    (r"^a", "a\naba"): ["a", "\n", "a", "ba"],
    (r"a\Z", "ba\n"): ["b", "a", "\n"],
    (r"a\z", "ba\n"): ["ba\n"],
    (r"a.", "a\ra\u2028a\n"): ["a\r", "a\u2028", "a\n"],
    (r"a(?i)b|c", "aBC"): ["aB", "C"],
    (r"(?i:s)x", "aſx"): ["a", "ſx"],
    (r"\w+", "aé²-"): ["aé²", "-"],
    (r"[\w]+", "aé²-"): ["aé", "²-"],
    (r"é\b", "éaé "): ["éa", "é", " "],
    (r"[a-c&&[^b]]+", "abca"): ["a", "b", "ca"],
    (r"[^a[bc]]+", "abxcy"): ["ab", "x", "c", "y"],
    (r"(?:|a)?b", "ab"): ["ab"],
    (r"\R", "a\r\nb"): ["a", "\r\n", "b"],
}


@pytest.mark.parametrize("pattern, text", SHOWN)
def test_a_construct_that_differs_is_rewritten(node, pattern, text):
    assert pieces_of_library(pattern, [text]) == [SHOWN[pattern, text]]
    assert pieces_of_page(node, translate(pattern).source, [text]) == [SHOWN[pattern, text]]


@pytest.mark.parametrize("pattern", REFUSED)
def test_what_may_mean_something_else_is_refused_by_name(pattern):
    with pytest.raises(PatternError, match=REFUSED[pattern]):
        translate(pattern)


def differing(node, pattern, codes):
    """Of these characters those that a pattern takes in the library or in the page, but not in both."""
    text = "".join(map(chr, codes))
    left = pre_tokenizers.Split(Regex(f"(?:{pattern})+"), "removed").pre_tokenize_str(text)
    of_library = set(text) - set("".join(piece for piece, _ in left))
    return of_library ^ set(node.evaluate(MEMBERS, [translate(pattern).source, text]))


SETS = [
    *(rf"\p{{{name}}}" for name in patterns._properties()),
    *(f"[[:{name}:]]" for name in patterns._POSIX),
    *(rf"\{letter}" for letter in "dDsSwWhH"),
    *(rf"[\{letter}]" for letter in "dDsSwW"),
    *(f"(?i:{letter})" for letter in "abcdefghijklmnopqrstuvwxyz"),
    *["(?i:[a-z])", r"\p{^L}", r"\P{Han}", "[^a]", ".", "(?m:.)", r"[[:punct:]&&[^\p{S}]]", r"[^\w&&[^\d]]"],
]


def test_punctuation_is_that_of_the_library(node):
    text = "".join(map(chr, A_PART))
    left = pre_tokenizers.Punctuation("removed").pre_tokenize_str(text)
    of_library = set(text) - set("".join(piece for piece, _ in left))
    assert set(node.evaluate(MEMBERS, [tokenizer._PUNCTUATION, text])) == of_library


@pytest.mark.timeout(900)
def test_sets_of_characters_are_those_of_the_library_over_all_of_unicode(node, request):
    """But for characters to which the two tables of Unicode give another category: they are of two versions."""
    codes = EVERYTHING if request.config.getoption("--all") else A_PART
    of_two_versions = set().union(*(differing(node, rf"\p{{{name}}}", codes) for name in ("Cn", "Lo", "Ll")))
    assert len(of_two_versions) < len(codes) / 20
    differ = {pattern: ascii("".join(sorted(differing(node, pattern, codes) - of_two_versions))) for pattern in SETS}
    assert {pattern: found for pattern, found in differ.items() if found != "''"} == {}


class Grammar:
    """Random patterns: of what is known, of what is refused, and of what stands between."""

    def __init__(self, source):
        self.source = source

    def one(self, *choices):
        choice = self.source.choice(choices)
        return choice() if callable(choice) else choice

    def pattern(self, depth=3):
        count = self.source.choice([1, 1, 1, 2, 2, 3])
        return "|".join(self.sequence(depth) for _ in range(count))

    def sequence(self, depth):
        return "".join(self.quantified(depth) for _ in range(self.source.choice([0, 1, 1, 2, 2, 3])))

    def quantified(self, depth):
        quantifiers = [
            "?",
            "*",
            "+",
            "??",
            "*?",
            "+?",
            "?+",
            "*+",
            "++",
            "{2}",
            "{1,2}",
            "{,2}",
            "{2,}",
            "{2}?",
            "{1,2}?",
        ]
        quantifiers += ["{1,3}+", "{2}+", "{,2}?", "{1,}?", "{2,}+", "{0}", "{,1}+"]
        odd = (
            self.source.choice(["**", "{", "{a}", "{2,1}", "+?+", "{2}{2}", "{,}"])
            if self.source.random() < 0.02
            else ""
        )
        return self.atom(depth) + (self.source.choice(quantifiers) if self.source.random() < 0.4 else "") + odd

    def atom(self, depth):
        simple = [self.letter, self.letter, self.letter, self.escape, self.set, self.set, self.anchor, "."]
        return self.one(*simple, *([lambda: self.group(depth - 1)] * 3 if depth else []))

    def letter(self):
        return self.source.choice("abskABSK1 -'éßſ中😀\n]}:,&#~=<>!\"%@;`_/")

    def escape(self):
        known = [
            r"\d",
            r"\w",
            r"\s",
            r"\D",
            r"\W",
            r"\S",
            r"\h",
            r"\H",
            r"\p{L}",
            r"\p{Lu}",
            r"\P{N}",
            r"\p{^Ll}",
            r"\p{Han}",
        ]
        known += [
            r"\p{alpha}",
            r"\p{Word}",
            r"\p{punct}",
            r"\n",
            r"\r",
            r"\t",
            r"\.",
            r"\-",
            r"\[",
            r"\\",
            r"\'",
            r"\x41",
        ]
        known += [r"\x{e9}", r"\u00e9", r"\R", r"\/", r"\é", r"\P{^L}", r"\v", r"\e", r"\a"]
        odd = [
            r"\X",
            r"\K",
            r"\G",
            r"\1",
            r"\k<a>",
            r"\012",
            r"\y",
            r"\q",
            r"\xe9",
            r"\pL",
            r"\N",
            r"\O",
            r"\p{Klingon}",
        ]
        return self.source.choice(odd if self.source.random() < 0.06 else known)

    def anchor(self):
        return self.source.choice(["^", "$", r"\b", r"\B", r"\A", r"\z", r"\Z"])

    def set(self, depth=2):
        members = []
        for _ in range(self.source.choice([1, 1, 2, 3])):
            members.append(self.member(depth))
        text = "".join(members)
        if self.source.random() < 0.15:
            text += "&&" + self.member(depth)
        if self.source.random() < 0.1:
            text = self.source.choice([f"-{text}", f"{text}-", f"{text}-b", f"]{text}", f"{text}&&"])
        return f"[{self.source.choice(['', '', '^'])}{text}]"

    def member(self, depth):
        plain = [
            self.letter,
            self.escape,
            "a-c",
            "A-Z",
            "0-9",
            "é-ﬀ",
            r"\n-\r",
            "[:alpha:]",
            "[:^digit:]",
            "[:punct:]",
            "[:space:]",
        ]
        plain += ["(", ")", "|", ".", "^", "$", "*", "+", "?", "{", r"\b", r"\]"]
        return self.one(*plain, *([lambda: self.set(depth - 1)] if depth else []))

    def group(self, depth):
        openings = [
            "(",
            "(?:",
            "(?:",
            "(?=",
            "(?!",
            "(?<=",
            "(?<!",
            "(?>",
            "(?i:",
            "(?i)",
            "(?m:",
            "(?m-i:",
            "(?-i:",
            "(?<a>",
        ]
        openings += ["(?#c)(?:", "(?i)"]
        opening = "(?x:" if self.source.random() < 0.02 else self.source.choice(openings)
        return f"({opening}{self.pattern(depth)})" if opening == "(?i)" else f"{opening}{self.pattern(depth)})"


def unlike(node, source, count, texts_of_each):
    """[pattern, text, page, library] where they differ, and how often what was refused."""
    wrong, refused = [], Counter()
    grammar = Grammar(source)
    for _ in range(count):
        pattern = grammar.pattern()
        try:
            expected_split = pre_tokenizers.Split(Regex(pattern), "isolated")
        except Exception:
            refused["the library itself"] += 1
            continue
        try:
            found = translate(pattern).source
        except PatternError as error:
            refused[
                re.sub(r"[{(].*|\\p\S*|^\S+ where|^\S+ after what", "", str(error))[:40].strip() or str(error)[:40]
            ] += 1
            continue
        refused["equal"] += 1
        texts = wild_texts(source, texts_of_each, 12)
        expected = [[piece for piece, _ in expected_split.pre_tokenize_str(text)] for text in texts]
        for text, page, library in zip(texts, pieces_of_page(node, found, texts), expected, strict=True):
            if page != library:
                wrong.append([pattern, found, text, page, library])
                break
    return wrong, refused


def test_random_patterns_are_refused_or_cut_as_the_library_does(node, request):
    wrong, refused = unlike(node, random.Random(11), 3000 if request.config.getoption("--all") else 600, 40)
    assert wrong == []
    assert refused["equal"] > 0.3 * refused.total()
