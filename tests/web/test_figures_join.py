"""The joiner writes helpers once and first, and refuses every line that it does not understand."""

import re

import pytest

from minimind_edu.web.join import join, styles


@pytest.fixture
def write(tmp_path):
    def write_files(**texts: str):
        (tmp_path / "dial").mkdir()
        for name, text in texts.items():
            (tmp_path / "dial" / f"{name}.js").write_text(text, encoding="utf-8")
        return tmp_path / "dial" / "figure.js"

    return write_files


def test_helpers_come_once_and_before_those_who_use_them(write):
    entry = write(
        kit="export function one() {}\nexport const two = 2, unused = 3;\n",
        middle='import { one } from "./kit.js";\nexport class Three {}\n',
        figure='import { one, two } from "./kit.js";\nimport { Three } from "./middle.js";\nexport default { one };\n',
    )
    assert join(entry).split() == (
        "function one() {} const two = 2, unused = 3; class Three {} export default { one };".split()
    )


def test_an_import_may_be_wrapped_and_lead_to_a_folder_beside(write, tmp_path):
    (tmp_path / "kit").mkdir()
    (tmp_path / "kit" / "kit.js").write_text("export const one = 1;\nexport const two = 2;\n", encoding="utf-8")
    (tmp_path / "dial").mkdir()
    entry = tmp_path / "dial" / "figure.js"
    entry.write_text('import {\n  one,\n  two,\n} from "../kit/kit.js";\nexport default { one };\n', encoding="utf-8")
    assert join(entry) == "const one = 1;\nconst two = 2;\n\nexport default { one };\n"


def test_indentation_stays_in_the_sources(write):
    entry = write(figure="function one() {\n  return `  two`;\n}\nexport default { one };\n")
    assert join(entry) == "function one() {\nreturn `  two`;\n}\nexport default { one };\n"


def test_comments_stay_in_the_sources(write):
    entry = write(
        figure="// What it is.\n/** One. */\nconst one = `//`; // still one\n/**\n * Two,\n * at length.\n */\n"
        'const two = "`"; /* not alone */\n  // inside\nconst three = "; // a";\n\nexport default { one };\n'
    )
    assert join(entry) == (
        'const one = `//`;\nconst two = "`"; /* not alone */\nconst three = "; // a";\nexport default { one };\n'
    )


@pytest.mark.parametrize(
    "line, message",
    [
        ('import kit from "./kit.js";', "is understood"),
        ('import * as kit from "./kit.js";', "is understood"),
        ('import { one as uno } from "./kit.js";', "is understood"),
        ("import {\n  one,\n} from './kit.js';", "is understood"),
        ('  import { one } from "./kit.js";', "is understood"),
        ('import { one } from "https://elsewhere/kit.js";', "is understood"),
        ('import "./kit.js";', "is understood"),
        ("const kit = await import('./kit.js');", "is understood"),
        ('import { one } from "./kid.js";', "there is no file dial/kid.js"),
        ('import { one, three, four } from "./kit.js";', "dial/kit.js does not export three, four"),
        ('import { inner } from "./kit.js";', "dial/kit.js does not export inner"),
        ("export { one };", "only `function`"),
        ('export * from "./kit.js";', "only `function`"),
        ("const { a, b } = {};", "only `function`"),
        ("const text = `one\n// two`;", "dial/figure.js:1: const text = `one: a template literal must end on the line"),
        ("const a = 1;\nlet a = 2;", "dial/figure.js:2: let a = 2;: a is already declared in dial/figure.js"),
        (
            'import { one } from "./kit.js";\nfunction inner() {}',
            "inner is already declared in dial/kit.js",
        ),
        ("export const a = 1;\nexport class a {}", "already declared"),
    ],
)
def test_joiner_refuses_what_it_does_not_understand(write, line, message):
    kit = "export function one() {}\nfunction inner() {}\n"
    with pytest.raises(ValueError, match=re.escape(message)):
        join(write(kit=kit, figure=f"{line}\nexport default {{}};\n"))


def test_joiner_refuses_a_default_export_in_a_helper(write):
    with pytest.raises(ValueError, match="dial/kit.js:2"):
        join(
            write(
                kit="export const one = 1;\nexport default {};\n",
                figure='import { one } from "./kit.js";\nexport default { one };\n',
            )
        )


def test_joiner_refuses_a_figure_without_a_default_export(write):
    with pytest.raises(ValueError, match="dial/figure.js has no default export"):
        join(write(figure="export const render = 1;\n"))


def test_words_have_a_twin_in_another_language_that_stands_in_their_place(write):
    entry = write(
        words='export const dialWords = { en: "angle" };\n',
        figure='import { dialWords } from "./words.js";\nexport default dialWords;\n',
    )
    english = join(entry)
    entry.with_name("words.zh.js").write_text('export const dialWords = { zh: "角度" };\n', encoding="utf-8")
    assert join(entry) == english and join(entry, "fr") == english
    assert join(entry, "zh") == english.replace('{ en: "angle" }', '{ zh: "角度" }')


def test_styles_are_joined_without_what_no_browser_needs(tmp_path):
    one, two = tmp_path / "one.css", tmp_path / "two.css"
    one.write_text("/* of\n * both */\n.a {\n  width: 1px; /* a border */\n\n}\n", encoding="utf-8")
    two.write_text('.b::after {\n  content: "/";\n}\n', encoding="utf-8")
    assert styles(one, two) == '.a {\nwidth: 1px;\n}\n.b::after {\ncontent: "/";\n}\n'
