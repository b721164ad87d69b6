"""verdicts.engines: what transformers and llama.cpp compute from the very file, and a fault on either side."""

import re
import sys
from types import SimpleNamespace

import pytest
import torch
from model_builders import talkative_model, tiny_model
from test_model_file import model_of, opened

from minimind_edu.hf import export
from minimind_edu.hf.gguf import write_gguf
from minimind_edu.verdicts import engines
from minimind_edu.verdicts.model_file import check_file
from minimind_edu.verdicts.opened import open_weights
from minimind_edu.verdicts.same_model import compare


@pytest.mark.parametrize("kind", ["minimind2", "minimind3", "minimind3_moe"])
def test_transformers_computes_the_same_from_the_same_tensors(tmp_path, kind):
    told = engines.against_transformers(opened(tmp_path, model_of(kind).state_dict()))
    assert told.grade == "fine" and "with the same tensors" in told.finding
    assert "the likeliest next token is the same after each of 64 tokens" in told.finding


def test_transformers_reads_the_folder_by_itself_and_a_fault_of_ours_shows(tmp_path):
    folder = export(tiny_model("minimind3"), tmp_path / "exported")
    told = engines.against_transformers(open_weights(folder))
    assert told.grade == "fine" and "its Qwen3ForCausalLM" in told.finding and "from the same folder" in told.finding
    found = open_weights(folder)
    with torch.no_grad():
        found.model.model.layers[1].self_attn.q_norm.weight *= 1.5
    assert engines.against_transformers(found).grade == "wrong"


def test_a_model_that_transformers_lacks_is_not_compared(tmp_path, monkeypatch):
    told = engines.against_transformers(opened(tmp_path, model_of("minimind2_moe").state_dict()))
    assert told.grade == "open" and "no expert that every token visits" in told.finding
    found = opened(tmp_path, model_of().state_dict())
    monkeypatch.setitem(sys.modules, "transformers", None)
    assert engines.against_transformers(found).grade == "open"


def test_the_first_token_after_which_two_models_part_is_named():
    ours = torch.eye(6)
    theirs = ours.clone()
    theirs[[2, 4]] = theirs[[4, 2]]
    far, told = engines.apart(ours, theirs)
    assert far == pytest.approx((4 / 6) ** 0.5) and told.startswith(
        "logits differ by at most 1.0e+00 (the largest is 1.0), "
    )
    assert told.endswith("is another first after token 3 of 6")
    assert engines.apart(ours, ours)[1].endswith("is the same after each of 6 tokens")


@pytest.fixture
def written(tmp_path):
    """Writes a model of Llama's class, converted, as a GGUF file; both opened."""
    folder = export(talkative_model(max_position_embeddings=256, intermediate_size=64), tmp_path / "converted")

    def write(precision="F32"):
        with pytest.warns(UserWarning, match="token ids only"):
            file = write_gguf(folder, tmp_path / f"{precision}.gguf", precision)
        return open_weights(file), open_weights(folder)

    return write


LLAMA = "minimind_edu.verdicts.llama_cpp_file"


@pytest.fixture
def llama_cpp_is(monkeypatch):
    """Has another read a GGUF file in llama.cpp's place: what it computes is given."""

    def put(compute):
        class Stand:
            def __init__(self, file, length):
                self.file = file

            def __enter__(self):
                return self

            def __exit__(self, *_):
                pass

            def logits(self, tokens):
                with torch.no_grad():
                    return compute(open_weights(self.file).whole, torch.tensor([tokens])).numpy()

        monkeypatch.setitem(sys.modules, LLAMA, SimpleNamespace(VERSION="0", LlamaCppFile=Stand))

    return put


def test_llama_cpp_and_this_book_differ_where_the_file_is_read_otherwise(written, llama_cpp_is):
    file, folder = written()
    llama_cpp_is(lambda model, ids: model(ids).logits[0])
    assert engines.against_llama_cpp(file).grade == "fine"
    llama_cpp_is(lambda model, ids: model(ids.flip(1)).logits[0])
    alone, beside = engines.against_llama_cpp(file), engines.against_llama_cpp(file, folder)
    for told in (alone, beside):
        assert told.grade == "wrong" and "is another first after token" in told.finding
    assert "trust neither" in alone.advice and beside.advice.startswith("two models, if their weights differ above")


def test_what_a_gguf_file_holds_once_is_told_as_that(written):
    file, _ = written()
    assert "stored once" in next(told for told in check_file(file) if told.about == "tying").finding


def test_rounded_weights_explain_some_difference_and_few_bits_any(written, llama_cpp_is):
    file, folder = written("Q8_0")
    llama_cpp_is(lambda model, ids: model(ids).logits[0] * 1.02)
    assert engines.against_llama_cpp(file, folder).grade == "fine"
    llama_cpp_is(lambda model, ids: model(ids).logits[0] * 1.2)
    assert engines.against_llama_cpp(file, folder).grade == "wrong"
    object.__setattr__(file, "kinds", ("Q3_K",))
    told = engines.against_llama_cpp(file, folder)
    assert told.grade == "open" and told.finding.endswith("so few bits blur more than a fault would show")


def test_rounding_may_change_the_experts_of_a_token_so_a_mixture_that_differs_is_left_open(llama_cpp_is, tmp_path):
    sizes = {"hidden_size": 64, "intermediate_size": 64, "head_dim": 32, "moe_intermediate_size": 64}
    folder = export(tiny_model("minimind3_moe", **sizes), tmp_path / "exported")
    with pytest.warns(UserWarning, match="token ids only"):
        files = [write_gguf(folder, tmp_path / f"{kind}.gguf", kind) for kind in ("Q8_0", "F32")]
    rounded, exact = (open_weights(file) for file in files)
    logits = next(told for told in compare(rounded, open_weights(folder)) if told.about == "logits")
    assert logits.grade == "open" and "to other experts" in logits.finding
    llama_cpp_is(lambda model, ids: model(ids).logits[0] * 1.2)
    assert [engines.against_llama_cpp(file).grade for file in (rounded, exact)] == ["open", "wrong"]


def test_only_gguf_files_are_given_to_llama_cpp_and_its_absence_is_told(written, monkeypatch):
    file, folder = written()
    assert engines.against_llama_cpp(folder) is None
    monkeypatch.setitem(sys.modules, LLAMA, None)
    told = engines.against_llama_cpp(file)
    assert told.grade == "open" and "pip install llama-cpp-python" in told.advice


@pytest.mark.parametrize("precision, far", [("F32", 1e-4), ("Q8_0", 0.2)])
def test_llama_cpp_itself_reads_a_converted_file(written, precision, far):
    pytest.importorskip("llama_cpp")
    file, folder = written(precision)
    alone = next(told for told in check_file(file) if told.about == "llama.cpp")
    [beside] = [told for told in compare(folder, file) if told.about == "llama.cpp"]
    for told in (alone, beside):
        assert told.grade == "fine", told
        difference, largest = re.search(r"at most (\S+) \(the largest is (\S+)\)", told.finding).groups()
        assert float(difference) <= far * float(largest)


def test_what_llama_cpp_itself_does_not_read_is_told_with_its_reason(written, tmp_path):
    pytest.importorskip("llama_cpp")
    file, _ = written()
    (tmp_path / "other.gguf").write_bytes(b"GG" + file.place.read_bytes()[2:900])
    object.__setattr__(file, "place", tmp_path / "other.gguf")
    told = engines.against_llama_cpp(file)
    assert told.grade == "wrong" and told.finding.startswith("not compared: llama.cpp cannot read ")
    assert told.finding.endswith("tensor info)")
