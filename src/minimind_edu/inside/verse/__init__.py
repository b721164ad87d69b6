"""The page that writes: a reader begins a poem, or gives its rhyme, and the model of `trained.verse` goes on.

    poem.js      what a poem in a form is, and what it keeps of the rules of rhyme and tone
    compose.js   the model writes one
    link.js      all that makes a poem, as the end of an address
    worker.js    the model's own thread
    session.js   what the reader does
    page.js      what the reader sees

`python -m minimind_edu verse -o page.html` writes it. The tables of rhymes and tones are those by which the package
measures; the model knows nothing of them.
"""

from pathlib import Path
from typing import Any

from minimind_edu.inside.page import LANGUAGES, Code, check, facts_of, page_html, store
from minimind_edu.trained.verse import verse_model
from minimind_edu.trained.verse.corpus import EOS, characters
from minimind_edu.trained.verse.rhymes import in_oblique, level_groups, members
from minimind_edu.validation import check_choice
from minimind_edu.web import book
from minimind_edu.weights.writing import replacing

_FOLDER = Path(__file__).parent
CODE = Code(
    page=_FOLDER / "page.js",
    worker=_FOLDER / "worker.js",
    styles="inside/verse",
    titles={"en": "A page that writes verse", "zh": "会写诗的页面"},
)
PAGE = "inside/verse.html"  # in a built book


def sounds() -> dict[str, Any]:
    """What poem.js knows of how characters sounded: of each level group its name and characters, and all oblique ones.

    Names are short: 一东 for 上平声一东.
    """
    known = characters()
    oblique = "".join(known[id] for id in in_oblique().nonzero().flatten().tolist())
    return {"level": [[name[3:], members(name)] for name in level_groups()], "oblique": oblique}


def write_verse_page(target: Path, language: str = "en", book_at: str | None = None) -> None:
    """Write the page; it appears only when it is complete.

    Args:
        target: the .html file.
        language: one of `page.LANGUAGES`, in which it speaks.
        book_at: where its links to the book lead: `book.links`.

    Raises:
        FileNotFoundError, IsADirectoryError: if the file's folder does not exist, or it is a folder.
        ValueError: for a language that there is not.
    """
    check_choice("language", language, LANGUAGES)
    with replacing(target) as partial:
        stored = partial.with_name("weights.safetensors")
        model = verse_model()
        rounded = store(model, stored, 8)
        data = facts_of(model, "", "", None, book.links(language, book_at)) | {
            "rope": None,
            "bits": 8,
            "bytes": stored.stat().st_size,
            "check": check(model, rounded),
            "characters": "".join(characters()[EOS + 1 :]),
            "sounds": sounds(),
            "published": f"{book.ADDRESS}{book.FOLDERS[language]}{PAGE}",
        }
        with partial.open("w", encoding="utf-8", newline="\n") as file:
            file.writelines(page_html(CODE, data, [stored], language))
