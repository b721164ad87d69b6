"""What other programs compute from a reader's very file: transformers and, from GGUF files, llama.cpp, if installed."""

import re
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from minimind_edu.model.model import MiniMindForCausalLM
from minimind_edu.verdicts.opened import Opened
from minimind_edu.verdicts.verdict import Verdict

TOKENS = 64  # that models are compared on
_NEAR = 1e-3  # a relative difference; float32 sums in another order stay far below
_EXPLAINED = {8: 0.02, 6: 0.04, 5: 0.06, 4: 0.12, 3: 0.25, 2: 0.4}  # bits -> relative error that rounding explains
_BLURRED = 0.2  # of it, where logits tell nothing any more


def probe(vocab_size: int, positions: int) -> Tensor:
    """Token ids [1, S] on which two models are compared."""
    generator = torch.Generator().manual_seed(0)
    return torch.randint(0, vocab_size, (1, min(TOKENS, positions)), generator=generator)


def explained(*files: Opened) -> float:
    """The largest relative difference of a tensor that the rounding of these files explains."""
    kinds = [kind for opened in files for kind in opened.kinds]
    bits = [int(found[1]) for kind in kinds if (found := re.search(r"(?:Q|int)(\d)", kind))]
    return explained_by(min(bits)) if bits else 0.0


def explained_by(bits: int) -> float:
    """The relative difference that rounding weights to so many bits explains; above eight it is none."""
    return 0.0 if bits > max(_EXPLAINED) else _EXPLAINED.get(bits, max(_EXPLAINED.values()))


def apart(ours: Tensor, theirs: Tensor) -> tuple[float, str]:
    """How far two models' logits [S, V] are apart: the norm of the difference, by that of ours, and in words."""
    difference, largest = float((ours - theirs).abs().max()), float(ours.abs().max())
    far = f"{difference:.1e}" if difference else "0"
    finding = f"logits differ by at most {far} (the largest is {largest:.1f}), and the likeliest next token "
    others = (ours.argmax(-1) != theirs.argmax(-1)).nonzero().flatten()
    if len(others):
        finding += f"is another first after token {int(others[0]) + 1} of {len(ours)}"
    else:
        finding += f"is the same after each of {len(ours)} tokens"
    return float((ours - theirs).norm() / ours.norm().clamp_min(1e-30)), finding


def against_transformers(opened: Opened) -> Verdict:
    """The largest difference of logits between this package and transformers, for this very file."""
    try:
        import transformers

        from minimind_edu import hf
    except ImportError:
        advice = "pip install 'minimind-edu[hf]'"
        return Verdict("transformers", "open", "it is not installed, so nothing was compared", advice)
    model = opened.whole
    try:
        if opened.place.is_dir() and (opened.described or {}).get("model_type") in ("llama", "qwen3", "qwen3_moe"):
            twin, way = _as_transformers_reads(opened.place), "read by itself from the same folder"
        else:
            twin, way = hf.to_transformers(model), "with the same tensors"
    except ValueError as error:
        return Verdict("transformers", "open", f"not compared: {error}")
    ids = probe(model.config.vocab_size, model.config.max_position_embeddings)
    with torch.no_grad():
        far, difference = apart(model(ids).logits[0], twin(ids).logits[0])
    finding = f"its {type(twin).__name__} ({transformers.__version__}), {way}: {difference}"
    if far <= _NEAR:
        return Verdict("transformers", "fine", finding)
    return Verdict("transformers", "wrong", finding, "the two read the file in different ways: trust neither yet")


def _as_transformers_reads(folder: Path) -> Any:
    from transformers import AutoModelForCausalLM

    from minimind_edu.hf.export import without_progress_bar

    try:
        with without_progress_bar():
            model = AutoModelForCausalLM.from_pretrained(
                folder, local_files_only=True, trust_remote_code=False, dtype=torch.float32
            )
    except Exception as error:  # for a stranger's files it raises whatever its parts run into
        reason = next(iter(str(error).splitlines()), "") or type(error).__name__
        raise ValueError(f"transformers does not read the folder ({reason:.120})") from error
    return model.eval()


def against_llama_cpp(opened: Opened, other: Opened | None = None) -> Verdict | None:
    """Of a GGUF file, the difference of logits between what llama.cpp reads from it and a model; of others, None.

    `other`: the model, in another file; None: the file's own, as this package reads it. Where weights are rounded,
    llama.cpp rounds what it multiplies them with, too, so its logits stray further than those of the rounded weights.
    """
    if opened.place.suffix != ".gguf":
        return None
    try:
        from minimind_edu.verdicts.llama_cpp_file import VERSION, LlamaCppFile
    except (ImportError, OSError, RuntimeError):  # it is not there, or its library does not load on this machine
        advice = "pip install llama-cpp-python; it is compiled for a quarter of an hour"
        return Verdict("llama.cpp", "open", "it is not installed, so nothing was compared", advice)
    model = (other or opened).whole
    sizes = (model.config, opened.whole.config)
    ids = probe(sizes[1].vocab_size, min(config.max_position_embeddings for config in sizes))
    try:
        with LlamaCppFile(opened.place, ids.shape[1]) as theirs:
            read = torch.from_numpy(theirs.logits(ids[0].tolist()))
    except ValueError as error:
        advice = "make the file anew, with a converter of its own age"
        return Verdict("llama.cpp", "wrong", f"not compared: {error}", advice)
    with torch.no_grad():
        far, difference = apart(model(ids).logits[0], read)
    against = f"with those of {other.name}" if other else "with what this book computes from it"
    finding = f"llama-cpp-python {VERSION} reads {opened.name} itself; compared {against}, {difference}"
    rounding = explained(opened, *([other] if other else []))
    if why := blurred(model, rounding, far > max(_NEAR, 3 * rounding)):
        return Verdict("llama.cpp", "open", f"{finding}; {why}")
    if far <= max(_NEAR, 3 * rounding):
        return Verdict("llama.cpp", "fine", finding)
    advice = "the two read the file in different ways: trust neither yet"
    if other:
        advice = "two models, if their weights differ above; if not, llama.cpp reads the file in another way"
    return Verdict("llama.cpp", "wrong", finding, advice)


def blurred(model: MiniMindForCausalLM, rounding: float, differs: bool) -> str:
    """Why rounding leaves open whether two models are one, if it does.

    Args:
        rounding: the relative difference of a tensor that it explains; 0: none.
        differs: whether the logits are further apart than that.
    """
    if rounding > _BLURRED:
        return "so few bits blur more than a fault would show"
    if differs and rounding and model.config.use_moe:
        return "rounding sends some tokens to other experts, so a difference is no fault yet"
    return ""
