"""Pages that have another address now: what stands at the old one leads to it, with what followed the `#`.

And places: what a chapter had under a heading before its proofs moved to its deeper page, an old address still finds.
"""

import json
import os
from pathlib import Path

from sphinx.application import Sphinx
from sphinx.errors import ConfigError

from tools.chapters import all_deeper_of, chapters, page_of
from tools.translated import anchors_of

# Without scripts a reader comes to the top of the page, with them to the section that the old link named.
PAGE = """<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>Moved</title><meta name="robots" content="noindex">
<link rel="canonical" href="{target}"><script src="{script}"></script>
<noscript><meta http-equiv="refresh" content="0; url={target}"></noscript>
</head><body><p>This page is now <a href="{target}">here</a>.</p></body></html>
"""
SCRIPT = """location.replace(document.querySelector("link[rel=canonical]").href + location.search + location.hash);
"""


def write_signposts(app: Sphinx, error: Exception | None) -> None:
    """Write a page at each address of `moved_pages`, {old page: page now}.

    Raises:
        ConfigError: if a page stands at the old address, or none at the new one.
    """
    if error or app.builder.format != "html" or not app.config.moved_pages:
        return
    out = Path(app.outdir)
    (out / "_static" / "moved.js").write_text(SCRIPT, encoding="utf-8")
    for old, now in app.config.moved_pages.items():
        if old in app.env.found_docs or now not in app.env.found_docs:
            raise ConfigError(f"moved_pages in _config.yml: {old} must not be a page, and {now} must be one")
        place = out / f"{old}.html"
        place.parent.mkdir(parents=True, exist_ok=True)
        target, script = (
            Path(os.path.relpath(out / name, place.parent)).as_posix() for name in (f"{now}.html", "_static/moved.js")
        )
        place.write_text(PAGE.format(target=target, script=script), encoding="utf-8")


def places_from(app: Sphinx, page: str) -> str:
    """Where a page's script leads an address whose place is not on the page, as JSON: anchor -> address.

    Headings that deeper pages of a lesson have are found by their names; `moved_places` in _config.yml tells of those
    that have another one now, {page#anchor: page#anchor}.

    Raises:
        ConfigError: if a place of that table stands at the old address, or none at the new one.
    """
    if page not in app.env.found_docs:
        return ""
    places, here = {}, anchors_of(Path(app.env.doc2path(page)))
    for deeper in reversed(all_deeper_of(page) if page in chapters() else []):
        away = app.builder.get_relative_uri(page, page_of(deeper))
        places |= {name: f"{away}#{name}" for name in anchors_of(deeper) if name not in here}
    for old, now in app.config.moved_places.items():
        if old.partition("#")[0] != page:
            continue
        (_, anchor), (target, place) = old.split("#"), now.split("#")
        if anchor in here or place not in anchors_of(Path(app.env.doc2path(target))):
            raise ConfigError(f"moved_places in _config.yml: {old} must not be a place, and {now} must be one")
        places[anchor] = f"{app.builder.get_relative_uri(page, target)}#{place}"
    return json.dumps(places) if places else ""


def setup(app: Sphinx) -> None:
    """Take the tables of what has moved, and write old pages after everything else."""
    app.add_config_value("moved_pages", {}, "html")
    app.add_config_value("moved_places", {}, "html")
    app.connect("build-finished", write_signposts, priority=995)
