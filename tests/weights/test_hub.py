"""Hub names. A folder stands in for the Hub's cache, and a small server on this machine for the Hub; no network."""

import json
import os
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest
import torch
from huggingface_hub import constants
from model_builders import tiny_model, token_ids

from minimind_edu.weights.checkpoints import from_checkpoint, save_checkpoint
from minimind_edu.weights.hub import locate

COMMIT = "0" * 39 + "1"
OTHER = "0" * 39 + "2"


def cached(cache, name, model, commit=COMMIT, branch="main"):
    """Put a model into the cache as huggingface_hub lays it out."""
    repository = cache / f"models--{name.replace('/', '--')}"
    folder = repository / "snapshots" / commit
    folder.mkdir(parents=True)
    (repository / "refs").mkdir(exist_ok=True)
    (repository / "refs" / branch).write_text(commit)
    save_checkpoint(model, folder / "model.safetensors")
    return folder


@pytest.fixture
def cache(tmp_path):
    return tmp_path / "cache"


def test_a_model_in_the_cache_is_read_by_its_name(cache):
    model = tiny_model()
    folder = cached(cache, "someone/tiny-minimind.v2", model)
    assert locate("someone/tiny-minimind.v2", cache_dir=cache) == folder
    read = from_checkpoint("someone/tiny-minimind.v2", cache_dir=cache)
    assert torch.equal(read(token_ids(1, 4)).logits, model(token_ids(1, 4)).logits)


def test_a_revision_is_a_branch_or_a_commit(cache):
    main = cached(cache, "someone/tiny", tiny_model())
    other = cached(cache, "someone/tiny", tiny_model(seed=1), OTHER, "older")
    assert locate("someone/tiny", cache_dir=cache) == main
    assert locate("someone/tiny", cache_dir=cache, revision="older") == other
    assert locate("someone/tiny", cache_dir=cache, revision=OTHER) == other


def test_a_path_that_exists_goes_before_a_hub_name(cache, tmp_path, monkeypatch):
    cached(cache, "someone/tiny", tiny_model())
    monkeypatch.chdir(tmp_path)
    (tmp_path / "someone" / "tiny").mkdir(parents=True)
    assert str(locate("someone/tiny", cache_dir=cache)) == "someone/tiny"


def test_a_path_may_begin_at_home(tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    (tmp_path / "models").mkdir()
    assert locate("~/models") == tmp_path / "models"


def test_a_model_that_is_not_in_the_cache_is_not_fetched_unless_asked(cache, monkeypatch):
    reached = []
    for name in ("getaddrinfo", "create_connection"):
        monkeypatch.setattr(f"socket.{name}", lambda *place, **_: reached.append(place) or pytest.fail("no network"))
    with pytest.raises(FileNotFoundError, match="no folder someone/tiny, and the Hub's cache .* download=True fetches"):
        from_checkpoint("someone/tiny", cache_dir=cache)
    assert not reached


@pytest.mark.parametrize("is_offline", [True, False])
def test_a_download_without_the_hub_is_one_sentence(hub, cache, monkeypatch, is_offline):
    if is_offline:
        monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)
        sentence = "^someone/gone cannot be fetched: the Hub does not answer, and its cache on this machine .*hold it$"
    else:
        sentence = "^the Hub has no model someone/gone that you may read; where HF_TOKEN is set, its token is sent$"
    with pytest.raises(FileNotFoundError, match=sentence):
        locate("someone/gone", download=True, cache_dir=cache)


def test_an_empty_path_is_not_the_current_folder(tmp_path, monkeypatch):
    save_checkpoint(tiny_model(), tmp_path / "model.safetensors")
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ValueError, match="the path is empty; give a file, a folder or a name on the Hub"):
        from_checkpoint("")


class InBytes(os.PathLike):
    """As os.scandir(b".") gives them."""

    def __fspath__(self):
        return b"model"


@pytest.mark.parametrize("path", [3, None, True, b"model", ["model"], InBytes()], ids=lambda path: type(path).__name__)
def test_a_path_is_text_or_a_path(path):
    with pytest.raises(ValueError, match="a path must be text or a pathlib.Path, got "):
        locate(path)


def test_a_path_longer_than_any_file_has_is_missing():
    with pytest.raises(FileNotFoundError, match=r"there is no file or folder x{300}\.\.\.$"):
        locate(5000 * "x")


def test_the_download_is_asked_for_with_true_or_false():
    with pytest.raises(ValueError, match="download must be True or False, got 'no'"):
        locate("someone/tiny", download="no")


MISSING = ["out/full_sft_512.pth", "gone", "a/b/c", "../model", "/no/where", "x/y.safetensors", "~nobody-here/x"]


@pytest.mark.parametrize("name", MISSING)
def test_what_is_no_hub_name_is_a_path_that_is_missing(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(FileNotFoundError, match=f"there is no file or folder {name}$"):
        locate(name, download=True)


def test_without_huggingface_hub_a_name_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "huggingface_hub", None)
    with pytest.raises(FileNotFoundError, match="pip install huggingface_hub"):
        locate("someone/tiny", download=True)


# A download, from a server of our own

OFFERED = {
    "safetensors": ["model.safetensors", "pytorch_model.bin"],
    "transformers": ["pytorch_model.bin"],
    "upstream": ["full_sft_32.pth"],
}


class Hub(BaseHTTPRequestHandler):
    """As much of the Hub as a download needs: a model's description, its list of files, the files."""

    files: dict[str, dict[str, bytes]] = {}  # model -> its files
    asked: list[str] = []

    def do_HEAD(self):
        self._answer(body=False)

    def do_GET(self):
        self._answer(body=True)

    def _answer(self, body):
        path = self.path.partition("?")[0]
        type(self).asked.append(path)
        model = path.split("someone/")[1].split("/")[0]
        if model not in self.files:
            self.send_response(404)
            self.send_header("X-Error-Code", "RepoNotFound")
            self.send_header("Content-Length", "0")
            self.end_headers()
            return
        files, kind = self.files[model], "application/json"
        if "/tree/" in path:
            content = [{"type": "file", "path": name, "size": len(data), "oid": "a"} for name, data in files.items()]
        elif path.startswith("/api/models/"):
            siblings = [{"rfilename": name} for name in files]
            content = {"id": f"someone/{model}", "sha": COMMIT, "siblings": siblings}
        else:
            content, kind = files[path.rsplit("/", 1)[1]], "application/octet-stream"
        content = content if isinstance(content, bytes) else json.dumps(content).encode()
        self.send_response(200)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(content)))
        self.send_header("ETag", f'"{len(content)}{path[-4:]}"')
        self.send_header("X-Repo-Commit", COMMIT)
        self.end_headers()
        if body:
            self.wfile.write(content)

    def log_message(self, *_):
        pass


def offered(folder, names):
    """Files with the same model in several forms, and some that no reader needs."""
    model = tiny_model(dtype=torch.float32, num_attention_heads=8, head_dim=4)
    files = {"config.json": b"{}", "tokenizer.json": b"{}", "README.md": b"words", "onnx/model.safetensors": b"{}"}
    for name in names:
        if name.endswith(".safetensors"):
            save_checkpoint(model, folder / name)
        else:
            torch.save(model.state_dict(), folder / name)
        files[name] = (folder / name).read_bytes()
    return files


@pytest.fixture
def hub(tmp_path, monkeypatch):
    """The address of a Hub that offers `OFFERED`; huggingface_hub has read its own when it was imported."""
    Hub.files, Hub.asked = {model: offered(tmp_path, names) for model, names in OFFERED.items()}, []
    with ThreadingHTTPServer(("127.0.0.1", 0), Hub) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        address = f"http://127.0.0.1:{server.server_port}"
        template = constants.HUGGINGFACE_CO_URL_TEMPLATE.replace(constants.ENDPOINT, address)
        monkeypatch.setattr(constants, "HUGGINGFACE_CO_URL_TEMPLATE", template)
        monkeypatch.setattr(constants, "ENDPOINT", address)
        monkeypatch.setattr(constants, "HF_HUB_DISABLE_XET", True)
        monkeypatch.setattr(constants, "HF_HUB_DISABLE_TELEMETRY", True)
        yield Hub
        server.shutdown()


def test_a_download_fetches_one_kind_of_weights_and_shows_its_progress(hub, cache, capsys):
    for name in OFFERED:
        model = from_checkpoint(f"someone/{name}", download=True, cache_dir=cache)
        again = from_checkpoint(f"someone/{name}", cache_dir=cache)
        assert model.config.hidden_size == 32 and again.config == model.config
    assert "100%" in capsys.readouterr().err, "progress"
    fetched = {path.split("someone/")[1] for path in hub.asked if "/resolve/" in path}
    first = {model: names[0] for model, names in OFFERED.items()}
    expected = {
        f"{model}/resolve/{COMMIT}/{name}"
        for model in OFFERED
        for name in ("config.json", "tokenizer.json", first[model])
    }
    assert fetched == expected
