"""Make the font by which matplotlib measures Chinese: `python -m tools.wide_font`.

Pictures hold words as words, and the page's own fonts draw them; what matplotlib needs is how wide they are. So this
font has one square for every letter and sign of Chinese, which has the width of all of them: under a kilobyte of our
own in place of a font of megabytes, and no letter can lack in it.
"""

import io
from pathlib import Path

from fontTools.fontBuilder import FontBuilder
from fontTools.pens.ttGlyphPen import TTGlyphPen
from fontTools.ttLib.tables._c_m_a_p import CmapSubtable

TARGET = Path(__file__).resolve().parents[1] / "src" / "minimind_edu" / "measure" / "wide.ttf"
EM = 1000  # units
ASCENT, DESCENT = 880, -120
# From radicals to Yi, compatibility forms, full-width signs, and the plane of rare letters
LETTERS = ((0x2E80, 0xA4CF), (0xF900, 0xFAFF), (0xFE30, 0xFE4F), (0xFF00, 0xFFEF), (0x20000, 0x2FA1F))


def made() -> bytes:
    """The font, the same bytes whenever it is made."""
    pen = TTGlyphPen(None)
    pen.moveTo((50, 0))
    for corner in ((50, 800), (950, 800), (950, 0)):
        pen.lineTo(corner)
    pen.closePath()
    square, metrics = pen.glyph(), (EM, 50)
    builder = FontBuilder(EM, isTTF=True)
    builder.setupGlyphOrder([".notdef", "wide"])
    builder.setupGlyf({".notdef": square, "wide": square})
    builder.setupHorizontalMetrics({".notdef": metrics, "wide": metrics})
    builder.setupHorizontalHeader(ascent=ASCENT, descent=DESCENT)
    builder.setupNameTable({"familyName": "MiniMind Wide", "styleName": "Regular"})
    builder.setupCharacterMap({LETTERS[0][0]: "wide"})
    builder.setupOS2(sTypoAscender=ASCENT, sTypoDescender=DESCENT, usWinAscent=ASCENT, usWinDescent=-DESCENT)
    builder.setupPost()
    ranges = CmapSubtable.newSubtable(13)  # the format in which whole ranges share one glyph
    ranges.platformID, ranges.platEncID, ranges.language, ranges.reserved = 3, 10, 0, 0
    ranges.cmap = {letter: "wide" for first, last in LETTERS for letter in range(first, last + 1)}
    builder.font["cmap"].tables.append(ranges)
    builder.updateHead(created=0, modified=0)
    builder.font.recalcTimestamp = False
    written = io.BytesIO()
    builder.save(written)
    return written.getvalue()


if __name__ == "__main__":
    print(f"{TARGET.name}: {TARGET.write_bytes(made()):,} bytes")
