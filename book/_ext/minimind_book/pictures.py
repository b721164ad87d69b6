"""Pictures drawn by matplotlib stand in the page itself, in the page's colors and lettering; others say their size."""

import re
import struct
from html import escape, unescape
from pathlib import Path

from minimind_edu.web.palette import PALETTE

_TO_VARIABLE = {color.either: f"var(--mm-{name})" for name, color in reversed(PALETTE.items())}
_HEX = re.compile(r"#[0-9a-f]{6}\b")
_PLACES = re.compile(r' (?:d|x|y)="[^"]*"')
_FINE = re.compile(r"\d+\.\d\d+")
_NARROW = re.compile(r'<svg [^>]*class="narrow".*?</svg>', re.DOTALL)


def inline(svg: str, alt: str) -> str:
    """The <svg> element of a file, its colors those of the theme; `alt` describes it if it does not do so itself.

    A picture of minimind_edu.measure.plotting holds another one, for phones, which then stands before it: a page that
    is still on its way to a phone never shows the wide one. Its places are rounded to tenths of a unit, which no eye
    can tell from hundredths: a tenth less to send.

    Raises:
        ValueError: if nothing describes it.
    """
    svg = svg[svg.index("<svg") :].rstrip()
    svg = re.sub(r"<!--.*?-->|<metadata>.*?</metadata>", "", svg, flags=re.DOTALL)
    svg = _HEX.sub(lambda found: _TO_VARIABLE.get(found[0], found[0]), svg)
    if "<title" not in svg:
        if not alt or re.fullmatch(r"[\w./-]+", alt):
            raise ValueError("a picture has no description: give it an alt text")
        svg = svg.replace("<svg", f'<svg role="img" aria-label="{escape(alt)}"', 1)
    if _NARROW.search(svg):
        svg = _PLACES.sub(lambda found: _FINE.sub(lambda number: f"{float(number[0]):.1f}", found[0]), svg)
        [narrow] = _NARROW.finditer(svg)
        [title] = re.findall(r"<title[^>]*>(.*?)</title>", svg, re.DOTALL)
        named = narrow[0].replace('display="none"', f'role="img" aria-label="{escape(unescape(title))}"')
        svg = named + svg.replace(narrow[0], "")
    return f'<div class="picture">{svg}</div>'


def size_of(file: Path) -> str:
    """The attributes of the size of a .png, which its header tells; nothing for others."""
    if file.suffix != ".png" or not file.is_file():
        return ""
    width, height = struct.unpack(">II", file.read_bytes()[16:24])
    return f'width="{width}" height="{height}" '
