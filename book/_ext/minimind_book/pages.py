"""The shell around the text: one template, one stylesheet, one script, and what Sphinx writes, lighter.

The stylesheet stands in the page, which paints earlier for it. The head has one inline script: it chooses the theme
before anything is painted.
"""

import base64
import hashlib
import json
import re
import shutil
from html import escape, unescape
from pathlib import Path
from typing import Any
from urllib.parse import quote

from docutils import nodes
from sphinx import addnodes
from sphinx.application import Sphinx
from sphinx.config import Config
from sphinx.writers.html5 import HTML5Translator

from minimind_book import chinese, figures, fonts, moved, pictures, symbols
from minimind_book.words import SCRIPT_WORDS, icon, words
from minimind_edu.web import palette
from tools import chinese_branch, install_cell
from tools.chapters import chapters

ROOT = Path(__file__).resolve().parents[3]
THEME = ROOT / "book" / "theme"
SHELL_CSS = THEME / "shell.css"
CHINESE_CSS = THEME / "chinese.css"
GRADES_CSS = THEME / "grades.css"

# Before anything is painted: the theme, and the fonts of the page. They are asked for together, not when the first word
# is set in each, and nothing is shown until they are there; shell.css says how long at most. A reader whose browser
# speaks Chinese is led to the Chinese page once, if that can be remembered; the switch remembers the reader's choice.
HEAD_SCRIPT = (
    "const d=document,r=d.documentElement,s=k=>{try{return localStorage.getItem(k)}catch{}},m=s('mode')||'auto';"
    "r.dataset.mode=m;"
    "r.dataset.theme=m==='auto'?(matchMedia('(prefers-color-scheme: dark)').matches?'dark':'light'):m;"
    "r.dataset.view=s('view')||'read';r.classList.add('js','waiting');"
    "const z=r.dataset.chinese;if(z&&!s('language')&&/^zh/i.test(navigator.language))"
    "try{localStorage.setItem('language','zh');location.replace(z+location.search+location.hash)}catch{}"
    "Promise.allSettled(r.dataset.fonts.split(',').map(f=>d.fonts.load(f)))"
    ".then(()=>r.classList.remove('waiting'))"
)
_OWN = "'self' file:"  # from a folder, too, where not every browser takes 'self' for the folder
_HASH = base64.b64encode(hashlib.sha256(HEAD_SCRIPT.encode()).digest()).decode()
# What a page may run and fetch: its own files (Firefox fetches the next page ahead, which only the default allows), and
# the one script above. Training runs in a worker made of a blob.
POLICY = (
    f"default-src {_OWN}; object-src 'none'; script-src {_OWN} 'sha256-{_HASH}'; worker-src blob:; "
    f"style-src {_OWN} 'unsafe-inline'; img-src {_OWN} data:; font-src {_OWN}; connect-src {_OWN}; "
    f"form-action {_OWN}; base-uri 'none'"
)
# The files of the book's fonts, and how each is asked for.
FONTS = {
    "text.woff2": "1em Book Text",
    "text-italic.woff2": "italic 1em Book Text",
    "sans.woff2": "1em Book Sans",
    "math.woff2": "1em Book Math",
}

PLAIN_TOKENS = {"n", "p", "w", "nb"}  # token classes that no rule colors
_TOKEN = re.compile(r'<span class="(\w+)">([^<]*)</span>')
_DOT = re.compile(r"(?<=\w)(?=[./]\w)")
_JOINT = re.compile(r"(?<=\w)(?=_)|(?<=[a-z0-9])(?=[A-Z])")  # of snake_case and CamelCase
WHOLE = 16  # characters of a name, or of what is between its dots, that fit into a narrow column
_FLAG = re.compile(r"(?<= )--?\w[\w-]*")  # of a command: a browser would break the line after its dash


def _breakable(name: str) -> str:
    """A name that a narrow column may break: between its dots, and where that does not do, between its words."""
    if len(name) <= WHOLE:
        return name
    parts = _DOT.split(name)
    return "<wbr>".join(_JOINT.sub("<wbr>", part) if len(part) > WHOLE else part for part in parts)


class Translator(HTML5Translator):
    """Sphinx's own, but figures are completed, pictures are light, and what is wide scrolls by itself."""

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self.numbering = figures.Numbering(self.config.language)
        self.in_cell = False

    def visit_raw(self, node: nodes.raw) -> None:
        if "html" in node.get("format", "").split():
            speaks = chinese.speaks(self.builder.app, self.builder.current_docname)
            html = self.numbering.complete(node.astext(), node.get("opening", False), "zh" if speaks else "en")
            self.body.append(chinese.in_figure(html) if speaks else html)
            raise nodes.SkipNode
        super().visit_raw(node)

    def visit_table(self, node: nodes.table) -> None:
        self.body.append('<div class="scroll">')
        if "colwidths-given" in node["classes"]:  # in the directive of a table, whose rows alone would say nothing
            node["classes"] = [name for name in node["classes"] if name != "colwidths-auto"]
        super().visit_table(node)

    def depart_table(self, node: nodes.table) -> None:
        super().depart_table(node)
        self.body.append("</div>")

    def visit_entry(self, node: nodes.entry) -> None:
        self.in_cell = True
        super().visit_entry(node)

    def depart_entry(self, node: nodes.entry) -> None:
        super().depart_entry(node)
        self.in_cell = False

    def visit_literal(self, node: nodes.literal) -> None:
        text = node.astext()
        name = symbols.attribute(self.builder.current_docname, text) or node.get("sym", "")
        shown = escape(text, quote=False)
        if self.in_cell:
            shown = " ".join(map(_breakable, shown.split(" ")))
        shown = _FLAG.sub(r'<span class="unbroken">\g<0></span>', shown)
        self.body.append(f"<code{name}>{shown}</code>")
        raise nodes.SkipNode

    def visit_literal_block(self, node: nodes.literal_block) -> None:
        begin = len(self.body)
        try:
            super().visit_literal_block(node)
        except nodes.SkipNode:
            written = "".join(self.body[begin:]).replace("<pre><span></span>", "<pre>")
            plain = _TOKEN.sub(lambda token: token[2] if token[1] in PLAIN_TOKENS else token[0], written)
            self.body[begin:] = [plain]
            raise

    def visit_image(self, node: nodes.image) -> None:
        source = Path(self.builder.srcdir) / node["uri"]  # the translator replaces it by its place in the output
        if source.suffix == ".svg" and source.is_file():
            self.body.append(pictures.inline(source.read_text(encoding="utf-8"), node.get("alt", "")))
            raise nodes.SkipNode
        begin = len(self.body)
        super().visit_image(node)
        written = "".join(self.body[begin:])
        size = pictures.size_of(source)  # without it what follows would move when the picture comes
        self.body[begin:] = [written.replace("<img ", f'<img loading="lazy" decoding="async" {size}', 1)]

    def visit_reference(self, node: nodes.reference) -> None:
        sets_figure = node.get("refuri", "").startswith(symbols.FIGURE_SCHEME)
        if sets_figure:
            node["refuri"] = unescape(node["refuri"])  # MyST has escaped it, and Sphinx will
        super().visit_reference(node)
        if sets_figure:
            self.body[-1] = self.body[-1].replace("<a ", '<a role="button" ', 1)


# What a reader looks up while he reads: the menu of the bar leads there from every page.
LOOK_UP = ("book/reference/glossary", "book/reference/formulas", "book/notation")

Entry = tuple[str, str, list[tuple[str, str]] | None]  # address, title; of the page itself: its sections


def sections_of(app: Sphinx, page: str) -> list[tuple[str, str]]:
    """Address and title of every section of the second level."""
    sections = [item for title in app.env.tocs[page][:1] for part in title[1:] for item in part]
    references = [next(item.findall(nodes.reference)) for item in sections]
    return [(reference["anchorname"], reference.astext()) for reference in references]


def contents(app: Sphinx, page: str) -> list[tuple[str, list[Entry]]]:
    """The parts of the book, each with its pages."""
    site = app.env.external_site_map

    def entry(name: str) -> Entry:
        title = chinese.in_language(site[name].title or app.env.titles[name].astext())
        if name == page:
            return "#", title, sections_of(app, page)
        return app.builder.get_relative_uri(page, name), title, None

    return [
        (chinese.in_language(part.caption), [entry(str(name)) for name in part.items]) for part in site.root.subtrees
    ]


def look_up(app: Sphinx) -> list[tuple[str, str]]:
    """The pages for looking things up, each with its title; a book that is built in part may lack some."""
    return [(page, app.env.titles[page].astext()) for page in LOOK_UP if page in app.env.titles]


def lead_to_stories(app: Sphinx, doctree: nodes.document) -> None:
    """Let links such as `live.md#story=Mia_is_in_the_hall.` keep what follows `#`, which is no section of that page."""
    for link in list(doctree.findall(addnodes.pending_xref)):
        fragment = link.get("reftargetid") or ""
        if fragment.startswith("story="):
            page = app.builder.get_relative_uri(app.env.docname, link["reftarget"])
            address = f"{page}#{quote(fragment, safe='=&?:,')}"
            link.replace_self(nodes.reference("", "", *link.children, refuri=address, internal=True))


def description_of(doctree: nodes.document | None) -> str:
    """The first paragraph of a page that is one of words, cut at a word."""
    paragraphs = (paragraph.astext() for paragraph in doctree.findall(nodes.paragraph)) if doctree is not None else ()
    least, most = (20, 80) if chinese.IS_CHINESE else (40, 160)
    text = next((" ".join(paragraph.split()) for paragraph in paragraphs if len(paragraph) > least), "")
    if re.search("[\u3400-\u9fff]", text[:most]):
        return text if len(text) <= most else f"{text[:most]}……"
    return text if len(text) <= 160 else text[:160].rsplit(" ", 1)[0] + " …"


def twin(app: Sphinx, page: str, context: dict[str, Any]) -> dict[str, Any]:
    """What the template says of the page in the other language: where it is, for readers and for search engines."""
    translated = chinese.is_translated(app, page)
    offered = chinese.IS_CHINESE or chinese.HAS_TWIN and translated
    address, base = f"{page}.html", app.config.html_baseurl
    addresses = {"en": f"{base}{address}", "zh-CN": f"{base}{chinese.FOLDER}/{address}"}
    other = f"../{address}" if chinese.IS_CHINESE else f"{chinese.FOLDER}/{address}"
    return {
        "language": chinese.LANGUAGES["zh" if chinese.IS_CHINESE else "en"],
        "other_page": f"{context['content_root']}{other}" if offered else "",
        "other_language": chinese.LANGUAGES["en" if chinese.IS_CHINESE else "zh"],
        "alternates": [*addresses.items(), ("x-default", addresses["en"])] if chinese.HAS_TWIN and translated else [],
        "canonical": addresses["zh-CN" if chinese.IS_CHINESE and translated else "en"] if base else "",
        "untranslated": chinese.IS_CHINESE and not translated,
        "script_words": json.dumps(SCRIPT_WORDS, ensure_ascii=False) if chinese.IS_CHINESE else "",
    }


def lighter(body: str) -> str:
    """What Sphinx writes and no rule or script of ours asks for, taken out."""
    body = body.replace('<a class="headerlink"', '<a class="headerlink" tabindex="-1"')
    body = body.replace(" docutils container", "").replace("tex2jax_ignore mathjax_ignore", "")
    return body.replace(' class=""', "").replace('<div class="docutils">', "<div>")


def complete_context(app: Sphinx, page: str, template: str, context: dict[str, Any], doctree: Any) -> None:
    """Give the template its words, the page's own scripts and styles, and where the page comes from."""
    names = figures.figures_on(doctree)
    w = words(app.config.language)
    other = twin(app, page, context)
    is_chinese = chinese.IS_CHINESE and not other["untranslated"]
    scripts = [{"file": "_static/shell.js", "loading": "defer"}]
    if names:
        first = names[:1] if page in chapters() else figures.AT_ONCE.get(page, ())
        files = [*(f"{name}.js" for name in first), figures.HOST]
        english = "../" if other["untranslated"] else ""  # its figures speak English too: they are the other book's
        scripts += [{"file": f"{english}_static/figures/{file}", "loading": "async"} for file in files]
    url, branch = app.config.book_repository, app.config.book_branch
    source = Path(app.env.doc2path(page)) if page in app.env.found_docs else None
    here = source.relative_to(app.srcdir).as_posix() if source else ""
    is_notebook = here.endswith(".ipynb")
    opened = f"{chinese_branch.BRANCH}/{source.name}" if is_chinese and source else f"{branch}/{here}"
    colab = f"https://colab.research.google.com/github/{url.removeprefix('https://github.com/')}/blob/{opened}"
    title = re.sub(r"<[^>]*>", "", context.get("title") or w["search"]) if page != "search" else w["search"]
    book = context["docstitle"]
    body = lighter(context.get("body") or "").replace(">Link to this heading<", f">{w['heading_link']}<")
    for neighbor in filter(None, (context.get("prev"), context.get("next"))):
        neighbor["title"] = chinese.in_language(neighbor["title"])
    base = app.config.html_baseurl or context["pathto"]("", 1)
    edition = f"{chinese.FOLDER}/" if is_chinese and app.config.html_baseurl else ""
    fonts_here = fonts_of(body, is_chinese)
    context |= other | {
        "w": w,
        "icon": icon,
        "body": body,
        "author": app.config.author,
        "page_title": book if page == app.config.root_doc else f"{title} · {book}",
        "description": description_of(doctree),
        "share_card": f"{base}{edition}_static/share.png",
        "head_script": HEAD_SCRIPT,
        "policy": POLICY,
        "fonts": ",".join(FONTS[file] for file in fonts_here),
        "stylesheet": with_fonts(app.book_styles, fonts_here).replace(
            "url(fonts/", f"url({context['pathto']('_static/fonts/', 1)}"
        )
        + compressed(figures.styles_of(page, names))
        + (app.grade_styles if 'class="grades"' in body else "")
        + (app.chinese_styles if is_chinese else ""),
        "page_scripts": scripts,
        "place": chapters()[page].place if page in chapters() else "",
        "fills": figures.read_in_strip(chapters()[page].place) if page in chapters() else "",
        "moved_places": moved.places_from(app, page),
        "contents": contents(app, page),
        "look_up": look_up(app),
        "has_figures": bool(names),
        "has_code": 'class="code"' in body,
        "source_url": f"{url}/blob/{branch}/{here}" if source else url,
        "is_notebook": is_notebook,
        "colab": colab if is_notebook else "",
        "notebook": f"{'../' * other['untranslated']}notebooks/{source.name}" if source else "",
    }


def compressed(css: str) -> str:
    """Without comments and the space around signs."""
    css = re.sub(r"/\*.*?\*/", "", css, flags=re.DOTALL)
    css = re.sub(r"\s*\n\s*", " ", css)
    return re.sub(r"\s*([{};,>])\s*", r"\1", css).strip()


def fonts_of(body: str, is_chinese: bool) -> list[str]:
    """The files of the fonts in which a page sets something; upright Chinese text takes those of the system."""
    needed = {"text.woff2": not is_chinese, "text-italic.woff2": "<em" in body, "math.woff2": "<math" in body}
    return [file for file in FONTS if needed.get(file, True)]


def with_fonts(css: str, files: list[str]) -> str:
    """The styles with these fonts of the book, and no other."""
    for file in set(FONTS) - set(files):
        css = re.sub(rf"@font-face *\{{[^}}]*fonts/{re.escape(file)}[^}}]*\}}", "", css)
    return css


def take_the_theme(app: Sphinx, config: Config) -> None:
    """Take what Jupyter Book meant for its own theme, and set ours."""
    options = config.html_theme_options or {}
    config.book_repository = options.get("repository_url", "")
    config.book_branch = options.get("repository_branch", "main")
    config.html_theme_options = {}
    config.html_theme = "minimind"
    config.html_permalinks_icon = "#"


def write_styles(app: Sphinx) -> None:
    """Read the stylesheet once, with the palette and the fonts of the system in front of it."""
    if app.builder.format == "html":
        given = [f":root {{ {palette.css_variables()} }}", *fonts.faces(), SHELL_CSS.read_text(encoding="utf-8")]
        app.book_styles = compressed("\n".join(given))
        app.chinese_styles = compressed(CHINESE_CSS.read_text(encoding="utf-8"))
        app.grade_styles = compressed(GRADES_CSS.read_text(encoding="utf-8"))


def remove_unused(app: Sphinx, error: Exception | None) -> None:
    """Remove what no page loads."""
    if error or app.builder.format != "html":
        return
    static = Path(app.outdir) / "_static"
    needed = {path.name for path in (THEME / "static").iterdir()} | {"figures", "share.png"}
    needed.add(Path(install_cell.wheel_path()).name)
    for path in static.iterdir():
        if path.name not in needed:
            shutil.rmtree(path) if path.is_dir() else path.unlink()


def setup(app: Sphinx) -> None:
    """Register theme and translator, and complete every page."""
    app.add_config_value("comments_config", {}, "html")  # Jupyter Book sets it, whether anything reads it or not
    app.add_config_value("book_repository", "", "html")
    app.add_config_value("book_branch", "main", "html")
    app.add_html_theme("minimind", str(THEME))
    app.set_translator("html", Translator, override=True)
    app.connect("config-inited", take_the_theme)
    app.connect("builder-inited", write_styles)
    app.connect("doctree-read", lead_to_stories)
    app.connect("html-page-context", complete_context, priority=990)
    app.connect("build-finished", remove_unused, priority=990)
