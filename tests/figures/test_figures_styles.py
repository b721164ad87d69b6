"""All figures have two widths at which they change and three sizes of text, which kit.js and figure.css name."""

import re
from pathlib import Path

import pytest
from browser import PACKAGE

ROOFS = ("figures/*", "web/*", "inside", "inside/*")
KIT = (PACKAGE / "web/kit/kit.js").read_text(encoding="utf-8")
STYLES = sorted(path for roof in ROOFS for path in PACKAGE.glob(f"{roof}/*.css"))
SCRIPTS = sorted(path for roof in ROOFS for path in PACKAGE.glob(f"{roof}/*.js") if path.parent.name != "live")
NAMED = {name: int(number) for name, number in re.findall(r"^export const (NARROW|WIDE) = (\d+);", KIT, re.MULTILINE)}
CONDITIONS = {f"(width {sign} {number}px)" for sign in ("<", ">=") for number in NAMED.values()}
SIZE = r"var\(--mm-(?:small|text|large)\)"
# a size, a multiple of one, that of the element around; and what follows a size in the shorthand
SIZES = re.compile(rf"(?:\d+ )?(?:{SIZE}|calc\([\d.]+ \* {SIZE}\)|inherit|0|[\d.]+em)(?: .*)?")


def each(paths: list[Path]):
    return pytest.mark.parametrize("path", paths, ids=lambda path: f"{path.parent.name}/{path.name}")


def rules(path: Path) -> str:
    return re.sub(r"/\*.*?\*/", "", path.read_text(encoding="utf-8"), flags=re.DOTALL)


def test_scripts_and_styles_name_the_same_sizes():
    assert NAMED == {"NARROW": 460, "WIDE": 600}
    [listed] = re.findall(r"^export const TEXT_SIZES = \{ (.*) \};", KIT, re.MULTILINE)
    in_script = dict(one.split(": ") for one in listed.split(", "))
    in_style = dict(re.findall(r"--mm-(small|text|large): ([\d.]+)px;", rules(PACKAGE / "web/kit/figure.css")))
    assert in_script == in_style and len(in_style) == 3


@each(STYLES)
def test_styles_change_at_the_two_widths_alone(path):
    assert set(re.findall(r"@container ([^{]*?) *\{", rules(path))) <= CONDITIONS


@each(STYLES)
def test_styles_have_the_three_sizes_of_text_alone(path):
    sizes = re.findall(r"(?<![-\w])font(?:-size)?: ([^;]+);", rules(path))
    assert [size for size in sizes if not SIZES.fullmatch(size)] == []


@each(SCRIPTS)
def test_scripts_compare_widths_with_names_and_set_no_size_of_text(path):
    script = path.read_text(encoding="utf-8")
    assert re.findall(r"\b(?:w|\w*[wW]idth) (?:[<>]=?) \d{2,}.*", script) == []
    assert re.findall(r"font-?[sS]ize\W{1,4}\d.*", script) == []
    assert path.name == "kit.js" or not re.search(r"^(?:export )?const (?:NARROW|WIDE)\b", script, re.MULTILINE)
