"""Draw every figure of the book once and store what it looks like: `python -m tools.stills` (`make refresh` calls it).

A page shows the still of a figure until its scripts have run, and for good where none run. The figure's own module
draws it, in a browser, from the state that the page holds; a second way of drawing would be a second truth. A still is
named by figure and state, so the build notices one that is missing, and those that no page shows are removed. An
element, which holds the state of a figure that stands in no notebook, is computed each time: its name tells only of its
arguments. The
figure that opens a chapter has two, for a wide screen and a phone, where they differ. A figure with Chinese words has a
still more for each place on a page that is translated.
"""

import argparse
import json
import re
import sys
from collections.abc import Callable, Iterator
from typing import Any

from minimind_edu import figures
from minimind_edu.figures import (
    asks_for_living,
    living_script,
    minimind_live,
    model_map,
    module_source,
    own_stylesheet,
    shared_stylesheet,
)
from minimind_edu.web import host
from minimind_edu.web.base import FOLDER, to_json
from minimind_edu.words import Words, in_state
from tools import notebook_environment
from tools.chapters import ROOT, chapters, links, notebooks
from tools.printed import settled
from tools.translated import is_translated, shared_words

sys.path += [str(ROOT / "book" / "_ext"), str(ROOT / "tests")]

from browser import chromium_path, launch
from minimind_book.figures import STILLS, arguments_of, element_file, host_script, strip_file

BROAD, COLUMN, NARROW = 908, 738, 326  # pixels: a figure in the text, one that opens a chapter, the same on a phone
LINKED = {"ModelMap": model_map.PARTS, "MiniMindLive": minimind_live.LINKED}  # figures whose parts lead to chapters
_DIRECTIVE = re.compile(r"^```\{live-figure\} (\w+)\n(.*?)^```", re.DOTALL | re.MULTILINE)

# What the figure has drawn, as HTML that stands anywhere: names of its own for ids, values where a reader set none,
# numbers that no eye can tell apart rounded, and nothing that takes a Tab stop or is announced.
_TAKE = r"""(prefix) => {
    const figure = document.querySelector(".mm-fig");
    figure.querySelectorAll("input").forEach((one) => {
        if (["checkbox", "radio"].includes(one.type)) one.toggleAttribute("checked", one.checked);
        else {
            one.getAttribute("style"); // Chromium places a style among the attributes when it is first asked for
            one.setAttribute("value", one.value);
        }
    });
    const ids = new Map();
    const used = [...document.querySelectorAll("[id], [name]")].flatMap((one) => [one.id, one.name]).filter(Boolean);
    let html = figure.outerHTML;
    for (const id of new Set(used)) html = html.replaceAll(`"${id}"`, `"${prefix}${ids.set(id).size}"`)
        .replaceAll(`#${id})`, `#${prefix}${ids.size})`);
    // Steps instead of places pack to a fifth; where there are very many, or dozens of stripes, whole pixels will do.
    const isDense = figure.querySelectorAll(".mm-stripe").length > 60;
    const scale = isDense || html.length > 60_000 ? 1 : 10;
    const round = (x) => Math.round(x * scale) / scale;
    const sizes = { M: 2, L: 2, C: 6, H: 1, V: 1, Z: 0 };
    const steps = (path) => {
        const parts = path.match(/[A-Za-z]|-?\d+(?:\.\d+)?(?:e-?\d+)?/g) ?? [];
        let [x, y, command, out] = [0, 0, "", ""];
        for (let i = 0; i < parts.length; ) {
            if (/[A-Za-z]/.test(parts[i])) command = parts[i++];
            if (!(command in sizes)) return path; // an arc that nearly closes needs each of its digits
            const places = parts.slice(i, (i += sizes[command])).map((part) => round(Number(part)));
            const isFlat = command === "H" || (command !== "V" && null);
            const moved = places.map((place, n) => round(place - ((isFlat ?? n % 2 === 0) ? x : y)));
            out += command === "M" ? `M${places.join(" ")}` : command.toLowerCase() + moved.join(" ");
            if (command === "H") x = places[0];
            else if (command === "V") y = places[0];
            else if (places.length) [x, y] = places.slice(-2);
        }
        return out.replaceAll(" -", "-");
    };
    html = html.replace(/ d="([^"]*)"/g, (_, path) => ` d="${steps(path)}"`);
    html = html.replace(/ data-lm-suppress-shortcuts="true"| aria-live="polite"| tabindex="-?[01]"| mm-seen/g, "");
    const places = / (?:x|y|x1|x2|y1|y2|dx|dy|cx|cy|r|rx|ry|width|height|points|transform)="[^"]*"/g;
    return html.replace(places, (one) => one.replace(/-?\d+\.\d+/g, (x) => Math.round(x * 10) / 10));
}"""


def directives(language: str = "en") -> Iterator[tuple[str, dict[str, Any]]]:
    """Name and arguments of the figures on pages that are no notebooks; in Chinese, on those that are translated."""
    pages = sorted((ROOT / "book").glob("*.md"))
    for page in pages if language == "en" else filter(is_translated, pages):
        for name, lines in _DIRECTIVE.findall(page.read_text(encoding="utf-8")):
            yield name, arguments_of(lines.splitlines())


def element(name: str, arguments: dict[str, Any]) -> str:
    """The element of a figure that stands in no notebook."""
    given = arguments | ({"links": links(LINKED[name])} if name in LINKED else {})
    return getattr(figures, name)(**given).static_html()


def strip(part: str) -> str:
    """The map as a strip that says where a chapter is. It is plain HTML, whose links need no script."""
    drawn = figures.ModelMap(compact=True, here=part, map_href="../book/index.html")
    return drawn._fallback_html()


def openings(language: str = "en") -> list[tuple[str, dict[str, Any]]]:
    """Name and arguments of the figures that open chapters; in Chinese, those that are translated."""
    opened = chapters().values()
    return [chapter.opening for chapter in opened if language == "en" or is_translated(ROOT / f"{chapter.page}.ipynb")]


def in_chapters(language: str = "en") -> list[tuple[str, str]]:
    """Name and state of every figure that a chapter has stored, each once; in Chinese, of translated ones."""
    found: dict[tuple[str, str], None] = {}
    paths = notebooks()
    for path in paths if language == "en" else filter(is_translated, paths):
        cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
        for output in (shown for cell in cells for shown in cell.get("outputs", [])):
            found |= dict.fromkeys(host.states_in("".join(output.get("data", {}).get("text/html", ""))))
    return [figure for figure in found if figure[0] != "quiz"]


def page_of(name: str, state: str, language: str = "en") -> str:
    """A page with this one figure, as small as can be."""
    module = module_source(name, language)
    if language == "zh":
        state = to_json(in_state(json.loads(state), Words(shared_words())))
    scripts = [host.registration(name, module), host_script()]
    if asks_for_living(module):
        scripts.insert(0, living_script())
    return (
        f'<!doctype html><html lang="{language}" data-theme="light">'
        f"<style>{shared_stylesheet()}{own_stylesheet(name)}</style>"
        f'<body style="margin:0">{host.element(name, state, "")}'
        + "".join(f"<script>{script}</script>" for script in scripts)
    )


def speaks_chinese(name: str) -> bool:
    """Whether the words of a figure are translated."""
    return (FOLDER / name / "words.zh.js").is_file()


def prefix_of(name: str, state: str, width: int) -> str:
    """What the ids in a still begin with."""
    return f"{host.still_name(name, state)[-17:-11]}{width}-"


def drawn(page, name: str, state: str, width: int, language: str = "en") -> str:
    """What the figure draws at this width; `page` gets another document.

    Raises:
        RuntimeError: if it does not start, or draws on a canvas, whose pixels no page could hold.
    """
    page.set_viewport_size({"width": width, "height": 900})
    page.set_content(page_of(name, state, language))
    page.wait_for_selector("[data-state]", state="attached", timeout=20_000)
    page.evaluate("new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))")
    if page.get_attribute("[data-figure]", "data-state") != host.ALIVE or page.query_selector("canvas"):
        raise RuntimeError(f"the figure {name} cannot be drawn as a still")
    return page.evaluate(_TAKE, prefix_of(name, state, width))


def all_files(browser, keep: bool = False) -> Iterator[tuple[str, str]]:
    """Every file in book/stills, and what stands in it; keep: a still that is there already has what it has."""
    page = browser.new_page(reduced_motion="reduce")

    def filled(name: str, make: Callable[..., str], *arguments: Any) -> tuple[str, str]:
        kept = keep and (STILLS / name).is_file()
        return name, (STILLS / name).read_text(encoding="utf-8").rstrip("\n") if kept else make(*arguments)

    def at_both(name: str, state: str, broad: int, narrow: int, language: str = "en") -> str:
        """One drawing serves both, if nothing but the styles arranges it."""
        wide, small = (drawn(page, name, state, width, language) for width in (broad, narrow))
        if wide == small.replace(prefix_of(name, state, narrow), prefix_of(name, state, broad)):
            return wide
        return f'<div class="broad">{wide}</div><div class="narrow">{small}</div>'

    for name, state in in_chapters():
        yield filled(host.still_name(name, state), drawn, page, name, state, BROAD)
    for chapter in chapters().values():
        yield filled(strip_file(chapter.place), strip, chapter.place)
    for name, state in in_chapters("zh"):
        if speaks_chinese(name):
            yield filled(host.still_name(name, state, "zh"), drawn, page, name, state, BROAD, "zh")
    elements: dict[str, str] = {}  # of both languages: their numbers are computed once
    for language in ("en", "zh"):
        pages = [(figure, [BROAD, NARROW]) for figure in directives(language)]
        for (name, arguments), widths in pages + [(figure, [COLUMN, NARROW]) for figure in openings(language)]:
            file = element_file(name, arguments)
            if file not in elements:
                made, stored = element(name, arguments), STILLS / file
                if keep and stored.is_file():  # with other numbers than in their last digits it is another state
                    made = settled(made, stored.read_text(encoding="utf-8").rstrip("\n"))
                elements[file] = made
                yield file, elements[file]
            for module, state in host.states_in(elements[file]):
                if language == "en" or speaks_chinese(module):
                    yield filled(host.still_name(module, state, language), at_both, module, state, *widths, language)
    page.close()


def main(arguments: list[str] | None = None) -> None:
    """Draw all, and remove what no page shows."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--missing", action="store_true", help="draw only what has no still yet, or another state")
    options = parser.parse_args(arguments)
    from playwright.sync_api import sync_playwright

    notebook_environment.apply()
    STILLS.mkdir(exist_ok=True)
    with sync_playwright() as playwright:
        if chromium_path(playwright) is None:
            raise SystemExit("There is no Chromium on this machine to draw the figures with; the stills are as before.")
        browser = launch(playwright)
        stills = dict(all_files(browser, keep=options.missing))
        browser.close()
    for path in STILLS.glob("*.html"):
        if path.name not in stills:
            path.unlink()
    for name, html in stills.items():
        (STILLS / name).write_text(html + "\n", encoding="utf-8")
    print(f"{len(stills)} files, {sum(map(len, stills.values())) / 1000:.0f} kB")


if __name__ == "__main__":
    main()
