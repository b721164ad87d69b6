"""The words of the pages around the text, one table a language."""

from markupsafe import Markup

WORDS = {
    "en": {
        "skip": "Skip to the text",
        "contents": "Contents",
        "close": "Close",
        "search": "Search",
        "search_book": "Search this book",
        "search_needs_scripts": "The search runs in your browser and needs JavaScript.",
        "figures_need_scripts": "Without JavaScript, the figures on this page are still pictures.",
        "view": "What the page shows",
        "read": "Read",
        "code": "Code",
        "more": "More",
        "run": "Run",
        "colab": "Open in Colab",
        "notebook": "Download: a notebook that needs no network",
        "source": "Source on GitHub",
        "print": "Print",
        "theme": "Color mode",
        "beside": "Previous and next page",
        "before": "Previous",
        "next": "Next",
        "by": "By",
        "one_line": "code, 1 line",
        "lines": "code, {} lines",
        "figure": "Figure {}. ",
        "not_run": "Your turn: write it in the notebook. Run opens it in Colab, or gives it to you as a file.",
        "zoom_out": "Zoom out: see this part in the whole model",
    },
}


def words(language: str | None) -> dict[str, str]:
    """The table of `language`; English stands in for one that has none."""
    return WORDS.get((language or "en").split("-")[0], WORDS["en"])


_PATHS = {
    "menu": "M4 6h16M4 12h16M4 18h16",
    "sun": "M12 8a4 4 0 1 0 0 8a4 4 0 1 0 0-8M12 2v3M12 19v3M2 12h3M19 12h3M5 5l2 2M17 17l2 2M19 5l-2 2M7 17l-2 2",
    "moon": "M20 14.5A8.5 8.5 0 0 1 9.5 4a8.5 8.5 0 1 0 10.5 10.5",
    "auto": "M9 8a4 4 0 0 0 0 8M9 2v2M3 5l2 2M1 12h2M3 19l2-2M9 20v2M14 4a8 8 0 0 1 0 16a11 11 0 0 0 0-16",
}


def icon(name: str) -> Markup:
    """A picture of one line for a button."""
    path = f'<path d="{_PATHS[name]}"/>'
    return Markup(f'<svg class="icon i-{name}" viewBox="0 0 24 24" aria-hidden="true">{path}</svg>')
