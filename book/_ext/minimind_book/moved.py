"""Pages that have another address now: what stands at the old one leads to it, with what followed the `#`."""

import os
from pathlib import Path

from sphinx.application import Sphinx
from sphinx.errors import ConfigError

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


def setup(app: Sphinx) -> None:
    """Take the table of moved pages, and write them after everything else."""
    app.add_config_value("moved_pages", {}, "html")
    app.connect("build-finished", write_signposts, priority=995)
