"""A path leads to the right tensors, an index is obeyed, and a file that cannot be read is named with the reason."""

import json
import os
import pickle
import time
import zipfile

import pytest
import torch
from cases import long_after
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


@pytest.mark.parametrize("name", ["m.safetensors", "m.pth", "m.pt", "m.bin", "m.ckpt"])
def test_tensors_come_back_from_a_file_and_from_its_folder(name, tmp_path):
    write(tmp_path / name)
    assert same(read_weights(tmp_path / name).content, TENSORS)
    assert same(read_weights(tmp_path).content, TENSORS)


def test_a_pickle_from_before_pytorch_1_6_is_read(tmp_path):
    torch.save(TENSORS, tmp_path / "old.pth", _use_new_zipfile_serialization=False)
    assert same(read_weights(tmp_path / "old.pth").content, TENSORS)


# What a small file could make of itself


def packed(folder, content, **how):
    path = folder / "packed.pth"
    with zipfile.ZipFile(path, "w", **how) as archive:
        archive.writestr("packed/data.pkl", content)
    return path


def legacy(pickled):
    start = (0x1950A86A20F9469CFC6C, 1001, {"protocol_version": 1001, "little_endian": True})
    return b"".join(pickle.dumps(value, 2) for value in start) + pickled


def of_length(number):
    return b"\x8a\x08" + number.to_bytes(8, "little")


STORAGE = (
    b"\x80\x02}X\x01\x00\x00\x00actorch._utils\n_rebuild_tensor_v2\n((X\x07\x00\x00\x00storagectorch\nFloatStorage\n"
)
STORAGE += b"X\x01\x00\x00\x000X\x03\x00\x00\x00cpu%bNtQK\x00%b\x85K\x01\x85\x89ccollections\nOrderedDict\n)RtRs."
LARGE = {
    "compressed": (
        lambda at: packed(at, bytes(10**7), compression=zipfile.ZIP_DEFLATED),
        "it is compressed, which torch.",
    ),
    "a pickle of megabytes": (lambda at: packed(at, 3 * 10**6 * b"N"), "its pickle takes 3,000,000 bytes without the"),
    "an old pickle": (lambda at: at / "m.pth", "its pickle takes more than 1,048,576 bytes without the"),
    "a bytearray": (lambda at: at / "array.pth", "it holds a bytearray, which no state dict does"),
    "a storage": (lambda at: at / "storage.pth", r"storage.pth cannot be read as .pth \(.*\): "),
    # and files of 20 to 100 MB
    "an old name": (lambda at: at / "name.pth", "its pickle takes more than 1,048,576 bytes without the"),
    "a header": (lambda at: at / "m.safetensors", "its header is said to take 90,000,000 bytes"),
    "JSON": (lambda at: at, "config.json cannot be read .*: it is longer than 16,777,216 bytes"),
}


@pytest.mark.parametrize("case", long_after(5, LARGE))
def test_a_file_that_would_fill_the_memory_is_refused_at_once(case, tmp_path):
    array = b"\x80\x02cbuiltins\nbytearray\n" + of_length(10**10) + b"\x85R."
    for name, content in {
        "m.pth": legacy(b"\x80\x02" + 3 * 10**6 * b"N"),
        "name.pth": legacy(b"\x80\x02X" + (10**8).to_bytes(4, "little") + bytes(10**8)),
        "array.pth": legacy(array),
        "storage.pth": legacy(STORAGE % (of_length(10**13), of_length(10**13)) + pickle.dumps(["0"], 2)),
        "m.safetensors": (90_000_000).to_bytes(8, "little") + 90_000_000 * b" ",
    }.items():
        if name in LARGE[case][0](tmp_path).name:
            (tmp_path / name).write_bytes(content)
    if case == "JSON":
        write(tmp_path / "m.pth")
        (tmp_path / "config.json").write_text("{" + 2 * 10**7 * " " + "}")
    path = LARGE[case][0](tmp_path)
    begun = time.process_time()
    with pytest.raises(ValueError, match=f"{LARGE[case][1]}"):
        read_weights(path)
    assert time.process_time() - begun < 30


def test_an_archive_whose_parts_overlap_is_refused(tmp_path):
    """The list of its parts names the same bytes a thousand times."""
    content = bytearray(write(tmp_path / "m.pth").read_bytes())
    end = content.rindex(b"PK\x05\x06")
    start = int.from_bytes(content[end + 16 : end + 20], "little")
    with zipfile.ZipFile(tmp_path / "m.pth") as archive:
        count = len(archive.infolist())
    parts = 50 * content[start : content.index(b"PK\x06\x06") if b"PK\x06\x06" in content else end]
    content[start:] = parts + b"PK\x05\x06\0\0\0\0" + 2 * (50 * count).to_bytes(2, "little")
    content += len(parts).to_bytes(4, "little") + start.to_bytes(4, "little") + b"\0\0"
    (tmp_path / "twice.pth").write_bytes(content)
    with pytest.raises(ValueError, match="it is no archive that torch.save wrote: its parts overlap"):
        read_weights(tmp_path / "twice.pth")


def test_whole_numbers_are_as_long_as_transformers_writes_them(tmp_path):
    file = tmp_path / "tokenizer_config.json"
    file.write_text(json.dumps({"model_max_length": int(1e30)}))  # "no limit", in each tokenizer that states none
    assert read_json(file) == {"model_max_length": int(1e30)}
    file.write_text('{"model_max_length": ' + 5000 * "9" + "}")
    with pytest.raises(ValueError, match="config.json cannot be read .*digits"):
        read_json(file)


def test_what_holds_parts_of_tensors_says_what_joins_them(tmp_path):
    (tmp_path / "dcp").mkdir()
    (tmp_path / "dcp" / "__0_0.distcp").write_bytes(b"")
    for place, message in {
        "dcp": r"does not hold whole tensors \(__0_0.distcp\): .*dcp_to_torch_save",
        "dcp/__0_0.distcp": "dcp_to_torch_save",
        "zero_pp_rank_0_mp_rank_00_optim_states.pt": "zero_to_fp32.py",
        "consolidated.00.pth": r"whole tensors \(consolidated.01.pth\): parts of them",
    }.items():
        if "/" not in place and "." in place:
            write(tmp_path / place)
        write(tmp_path / "consolidated.01.pth")
        with pytest.raises(ValueError, match=message):
            read_weights(tmp_path / place)


def test_metadata_comes_with_safetensors(tmp_path):
    save_file(TENSORS, tmp_path / "m.safetensors", metadata={"config": "..."})
    assert read_weights(tmp_path / "m.safetensors").metadata == {"config": "..."}
    assert read_weights(write(tmp_path / "n.safetensors")).metadata == {}


def test_in_a_folder_of_transformers_safetensors_go_before_pickles(tmp_path):
    for name in ("pytorch_model.bin", "other.pth"):
        write(tmp_path / name, {"other": torch.ones(1)})
    write(tmp_path / "model.safetensors")
    assert same(read_weights(tmp_path).content, TENSORS)


@pytest.mark.parametrize(("stem", "suffix"), [("model", ".safetensors"), ("pytorch_model", ".bin")])
def test_one_file_goes_before_shards(stem, suffix, tmp_path):
    """As in transformers: whoever saved anew in one file may have left the shards there."""
    sharded(tmp_path, stem, suffix)
    write(tmp_path / f"{stem}{suffix}", {"new": torch.ones(1)})
    assert same(read_weights(tmp_path).content, {"new": torch.ones(1)})


def test_a_config_json_describes_its_folders_model_and_lies_beside_any_other_file(tmp_path):
    """A folder of experiments may hold many files; only of the standard name is it sure that config.json speaks."""
    (tmp_path / "config.json").write_text('{"hidden_size": 8}')
    mine = write(tmp_path / "mine.safetensors")
    assert (read_weights(mine).config_json, read_weights(mine).beside) == (None, tmp_path / "config.json")
    assert (read_weights(tmp_path).config_json, read_weights(tmp_path).beside) == ({"hidden_size": 8}, None)
    assert read_weights(write(tmp_path / "model.safetensors")).config_json == {"hidden_size": 8}


@pytest.mark.parametrize("kind", ["a folder", "a link to nothing"])
def test_a_config_json_that_cannot_be_read_is_there_all_the_same(kind, tmp_path):
    place = tmp_path / "config.json"
    place.mkdir() if kind == "a folder" else place.symlink_to("gone.json")
    write(tmp_path / "model.safetensors")
    with pytest.raises(ValueError, match="config.json cannot be read: "):
        read_weights(tmp_path)


@pytest.mark.parametrize("name", ["config.json", "generation_config.json", "model.safetensors.index.json"])
def test_nothing_is_waited_for_in_a_pipe(name, tmp_path):
    for written in ("config.json", "generation_config.json"):
        (tmp_path / written).write_text("{}")
    if "index" not in name:
        write(tmp_path / "model.safetensors")
    (tmp_path / name).unlink(missing_ok=True)
    os.mkfifo(tmp_path / name)
    with pytest.raises(ValueError, match=f"{name} cannot be read as .json.*a pipe or a device, which may never end"):
        read_weights(tmp_path)


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


def test_a_tensor_that_two_shards_hold_is_one_tensor_or_refused(tmp_path):
    """transformers takes it from the file that it reads last, whatever the index says."""
    first, second = sharded(tmp_path)
    write(first, TENSORS)
    write(second, {"b": TENSORS["b"], "c": torch.zeros(1)})
    assert same(read_weights(tmp_path).content, TENSORS), "what the index does not name is left out"
    for other in (TENSORS["b"] + 1, TENSORS["b"][:1]):
        write(first, {"a": TENSORS["a"], "b": other})
        with pytest.raises(ValueError, match="model-00002-of-00002.safetensors for b, and model-00001-of-00002.saf"):
            read_weights(tmp_path)


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
    "another kind of file": (
        "m.gguf",
        b"GGUF",
        "read from .safetensors, .pth, .pt, .bin, .ckpt or a model's folder, got 'm.",
    ),
    "a folder's description": ("config.json", b"{}", "or a model's folder, got 'config.json'"),
    "a pointer": ("m.safetensors", LFS_POINTER, "m.safetensors is a Git LFS pointer instead .*git lfs pull"),
    "a pointer to a pickle": ("m.pth", LFS_POINTER, "m.pth is a Git LFS pointer instead"),
    "nothing": ("m.pth", b"", "m.pth is empty. If it was downloaded, download it again"),
    "nothing in safetensors": (
        "m.safetensors",
        b"",
        "m.safetensors is empty.*download it again",
    ),
    "noise": ("m.safetensors", bytes(range(7, 250)), r"cannot be read as .safetensors \(243 bytes\): .*download it ag"),
    "noise in a pickle": ("m.bin", bytes(range(7, 250)), "m.bin holds objects other than tensors, or is damaged"),
    "safetensors cut short": (
        "m.safetensors",
        cut,
        "m.safetensors ends too early, after [0-9,]+ bytes.*download it again",
    ),
    "a word": ("m.pth", b"hello\n", r"m.pth was not written by torch.save \(6 bytes that begin with b'hello.n'\)"),
    "a pickle cut short": ("m.pth", cut, "m.pth ends too early, after [0-9,]+ bytes.*download it again"),
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
        (["a.txt"], "holds no weights .* it holds a.txt. Is the download complete"),
        (["a.txt", "b/m.pth", "c/d.txt"], "holds no weights .*, but folders inside it do; give the path of one: b$"),
        (["b.pth", "a.pth"], "holds several files of weights; give the path of one: a.pth, b.pth"),
    ],
)
def test_a_folder_without_one_model_says_what_it_holds(inside, message, tmp_path):
    for name in inside:
        (tmp_path / name).parent.mkdir(exist_ok=True)
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
        (b'{"a": 1,\n "b" 2}', r"is no valid JSON \(line 2, column 6: Expecting ':' delimiter\); mend it, or"),
        (b"\xff\xfe{}", "codec can't decode"),
        (b'{"a": ' + 100_000 * b"[", "recursion"),
        (LFS_POINTER, "config.json is a Git LFS pointer"),
    ],
)
def test_json_that_cannot_be_read_comes_with_the_parsers_words(content, message, tmp_path):
    (tmp_path / "config.json").write_bytes(content)
    with pytest.raises(ValueError, match=f"config.json .*{message}|{message}"):
        read_json(tmp_path / "config.json")
