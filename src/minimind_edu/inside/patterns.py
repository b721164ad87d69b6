"""A pattern of the tokenizers library, written so that JavaScript finds the same with it, or refused by name.

The library reads patterns by Oniguruma, in the syntax of Ruby; the page has RegExp with the flag `u`. What is known to
mean the same in both, or can be rewritten so that it does, is on a list; all else is refused, since a page whose tokens
were nearly right would show a model that answers nearly right. What Unicode calls a letter is left to the tables of
each: characters newer than the library's tables count as letters in a newer browser.

tests/inside/test_inside_patterns.py compares every set of characters over all of Unicode, and random patterns on random
texts.

Source: https://github.com/kkos/oniguruma/blob/master/doc/RE
"""

import re
import sys
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache

_WORD = r"\p{Alphabetic}\p{M}\p{Nd}\p{Pc}"
_WORD_ALONE = _WORD + r"\u{b2}\u{b3}\u{b9}\u{bc}-\u{be}"  # \w, \b: outside [...] the library has ² ³ ¹ ¼ ½ ¾, too
_HEX = "0-9A-Fa-f"
# Sets of characters -> what JavaScript writes between [ and ]; names as _plain_name has them.
_CATEGORIES = """L Letter, Lu Uppercase_Letter, Ll Lowercase_Letter, Lt Titlecase_Letter, Lm Modifier_Letter,
    Lo Other_Letter, M Mark, Mn Nonspacing_Mark, Mc Spacing_Mark, Me Enclosing_Mark, N Number, Nd Decimal_Number,
    Nl Letter_Number, No Other_Number, P Punctuation, Pc Connector_Punctuation, Pd Dash_Punctuation,
    Ps Open_Punctuation, Pe Close_Punctuation, Pi Initial_Punctuation, Pf Final_Punctuation, Po Other_Punctuation,
    S Symbol, Sm Math_Symbol, Sc Currency_Symbol, Sk Modifier_Symbol, So Other_Symbol, Z Separator, Zs Space_Separator,
    Zl Line_Separator, Zp Paragraph_Separator, C Other, Cc Control, Cf Format, Cn Unassigned, Co Private_Use"""
_SCRIPTS = """Arabic Armenian Bengali Bopomofo Common Cyrillic Devanagari Ethiopic Georgian Greek Gujarati Gurmukhi Han
    Hangul Hebrew Hiragana Inherited Kannada Katakana Khmer Lao Latin Malayalam Mongolian Myanmar Oriya Sinhala Tamil
    Telugu Thai Tibetan"""
_POSIX = {  # as [[:name:]]
    "alnum": r"\p{Alphabetic}\p{Nd}",
    "alpha": r"\p{Alphabetic}",
    "ascii": r"\u{0}-\u{7f}",
    "blank": r"\p{Zs}\t",
    "cntrl": r"\p{Cc}",
    "digit": r"\p{Nd}",
    "lower": r"\p{Lowercase}",
    "punct": r"\p{P}\p{S}",
    "space": r"\p{White_Space}",
    "upper": r"\p{Uppercase}",
    "word": _WORD,
    "xdigit": _HEX,
}
_ESCAPED_SETS = {"d": r"\p{Nd}", "h": _HEX, "s": r"\p{White_Space}", "w": _WORD}
_CASELESS_SETS = "dDsS"  # of which no member has another case
_ESCAPED = {"n": 10, "t": 9, "r": 13, "f": 12, "v": 11, "a": 7, "e": 27}
_NEWLINES = r"\n-\r\u{85}\u{2028}\u{2029}"
_ANCHORS = {
    r"\A": "^",
    r"\z": "$",
    r"\Z": r"(?=\n?$)",
    "^": r"(?:^|(?<=\n)(?!$))",  # the beginning of a line; after the last line end there is none
    "$": r"(?=\n|$)",
    r"\b": f"(?:(?<=[{_WORD_ALONE}])(?![{_WORD_ALONE}])|(?<![{_WORD_ALONE}])(?=[{_WORD_ALONE}]))",
    r"\B": f"(?:(?<=[{_WORD_ALONE}])(?=[{_WORD_ALONE}])|(?<![{_WORD_ALONE}])(?![{_WORD_ALONE}]))",
}
_LOOKS = ("?<=", "?<!", "?=", "?!")
_PLAIN = set(" !\"#%&',:;<=>@_`~")  # with ASCII letters and digits: they mean themselves everywhere in JavaScript
_INTERVAL = re.compile(r"\{(?:(\d+)(,?)(\d*)|,(\d+))\}")
_MOST_REPEATED = 100_000  # the library's own limit
_OTHER_CASES = {"k": "\u212a", "s": "\u017f"}  # Kelvin and the long s: what folds to a letter of ASCII besides its twin


class PatternError(ValueError):
    """What a pattern asks for and the page cannot promise to read as the library does."""


@dataclass(frozen=True)
class Pattern:
    """A pattern in JavaScript, for the flag `u`."""

    source: str
    can_be_empty: bool  # whether it may match no character at all


def translate(pattern: str) -> Pattern:
    """A pattern of the tokenizers library as JavaScript's.

    Raises:
        PatternError: with the name of the first construct that is not known to mean the same.
    """
    parser = _Parser(pattern)
    part = parser.alternatives(_Options())
    if parser.here:
        raise PatternError("a ) that closes nothing")
    return Pattern(part.source, part.can_be_empty)


def literal(text: str) -> str:
    """A pattern in JavaScript that finds this text."""
    return "".join(map(_written, text))


def _written(character: str) -> str:
    is_plain = character in _PLAIN or (character.isascii() and character.isalnum())
    return character if is_plain else f"\\u{{{ord(character):x}}}"


def _plain_name(name: str) -> str:
    return re.sub("[ _-]", "", name).lower()


@cache
def _properties() -> dict[str, str]:
    """The names of \\p{...} -> what JavaScript writes between [ and ]."""
    pairs = [pair.split() for pair in _CATEGORIES.split(",")]
    categories = {_plain_name(name): f"\\p{{{short}}}" for short, long in pairs for name in (short, long)}
    scripts = {_plain_name(name): f"\\p{{Script={name}}}" for name in _SCRIPTS.split()}
    binary = {_plain_name(name): f"\\p{{{name}}}" for name in ("Alphabetic", "Lowercase", "Uppercase", "White_Space")}
    return categories | scripts | binary | _POSIX | {"punct": r"\p{P}", "any": r"\p{Any}"}


@cache
def _joined_cases() -> frozenset[str]:
    """Pairs of neighbors in what one character folds to, such as the two s of ß: the library finds ß with (?i:ss)."""
    folded = {chr(code).casefold() for code in range(sys.maxunicode + 1)}
    return frozenset(text[at : at + 2] for text in folded for at in range(len(text) - 1))


@dataclass(frozen=True)
class _Options:
    """What (?im-im) sets, and where in a pattern we are."""

    ignores_case: bool = False
    dot_takes_all: bool = False
    looks_behind: bool = False


@dataclass(frozen=True)
class _Set:
    """Characters of which one is matched: `inside` is how [...] holds them, where it can."""

    source: str
    inside: str | None

    @staticmethod
    def of(inside: str) -> "_Set":
        return _Set(f"[{inside}]", inside)

    def others(self) -> "_Set":
        return _Set(f"(?:(?!{self.source})[^])" if self.inside is None else f"[^{self.inside}]", None)


def _union(sets: Iterable[_Set]) -> _Set:
    sets = list(sets)
    inside = "".join(charset.inside for charset in sets if charset.inside is not None)
    apart = [charset.source for charset in sets if charset.inside is None]
    if not apart:
        return _Set.of(inside)
    both = [f"[{inside}]"] * bool(inside) + apart
    return _Set(both[0] if len(both) == 1 else f"(?:{'|'.join(both)})", None)


def _intersection(first: _Set, second: _Set) -> _Set:
    return _Set(f"(?:(?={first.source}){second.source})", None)


@dataclass(frozen=True)
class _Part:
    """A part of a pattern; what is repeated is one that a quantifier can follow."""

    source: str
    can_be_empty: bool = False
    is_fixed: bool = True  # without a choice of lengths, or a group that keeps its choice
    heads: frozenset[str] = frozenset()  # what it may begin with, of characters that are found in either case
    tails: frozenset[str] = frozenset()  # what it may end with


class _Parser:
    def __init__(self, pattern: str):
        self.pattern, self.at, self.groups = pattern, 0, 0
        self.folded: frozenset[str] = frozenset()

    @property
    def here(self) -> str:
        return self.pattern[self.at : self.at + 1]

    def take(self, *texts: str) -> str:
        """The first of these texts that comes now, which is passed; "" if none does."""
        found = next((text for text in texts if self.pattern.startswith(text, self.at)), "")
        self.at += len(found)
        return found

    def match(self, expression: str) -> re.Match[str] | None:
        found = re.compile(expression, re.ASCII).match(self.pattern, self.at)
        self.at = found.end() if found else self.at
        return found

    def alternatives(self, options: _Options) -> _Part:
        """Up to the end, or to the ) that is not passed."""
        branches = [self.sequence(options)]
        while self.take("|"):
            branches.append(self.sequence(options))
        return _Part(
            "|".join(branch.source for branch in branches),
            any(branch.can_be_empty for branch in branches),
            all(branch.is_fixed for branch in branches),
            frozenset().union(*(branch.heads for branch in branches)),
            frozenset().union(*(branch.tails for branch in branches)),
        )

    def sequence(self, options: _Options) -> _Part:
        whole = _Part("", True)
        while self.here not in ("", "|", ")"):
            if self.take("(?#"):
                if not self.match(r"[^\\)]*\)"):
                    raise PatternError("a comment with \\ in it, or without an end")
                continue
            part = self.quantified(options)
            _check_folded(whole.tails, part.heads)
            whole = _Part(
                whole.source + part.source,
                whole.can_be_empty and part.can_be_empty,
                whole.is_fixed and part.is_fixed,
                whole.heads | part.heads if whole.can_be_empty else whole.heads,
                whole.tails | part.tails if part.can_be_empty else part.tails,
            )
        return whole

    def quantified(self, options: _Options) -> _Part:
        atom = self.atom(options)
        interval = _INTERVAL.match(self.pattern, self.at)
        if interval:
            self.at = interval.end()
            part = self.interval(atom, interval)
        elif sign := self.take("?", "*", "+"):
            part = self.repeated(atom, sign, self.take("?", "+"))
        else:
            return atom
        if self.here in ("?", "*", "+") or _INTERVAL.match(self.pattern, self.at):
            raise PatternError("two quantifiers in a row")
        if options.looks_behind:
            raise PatternError("a quantifier inside a lookbehind")
        if interval or sign != "?":
            _check_folded(atom.tails, atom.heads)
        return part

    def interval(self, atom: _Part, found: re.Match[str]) -> _Part:
        low, comma, high, highest = found.groups()
        least, most = int(low or 0), int(highest or high or (low if not comma else 0) or _MOST_REPEATED)
        if least > most or most > _MOST_REPEATED:
            raise PatternError(f"the quantifier {found[0]}")
        is_exact = low is not None and not comma
        part = self.counted(atom, f"{{{least}}}" if is_exact else f"{{{least},{highest or high}}}", least)
        if is_exact and self.take("?"):  # Ruby's {n}? is (...{n})?, as it takes no fewer
            return self.repeated(_grouped(part), "?", "")
        if self.take("?"):
            return _as(part, part.source + "?")
        if self.take("+"):  # Ruby's {n,m}+ is (...{n,m})+, and not possessive
            return self.counted(_grouped(part), "+", 1)
        return part

    def repeated(self, atom: _Part, sign: str, way: str) -> _Part:
        if sign == "?" and atom.can_be_empty:  # JavaScript takes no empty turn; a choice is the same in both
            choice = f"(?:|{atom.source})" if way == "?" else f"(?:{atom.source}|)"
            part = _as(atom, choice)
        else:
            part = self.counted(atom, sign + "?" * (way == "?"), int(sign == "+"))
        return self.kept(part) if way == "+" else part

    def counted(self, atom: _Part, quantifier: str, least: int) -> _Part:
        if atom.can_be_empty:
            raise PatternError(f"{quantifier} after what may be empty")
        return _Part(atom.source + quantifier, least == 0, False, atom.heads, atom.tails)

    def kept(self, part: _Part) -> _Part:
        """What never gives back what it took: a lookahead does not, and what it saw is taken by its name."""
        self.groups += 1
        name = f"kept{self.groups}"
        return _as(part, f"(?:(?=(?<{name}>{part.source}))\\k<{name}>)")

    def atom(self, options: _Options) -> _Part:
        if self.take("("):
            return self.group(options)
        if self.take("["):
            found = self.set_in_brackets(options)
            return _Part(found.source, heads=self.folded, tails=self.folded)
        if self.take("."):
            return _Part("[^]" if options.dot_takes_all else r"[^\n]")
        if anchor := self.take(*_ANCHORS):
            return _Part(_ANCHORS[anchor], True)
        if self.take(r"\R"):
            return _Part(f"(?:\\r\\n|(?!\\r\\n)[{_NEWLINES}])", is_fixed=False)
        if found := self.escaped_set(_WORD_ALONE, "dDsSwWhH" if options.ignores_case else ""):
            return _Part(found.source)
        if self.here in ("?", "*", "+"):
            raise PatternError("a quantifier after nothing")
        if self.here == "{" and self.match(r"\{[\d,]"):
            raise PatternError("a { that begins no quantifier")
        return self.literal(self.character(), options)

    def literal(self, character: str, options: _Options) -> _Part:
        if not options.ignores_case:
            return _Part(_written(character))
        cases = _cases_of(character)
        folded = frozenset(cases.lower())
        return _Part(_written(character) if len(cases) == 1 else f"[{literal(cases)}]", heads=folded, tails=folded)

    def group(self, options: _Options) -> _Part:
        """After its (."""
        if look := self.take(*_LOOKS):
            if options.looks_behind:
                raise PatternError("a lookaround inside a lookbehind")
            inner = self.alternatives(_changed(options, looks_behind="<" in look))
            if "<" in look and (inner.can_be_empty or not inner.is_fixed):
                raise PatternError("a lookbehind of no certain length")
            return _Part(f"({look}{self.closed(inner).source})", True, True, inner.heads, inner.tails)
        if self.take("?>"):
            if options.looks_behind:
                raise PatternError("an atomic group inside a lookbehind")
            return self.kept(self.closed(self.alternatives(options)))
        if found := self.match(r"\?([im]*)(?:-([im]*))?([:)])"):
            on, off, end = found.groups()
            for name, letter in (("ignores_case", "i"), ("dot_takes_all", "m")):
                if letter in on + (off or ""):
                    options = _changed(options, **{name: letter not in (off or "")})
            inner = self.alternatives(options)  # (?i) alone is for all that follows in its group, also after a |
            part = self.closed(inner) if end == ":" else inner
        elif not self.here == "?" or self.match(r"\?<[A-Za-z_]\w*>"):
            part = self.closed(self.alternatives(options))
        else:
            raise PatternError(f"({self.pattern[self.at : self.at + 2]}")
        return _grouped(part)

    def closed(self, part: _Part) -> _Part:
        if not self.take(")"):
            raise PatternError("a ( without its )")
        return part

    def character(self) -> str:
        """The next character, which may be escaped."""
        if not self.take("\\"):
            self.at += 1
            return self.pattern[self.at - 1]
        found = self.match(r"x\{([0-9A-Fa-f]{1,8})\}|x([0-7][0-9A-Fa-f]?)(?![0-9A-Fa-f])|u([0-9A-Fa-f]{4})")
        if found:
            code = int(found[1] or found[2] or found[3], 16)
            if code > sys.maxunicode or 0xD800 <= code < 0xE000:
                raise PatternError(f"\\{found[0]}")
            return chr(code)
        self.at += 1
        escaped = self.pattern[self.at - 1 : self.at]
        if escaped in _ESCAPED and escaped:
            return chr(_ESCAPED[escaped])
        if not escaped or escaped.isalnum():
            raise PatternError(f"\\{escaped}")
        return escaped

    def escaped_set(self, word: str, only: str) -> _Set | None:
        """A set such as \\w or \\p{Han}, if one comes now. word: what \\w is here; only: the letters that are known."""
        if found := self.match(r"\\([dDhHsSwW])"):
            letter, negated = found[1], found[1].isupper()
            inside = _ESCAPED_SETS[letter.lower()]
        elif found := self.match(r"\\([pP])\{(\^?)([\w -]*)\}"):
            letter, negated = "p", (found[1] == "P") != (found[2] == "^")
            if _plain_name(found[3]) not in _properties():
                raise PatternError(found[0])
            inside = _properties()[_plain_name(found[3])]
        else:
            return None
        known = _Set.of(word if inside == _WORD else inside)
        if only and letter not in only:
            raise PatternError(f"{found[0]} where case is ignored")
        return known.others() if negated else known

    def set_in_brackets(self, options: _Options) -> _Set:
        """After its [. What is found in either case is in `folded` then."""
        negated = bool(self.take("^"))
        if negated and options.ignores_case:
            raise PatternError("[^...] where case is ignored")
        sides: list[_Set] = []
        folded = ""
        members: list[_Set] = []
        is_first = True
        while not self.take("]"):
            if not self.here:
                raise PatternError("a [ without its ]")
            if self.take("&&"):
                if not members or options.ignores_case or self.here in ("&", "]", "-"):
                    raise PatternError("&& that joins nothing, or where case is ignored")
                sides.append(_union(members))
                members = []
                continue
            if self.here == "[" and options.ignores_case:
                raise PatternError("a set in a set where case is ignored")
            if found := self.match(r"\[:(\^?)([a-z]+):\]"):
                if found[2] not in _POSIX:
                    raise PatternError(found[0])
                members.append(_Set.of(_POSIX[found[2]]).others() if found[1] else _Set.of(_POSIX[found[2]]))
            elif self.take("["):
                members.append(self.set_in_brackets(options))
            elif found := self.escaped_set(_WORD, _CASELESS_SETS if options.ignores_case else ""):
                members.append(found)
            else:
                inside, both = self.range_in_brackets(is_first, options)
                members.append(_Set.of(inside))
                folded += both
            is_first = False
        if not members:
            raise PatternError("[] or && without anything")
        found = _union(members)
        for side in sides:
            found = _intersection(side, found)
        self.folded = frozenset(folded)
        return found.others() if negated else found

    def range_in_brackets(self, is_first: bool, options: _Options) -> tuple[str, str]:
        """A character or a range, as JavaScript writes it inside [...], and what of it is found in either case."""
        if self.here == "-" and not is_first and not self.pattern.startswith("-]", self.at):
            raise PatternError("a - inside [...] that is neither first nor last nor between two characters")
        first = last = self.character_in_brackets()
        if self.here == "-" and not self.pattern.startswith("-]", self.at):
            self.at += 1
            if self.here in ("[", "-", "]", "") or self.pattern.startswith("&&", self.at) or first == "-":
                raise PatternError("a range in [...] with an odd end")
            if self.pattern[self.at : self.at + 2] in (rf"\{letter}" for letter in "dDhHsSwWpP"):
                raise PatternError("a range in [...] that ends in a set")
            last = self.character_in_brackets()
        if last < first:
            raise PatternError("a range in [...] that runs backwards")
        if not options.ignores_case:
            return (_written(first) if last == first else f"{_written(first)}-{_written(last)}"), ""
        if last != first and not last.isascii():
            raise PatternError("a range beyond ASCII where case is ignored")
        cases = "".join(_cases_of(chr(code)) for code in range(ord(first), ord(last) + 1))
        return literal(cases), cases.lower()

    def character_in_brackets(self) -> str:
        return "\b" if self.take(r"\b") else self.character()


def _as(part: _Part, source: str) -> _Part:
    """The same, written otherwise, with a choice of lengths."""
    return _Part(source, part.can_be_empty, False, part.heads, part.tails)


def _grouped(part: _Part) -> _Part:
    return _Part(f"(?:{part.source})", part.can_be_empty, part.is_fixed, part.heads, part.tails)


def _changed(options: _Options, **changes: bool) -> _Options:
    return _Options(**{**vars(options), **changes})


def _cases_of(character: str) -> str:
    """What is found for a character where case is ignored."""
    lower, upper = character.lower(), character.upper()
    if character.isascii():
        return lower if lower == upper else lower + upper + _OTHER_CASES.get(lower, "")
    if not lower == upper == character.casefold() == character:
        raise PatternError(f"{character} where case is ignored")
    return character


def _check_folded(before: frozenset[str], after: frozenset[str]) -> None:
    """Refuse neighbors that one character may stand for where case is ignored: ß for ss."""
    for left in before:
        for right in after:
            if left + right in _joined_cases():
                raise PatternError(f"{left}{right} where case is ignored, which one character may stand for")
