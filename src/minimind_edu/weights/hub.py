"""Models by their name on the Hugging Face Hub: "user/name" instead of a path.

A path that exists here is always taken as a path. Nothing is downloaded unless asked: without `download` only what the
Hub's cache on this machine holds is used. huggingface_hub is optional and imported on demand; its own settings
(HF_HOME, HF_TOKEN, HF_HUB_OFFLINE) say where the cache is and which token is sent.
"""

import errno
import os
import re
from pathlib import Path
from typing import Any

from minimind_edu.validation import check_flag
from minimind_edu.weights.files import SUFFIXES

_NAME = re.compile(r"[A-Za-z0-9][\w.-]*/[A-Za-z0-9][\w.-]*")
_DESCRIPTION = ["config.json", "*.index.json", "tokenizer.json", "tokenizer_config.json", "chat_template.jinja"]
_WEIGHTS = ("*.safetensors", "*.bin", "*.pth")  # one kind is enough, and the first is the best


def as_path(path: Any) -> Path:
    """The path of a file or folder; "~" becomes the home folder. A ValueError for what is neither text nor a Path."""
    if not isinstance(path, str | os.PathLike) or not isinstance(os.fspath(path), str):
        raise ValueError(f"a path must be text or a pathlib.Path, got {path!r:.200}")
    try:
        return Path(path).expanduser()
    except RuntimeError:  # "~name" of nobody: it may be a name like any other
        return Path(path)


def _exists(place: Path) -> bool:
    try:
        return place.exists()
    except OSError as error:
        if error.errno != errno.ENAMETOOLONG:
            raise
        return False


def locate(
    path: str | os.PathLike[str],
    download: bool = False,
    cache_dir: str | os.PathLike[str] | None = None,
    revision: str | None = None,
) -> Path:
    """The file or folder that a path or a Hub name means.

    Args:
        path: a path, or "user/name".
        download: fetch what the cache lacks of a Hub model; shows progress.
        cache_dir: the Hub's cache; None: where huggingface_hub keeps it.
        revision: a branch, tag or commit of the Hub model; None: its main branch.

    Raises:
        FileNotFoundError: if it is no path, and no Hub model that may be used; the message says what to do.
        ValueError: if the path is empty, or no path at all.
    """
    check_flag("download", download)
    place = as_path(path)
    name = os.fspath(path)
    if not name:
        raise ValueError("the path is empty; give a file, a folder or a name on the Hub")
    if _exists(place):
        return place
    if not _NAME.fullmatch(name) or place.suffix in (*SUFFIXES, ".json"):
        raise FileNotFoundError(f"there is no file or folder {name if len(name) < 300 else name[:300] + '...'}")
    try:
        import huggingface_hub
    except ImportError as error:
        raise FileNotFoundError(
            f"there is no folder {name}. If it is a name on the Hub, that needs huggingface_hub, which is not "
            "installed: pip install huggingface_hub"
        ) from error
    folder = None
    for kind in _WEIGHTS:
        try:
            snapshot = huggingface_hub.snapshot_download(
                name,
                revision=revision,
                cache_dir=None if cache_dir is None else Path(cache_dir),
                allow_patterns=[*_DESCRIPTION, kind],
                ignore_patterns=["*/*"],
                local_files_only=not download,
            )
            folder = Path(snapshot)
        except huggingface_hub.errors.LocalEntryNotFoundError as error:
            if download:
                raise FileNotFoundError(
                    f"{name} cannot be fetched: the Hub does not answer, and its cache on this machine does not hold it"
                ) from error
        except huggingface_hub.errors.RepositoryNotFoundError as error:
            raise FileNotFoundError(
                f"the Hub has no model {name} that you may read; where HF_TOKEN is set, its token is sent"
            ) from error
        else:
            if any(folder.glob(kind)):
                return folder
    if folder is None:
        raise FileNotFoundError(
            f"there is no folder {name}, and the Hub's cache on this machine does not hold a model of that name; "
            "download=True fetches it"
        )
    return folder  # without weights, as who reads it will say
