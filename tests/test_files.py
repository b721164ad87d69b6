import json
import os

import pytest
import torch
from safetensors.torch import save_file

from minimind_edu.weights.files import find_weights, read_json, read_tensors

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


# Which files


@pytest.mark.parametrize("name", ["model.safetensors", "full_sft_512.pth", "m.pt", "pytorch_model.bin"])
def test_a_file_is_itself(name, tmp_path):
    found = find_weights(write(tmp_path / name))
    assert found.files == (tmp_path / name,)
    assert found.config_json is None


@pytest.mark.parametrize("name", ["model.safetensors", "pytorch_model.bin", "other.pth"])
def test_the_only_file_of_weights_in_a_folder_is_found(name, tmp_path):
    write(tmp_path / name)
    for other in ("optimizer.pt", "scheduler.pt", "training_args.bin", "rng_state_0.pth"):
        torch.save({}, tmp_path / other)
    (tmp_path / "config.json").write_text("{}")
    assert find_weights(tmp_path).files == (tmp_path / name,)
    assert find_weights(tmp_path).config_json == tmp_path / "config.json"


def test_in_a_folder_of_transformers_safetensors_go_before_pickles(tmp_path):
    for name in ("pytorch_model.bin", "model.safetensors", "other.pth"):
        write(tmp_path / name)
    assert find_weights(tmp_path).files == (tmp_path / "model.safetensors",)


def test_a_config_json_describes_its_folders_model_and_no_other_file(tmp_path):
    """A folder of experiments may hold many files; only the standard name is what config.json speaks of."""
    (tmp_path / "config.json").write_text("{}")
    assert find_weights(write(tmp_path / "model.safetensors")).config_json is not None
    assert find_weights(write(tmp_path / "mine.safetensors")).config_json is None


def sharded(folder, stem="model", suffix=".safetensors"):
    names = [f"{stem}-0000{number}-of-00002{suffix}" for number in (1, 2)]
    for name, key in zip(names, TENSORS, strict=True):
        write(folder / name, {key: TENSORS[key]})
    index = {"weight_map": dict(zip(TENSORS, names, strict=True))}
    (folder / f"{stem}{suffix}.index.json").write_text(json.dumps(index))
    return [folder / name for name in names]


@pytest.mark.parametrize(("stem", "suffix"), [("model", ".safetensors"), ("pytorch_model", ".bin")])
def test_shards_are_found_through_their_index(stem, suffix, tmp_path):
    files = sharded(tmp_path, stem, suffix)
    found = find_weights(tmp_path).files
    assert sorted(found) == files
    content = {}
    for file in found:
        content |= read_tensors(file)[0]
    assert same(content, TENSORS)


def test_missing_shards_are_named(tmp_path):
    sharded(tmp_path)[1].unlink()
    with pytest.raises(
        FileNotFoundError,
        match="names 2 files of weights, of which 1 are not there: model-00002-of-00002.safetensors; is the download",
    ):
        find_weights(tmp_path)


def test_one_shard_alone_is_not_taken_for_a_model(tmp_path):
    """Its names would fit a model of fewer layers."""
    shard, other = sharded(tmp_path)
    with pytest.raises(ValueError, match="model-00001-of-00002.safetensors holds one part of 2; give the folder"):
        find_weights(shard)
    other.unlink()
    (tmp_path / "model.safetensors.index.json").unlink()
    with pytest.raises(ValueError, match="holds one part of 2"):
        find_weights(tmp_path)


def test_an_index_that_names_nothing_is_no_model(tmp_path):
    (tmp_path / "model.safetensors.index.json").write_text('{"weight_map": {}}')
    with pytest.raises(FileNotFoundError, match="names 0 files"):
        find_weights(tmp_path)


def test_several_files_are_listed(tmp_path):
    for name in ("pretrain_512.pth", "full_sft_512.pth"):
        write(tmp_path / name)
    with pytest.raises(
        ValueError, match=r"several files of weights; give the path of one: full_sft_512.pth, pretrain_512.pth"
    ):
        find_weights(tmp_path)


@pytest.mark.parametrize(("inside", "message"), [([], "it holds nothing"), (["a.txt"], r"it holds a.txt")])
def test_a_folder_without_weights_says_what_it_holds(inside, message, tmp_path):
    for name in inside:
        (tmp_path / name).write_text("")
    with pytest.raises(ValueError, match=f"holds no weights .* {message}. Is the download complete"):
        find_weights(tmp_path)


@pytest.mark.parametrize("name", ["config.json", "model.safetensors.index.json"])
def test_a_folders_own_files_lead_to_the_folder(name, tmp_path):
    (tmp_path / name).write_text("{}")
    with pytest.raises(ValueError, match=f"{name} is one file of a model's folder; give the folder"):
        find_weights(tmp_path / name)


def test_rejects_other_names_and_missing_files(tmp_path):
    (tmp_path / "m.gguf").write_bytes(b"GGUF")
    with pytest.raises(ValueError, match=r"read from .safetensors, .pth, .pt, .bin or a folder, got 'm.gguf'"):
        find_weights(tmp_path / "m.gguf")
    with pytest.raises(FileNotFoundError, match="there is no file .*gone.pth"):
        find_weights(tmp_path / "gone.pth")


# What they hold


@pytest.mark.parametrize("name", ["m.safetensors", "m.pth", "m.pt", "m.bin"])
def test_tensors_come_back(name, tmp_path):
    assert same(read_tensors(write(tmp_path / name))[0], TENSORS)


def test_a_pickle_from_before_pytorch_1_6_is_read(tmp_path):
    torch.save(TENSORS, tmp_path / "old.pth", _use_new_zipfile_serialization=False)
    assert same(read_tensors(tmp_path / "old.pth")[0], TENSORS)


def test_metadata_comes_with_safetensors(tmp_path):
    save_file(TENSORS, tmp_path / "m.safetensors", metadata={"config": "..."})
    assert read_tensors(tmp_path / "m.safetensors")[1] == {"config": "..."}
    assert read_tensors(write(tmp_path / "n.safetensors"))[1] == {}
    assert read_tensors(write(tmp_path / "n.pth"))[1] == {}


def cut(path, share):
    content = write(path).read_bytes()
    path.write_bytes(content[: int(len(content) * share)])


@pytest.mark.parametrize("share", [0.001, 0.1, 0.6, 0.99])
@pytest.mark.parametrize("name", ["m.safetensors", "m.pth"])
def test_a_file_that_is_cut_short_says_so(name, share, tmp_path):
    cut(tmp_path / name, share)
    with pytest.raises(ValueError, match=rf"{name} is cut short or damaged \([0-9,]+ bytes .*download it again"):
        read_tensors(tmp_path / name)


def test_an_old_pickle_that_is_cut_short_says_so(tmp_path):
    torch.save(TENSORS, tmp_path / "old.pth", _use_new_zipfile_serialization=False)
    content = (tmp_path / "old.pth").read_bytes()
    (tmp_path / "old.pth").write_bytes(content[: len(content) // 2])
    with pytest.raises(ValueError, match="old.pth is cut short or damaged"):
        read_tensors(tmp_path / "old.pth")


STAND_INS = {
    "a pointer": (LFS_POINTER, r"is a Git LFS pointer of 68 bytes.*git lfs pull"),
    "nothing": (b"", "is empty"),
    "a web page": (b"\n<!DOCTYPE html><html></html>", "is a web page.*download link"),
    "noise": (bytes(range(7, 250)), "is cut short or damaged"),
}


@pytest.mark.parametrize("name", ["m.safetensors", "m.pth", "m.bin"])
@pytest.mark.parametrize("case", STAND_INS)
def test_what_stands_in_for_a_file_is_recognized(case, name, tmp_path):
    content, message = STAND_INS[case]
    (tmp_path / name).write_bytes(content)
    with pytest.raises(ValueError, match=f"{name} {message}"):
        read_tensors(tmp_path / name)


class RunsCode:
    """What a pickle of another's could hold: an object that runs a command when it is loaded."""

    def __init__(self, witness):
        self.witness = witness

    def __reduce__(self):
        return os.mkdir, (self.witness,)


def test_a_pickle_runs_no_code(tmp_path):
    witness, path = str(tmp_path / "ran"), tmp_path / "model.pth"
    torch.save({"model.norm.weight": RunsCode(witness)}, path)
    with pytest.raises(ValueError, match="would run code from the file, so it is refused"):
        read_tensors(path)
    assert not os.path.exists(witness)
    torch.load(path, weights_only=False)
    assert os.path.exists(witness), "it would have run, had it been allowed to"


def test_a_whole_pickled_model_is_refused_with_the_reason(tmp_path):
    torch.save(torch.nn.Linear(2, 2), tmp_path / "m.pth")
    with pytest.raises(
        ValueError, match=r"the first is a torch.nn.modules.linear.Linear\), such as a whole model, .*state_dict\(\)"
    ):
        read_tensors(tmp_path / "m.pth")


def test_what_is_no_state_dict_is_named(tmp_path):
    torch.save([torch.ones(2)], tmp_path / "m.pth")
    with pytest.raises(ValueError, match="m.pth holds a list, not a state dict"):
        read_tensors(tmp_path / "m.pth")


def test_json_is_read_as_utf_8_and_must_hold_an_object(tmp_path):
    path = tmp_path / "config.json"
    path.write_bytes('{"name": "我"}'.encode())
    assert read_json(path) == {"name": "我"}
    path.write_text("[1]")
    with pytest.raises(ValueError, match="config.json should hold a JSON object, but holds a list"):
        read_json(path)
    path.write_text('{"a": ')
    with pytest.raises(ValueError, match="config.json is cut short or damaged"):
        read_json(path)
    path.write_bytes(LFS_POINTER)
    with pytest.raises(ValueError, match="config.json is a Git LFS pointer"):
        read_json(path)
