"""Models by their name on the Hugging Face Hub: "user/name" instead of a path.

Nothing is downloaded unless asked: without `download` only what lies in the Hub's cache on this machine is used. What
exists here as a path is always taken as the path. huggingface_hub is optional and imported on demand; where its cache
lies and which token it uses are its own settings (HF_HOME, HF_TOKEN, HF_HUB_OFFLINE).
"""

import os
import re
from pathlib import Path
from typing import Any

from minimind_edu.weights.files import SUFFIXES

_NAME = re.compile(r"[A-Za-z0-9][\w.-]*/[A-Za-z0-9][\w.-]*")
_DESCRIPTION = ("*.json", "*.jinja")  # config, index of shards, tokenizer and its chat template
_WEIGHTS = ("*.safetensors", "*.bin", "*.pth")  # one kind is enough, and the first is the best


def locate(
    path: str | os.PathLike[str],
    download: bool = False,
    cache_dir: str | os.PathLike[str] | None = None,
    revision: str | None = None,
    weights: bool = True,
) -> Path:
    """The file or folder that a path or a Hub name means.

    Args:
        path: a path, or "user/name".
        download: fetch a Hub model that is not in the cache yet, or only in part; shows progress.
        cache_dir: the Hub's cache; None: where huggingface_hub keeps it.
        revision: a branch, tag or commit of the Hub model; None: its main branch.
        weights: fetch weights too, not only the small files that describe the model.

    Raises:
        FileNotFoundError: if it is no path, and no Hub model that may be used; the message says what to do.
    """
    if Path(path).expanduser().exists():
        return Path(path).expanduser()
    name = os.fspath(path)
    if not _NAME.fullmatch(name) or Path(name).suffix in (*SUFFIXES, ".json"):
        raise FileNotFoundError(f"there is no file or folder {name}")
    try:
        import huggingface_hub
    except ImportError as error:
        raise FileNotFoundError(
            f"there is no folder {name}. If it is a name on the Hub: that needs huggingface_hub, which is not "
            "installed (pip install huggingface_hub)"
        ) from error
    options: dict[str, Any] = {"revision": revision, "cache_dir": cache_dir}
    if not download:
        return _in_cache(name, options)

    def fetch(*kinds: str) -> Path:
        wanted = {"allow_patterns": [*_DESCRIPTION, *kinds], "ignore_patterns": ["*/*"]}
        return Path(huggingface_hub.snapshot_download(name, **wanted, **options))

    if not weights:
        return fetch()
    for kind in _WEIGHTS:
        folder = fetch(kind)
        if any(folder.glob(kind)):
            break
    return folder


def _in_cache(name: str, options: dict[str, Any]) -> Path:
    import huggingface_hub
    from huggingface_hub.utils import LocalEntryNotFoundError

    try:
        return Path(huggingface_hub.snapshot_download(name, local_files_only=True, **options))
    except LocalEntryNotFoundError as error:
        if incomplete := getattr(error, "snapshot_path", None):
            # rarely is every file fetched; whether those that matter are there will show
            return Path(incomplete)
        raise FileNotFoundError(
            f"there is no folder {name}, and no model of that name in the Hub's cache on this machine; "
            "give download=True to fetch it"
        ) from error
