"""What the checks answer, in the language of the notebook.

The code has the English sentences. Their Chinese stands beside it as pairs (see minimind_edu.words): those of the
exercises of a chapter in its `name.zh.md`, those of all checks in `exercise.zh.md`. Where a chapter has no such file,
its checks answer in English.
"""

from functools import cache
from pathlib import Path

from minimind_edu.notebook import language
from minimind_edu.words import Words, pairs_in

FOLDER = Path(__file__).parent
SHARED = "exercise"
_PART = {"{}: {}": "{}: {}"}  # such as the name of a tensor before what is wrong with it: each is translated by itself


def file_of(chapter: str) -> Path:
    """The file with the Chinese of what this chapter's checks answer."""
    return FOLDER / f"{chapter}.zh.md"


@cache
def _words_of(chapter: str) -> Words:
    if not file_of(chapter).is_file():
        return Words({})
    return Words(*(pairs_in(file_of(name).read_text(encoding="utf-8")) for name in (SHARED, chapter)), _PART)


def in_chinese(answer: str, chapter: str) -> str:
    """What a check of this chapter prints, line by line in Chinese; names in code stay what they are."""
    words = _words_of(chapter)
    return "\n".join(words(line) or line for line in answer.split("\n"))


def tell(answer: str, chapter: str) -> None:
    """Print what a check of this chapter answers, in the language of the notebook."""
    print(in_chinese(answer, chapter) if language() == "zh" else answer)
