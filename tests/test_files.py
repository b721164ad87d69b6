"""A path leads to the right tensors, an index is obeyed, and a file that cannot be read is named with the reason."""

import json
import os
import zipfile

import pytest
import torch
from safetensors.torch import save_file

from minimind_edu.weights.files import read_json, read_weights

TENSORS = {"a": torch.arange(4000.0), "b": torch.ones(2, 3, dtype=torch.bfloat16)}
LFS_POINTER = b"version https://git-lfs.github.com/spec/v1\noid sha256:4d7a\nsize 103\n"


def write(path, tensors=TENSORS):
    if path.suffix == ".safetensors":
        save_file(tensors, path)
    else:
        torch.save(tensors, path)
    return path


def same(one, other):
    return one.keys() == other.keys() and all(torch.equal(one[name], other[name]) for name in one)


@pytest.mark.parametrize("name", ["m.safetensors", "m.pth", "m.pt", "m.bin"])
def test_tensors_come_back_from_a_file_and_from_its_folder(name, tmp_path):
    write(tmp_path / name)
    assert same(read_weights(tmp_path / name).content, TENSORS)
    assert same(read_weights(tmp_path).content, TENSORS)


def test_a_pickle_from_before_pytorch_1_6_is_read(tmp_path):
    torch.save(TENSORS, tmp_path / "old.pth", _use_new_zipfile_serialization=False)
    assert same(read_weights(tmp_path / "old.pth").content, TENSORS)


def test_a_pickle_that_was_packed_again_is_unpacked(tmp_path):
    """Compressed bytes would be taken for weights if the file were mapped."""
    with zipfile.ZipFile(write(tmp_path / "m.pth")) as stored, zipfile.ZipFile(tmp_path / "packed.pth", "w") as packed:
        for entry in stored.infolist():
            packed.writestr(entry.filename, stored.read(entry), zipfile.ZIP_DEFLATED)
    assert same(read_weights(tmp_path / "packed.pth").content, TENSORS)


def test_metadata_comes_with_safetensors(tmp_path):
    save_file(TENSORS, tmp_path / "m.safetensors", metadata={"config": "..."})
    assert read_weights(tmp_path / "m.safetensors").metadata == {"config": "..."}
    assert read_weights(write(tmp_path / "n.safetensors")).metadata == {}


def test_in_a_folder_of_transformers_safetensors_go_before_pickles(tmp_path):
    for name in ("pytorch_model.bin", "other.pth"):
        write(tmp_path / name, {"other": torch.ones(1)})
    write(tmp_path / "model.safetensors")
    assert same(read_weights(tmp_path).content, TENSORS)


def test_a_config_json_describes_its_folders_model_and_no_other_file(tmp_path):
    """A folder of experiments may hold many files; only the standard name is what config.json speaks of."""
    (tmp_path / "config.json").write_text('{"hidden_size": 8}')
    mine = write(tmp_path / "mine.safetensors")
    assert read_weights(mine).config_json is None
    assert read_weights(tmp_path).config_json == {"hidden_size": 8}
    assert read_weights(write(tmp_path / "model.safetensors")).config_json == {"hidden_size": 8}


# Shards


def sharded(folder, stem="model", suffix=".safetensors", **changes):
    names = [f"{stem}-0000{number}-of-00002{suffix}" for number in (1, 2)]
    for name, key in zip(names, TENSORS, strict=True):
        write(folder / name, {key: TENSORS[key]})
    index = {"weight_map": dict(zip(TENSORS, names, strict=True)) | changes}
    (folder / f"{stem}{suffix}.index.json").write_text(json.dumps(index))
    return [folder / name for name in names]


@pytest.mark.parametrize(("stem", "suffix"), [("model", ".safetensors"), ("pytorch_model", ".bin")])
def test_shards_are_found_through_their_index(stem, suffix, tmp_path):
    sharded(tmp_path, stem, suffix)
    assert same(read_weights(tmp_path).content, TENSORS)


def test_a_tensor_comes_from_the_shard_that_the_index_names(tmp_path):
    first, second = sharded(tmp_path)
    write(first, {"a": TENSORS["a"], "b": torch.zeros(2, 3)})
    write(second, {"a": torch.zeros(4000), "b": TENSORS["b"], "c": torch.zeros(1)})
    assert same(read_weights(tmp_path).content, TENSORS)


@pytest.mark.parametrize("outside", ["../outside.safetensors", "/outside.safetensors", "inner/x.safetensors", "..", ""])
def test_an_index_reaches_no_file_outside_its_folder(outside, tmp_path):
    (tmp_path / "model" / "inner").mkdir(parents=True)
    for place in (tmp_path / "outside.safetensors", tmp_path / "model" / "inner" / "x.safetensors"):
        write(place, {"b": TENSORS["b"]})
    sharded(tmp_path / "model", b=outside.replace("/outside", f"{tmp_path}/outside") if outside[:1] == "/" else outside)
    with pytest.raises(ValueError, match="index.json names .*, but only files of weights in its own folder are read"):
        read_weights(tmp_path / "model")


@pytest.mark.parametrize("weight_map", [None, [], {"a": None}, {"a": 1}, "model.safetensors"])
def test_an_index_of_another_form_is_named(weight_map, tmp_path):
    (tmp_path / "model.safetensors.index.json").write_text(json.dumps({"weight_map": weight_map}))
    with pytest.raises(ValueError, match="index.json must hold a weight_map from names of tensors to names of files"):
        read_weights(tmp_path)


def test_missing_shards_and_tensors_are_named(tmp_path):
    first, second = sharded(tmp_path)
    write(second, {"c": torch.ones(1)})
    with pytest.raises(ValueError, match="index.json says that model-00002-of-00002.safetensors holds b, but it does"):
        read_weights(tmp_path)
    second.unlink()
    missing = "names 2 files of weights, 1 of them missing: model-00002-of-00002.safetensors; is the download complete"
    with pytest.raises(FileNotFoundError, match=missing):
        read_weights(tmp_path)
    second.mkdir()
    with pytest.raises(FileNotFoundError, match=missing):
        read_weights(tmp_path)
    (tmp_path / "model.safetensors.index.json").write_text(json.dumps({"weight_map": {"b": f"{500 * 'x'}.bin"}}))
    with pytest.raises(FileNotFoundError, match=r"1 of them missing: x{500}.bin; is the download complete"):
        read_weights(tmp_path)
    (tmp_path / "model.safetensors.index.json").write_text('{"weight_map": {}}')
    with pytest.raises(FileNotFoundError, match="names 0 files"):
        read_weights(tmp_path)


# What cannot be read


def cut(content):
    return content[: int(0.6 * len(content))]


REFUSED = {
    "another kind of file": ("m.gguf", b"GGUF", "read from .safetensors, .pth, .pt, .bin or a model's folder, got 'm."),
    "a folder's description": ("config.json", b"{}", "or a model's folder, got 'config.json'"),
    "a pointer": ("m.safetensors", LFS_POINTER, "m.safetensors is a Git LFS pointer instead .*git lfs pull"),
    "a pointer to a pickle": ("m.pth", LFS_POINTER, "m.pth is a Git LFS pointer instead"),
    "nothing": ("m.pth", b"", r"m.pth cannot be read as .pth \(0 bytes\)"),
    "nothing in safetensors": (
        "m.safetensors",
        b"",
        r"cannot be read as .safetensors \(0 bytes\): .*download it again",
    ),
    "noise": ("m.safetensors", bytes(range(7, 250)), r"cannot be read as .safetensors \(243 bytes\): .*download it ag"),
    "noise in a pickle": ("m.bin", bytes(range(7, 250)), "m.bin holds objects other than tensors, or is damaged"),
    "safetensors cut short": (
        "m.safetensors",
        cut,
        r"m.safetensors cannot be read as .safetensors \([0-9,]+ bytes",
    ),
    "a pickle cut short": ("m.pth", cut, r"m.pth cannot be read as .pth \([0-9,]+ bytes\): "),
    "no state dict": ("m.pth", [torch.ones(2)], r"m.pth holds a list, not a state dict; torch.save\(model.state_dict"),
    "a whole model": ("m.pth", torch.nn.Linear(2, 2), r"m.pth holds objects other than tensors.*refused. torch.save\("),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_cannot_be_read_is_named_with_the_reason(case, tmp_path):
    name, content, message = REFUSED[case]
    path = tmp_path / name
    if callable(content) and not isinstance(content, torch.nn.Module):
        content = content(write(path).read_bytes())
    if isinstance(content, bytes):
        path.write_bytes(content)
    else:
        torch.save(content, path)
    with pytest.raises(ValueError, match=message):
        read_weights(path)


def test_a_missing_file_is_named(tmp_path):
    with pytest.raises(FileNotFoundError, match="there is no file .*gone.pth"):
        read_weights(tmp_path / "gone.pth")


@pytest.mark.parametrize(
    ("inside", "message"),
    [
        ([], "holds no weights .* it holds nothing. Is the download complete"),
        (["a.txt"], "holds no weights .* it holds a.txt"),
        (["b.pth", "a.pth"], "holds several files of weights; give the path of one: a.pth, b.pth"),
    ],
)
def test_a_folder_without_one_model_says_what_it_holds(inside, message, tmp_path):
    for name in inside:
        (tmp_path / name).write_text("")
    with pytest.raises(ValueError, match=message):
        read_weights(tmp_path)


class RunsCode:
    """What a pickle of another's could hold: an object that runs a command when it is loaded."""

    def __init__(self, witness):
        self.witness = witness

    def __reduce__(self):
        return os.mkdir, (self.witness,)


def test_a_pickle_runs_no_code(tmp_path):
    witness, path = str(tmp_path / "ran"), tmp_path / "model.pth"
    torch.save({"model.norm.weight": RunsCode(witness)}, path)
    with pytest.raises(ValueError, match="loading such objects would run code, so they are refused"):
        read_weights(path)
    assert not os.path.exists(witness)
    torch.load(path, weights_only=False)
    assert os.path.exists(witness), "it would have run, had it been allowed to"


@pytest.mark.parametrize("start", [b"", b"\xef\xbb\xbf"], ids=["plain", "byte order mark"])
def test_json_is_read_as_utf_8(start, tmp_path):
    (tmp_path / "config.json").write_bytes(start + '{"name": "我"}'.encode())
    assert read_json(tmp_path / "config.json") == {"name": "我"}


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"[1]", "config.json should hold a JSON object, but holds a list"),
        (b'{"a": 1,\n "b" 2}', "Expecting ':' delimiter: line 2 column 6"),
        (b"\xff\xfe{}", "codec can't decode"),
        (b'{"a": ' + 100_000 * b"[", "recursion"),
        (LFS_POINTER, "config.json is a Git LFS pointer"),
    ],
)
def test_json_that_cannot_be_read_comes_with_the_parsers_words(content, message, tmp_path):
    (tmp_path / "config.json").write_bytes(content)
    with pytest.raises(ValueError, match=f"config.json .*{message}|{message}"):
        read_json(tmp_path / "config.json")
