"""The page of one model: its weights, its tokenizer, the code and the styles in one .html file that fetches nothing.

What somebody else wrote, names and tokens, is data in it, never code: the policy of the page runs its own scripts,
known by their hashes, and the worker that one of them starts, and lets nothing in or out.
"""

import base64
import dataclasses
import hashlib
import json
import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from html import escape
from pathlib import Path
from typing import Any, NamedTuple

import torch
from safetensors.torch import save_file

from minimind_edu.inside.tokenizer import PageTokenizer, compared_texts
from minimind_edu.model.config import MiniMindConfig, tokens_of
from minimind_edu.model.model import MiniMindForCausalLM
from minimind_edu.model.quantization import Grid, matrices, quantize, rounded_model
from minimind_edu.model.rope_frequencies import rope_frequencies
from minimind_edu.validation import check_choice, check_finite
from minimind_edu.web import book
from minimind_edu.web.base import own_stylesheet, shared_stylesheet
from minimind_edu.web.host import FONTS
from minimind_edu.web.join import join
from minimind_edu.web.keep import keep_script
from minimind_edu.weights.checkpoints import save_checkpoint
from minimind_edu.weights.int8 import ROWS, SCALE
from minimind_edu.weights.writing import replacing

BITS = (8, 4, 32)
PARTS = ("attention", "cache", "feed-forward", "experts", "block", "generation")  # that page.js can lead to
_SHARING = 32  # weights of 4 bits with one scale: what step.cpp reads
MOST_WEIGHTS = 150_000_000  # of a page: base64 of int8 rows is 200 MB then
LARGER = "in a notebook, minimind_edu.figures.Inside(model, tokenizer, text) shows what is larger"
MOST_TOKENS = 512  # that a page reads
CHECKED = 16  # tokens of the text by which the page compares itself with torch
_HALVES = re.compile("[\ud800-\udfff]")
_PIECE = 3 * 2**20  # bytes of weights in one element: a multiple of three, so that each is base64 of its own
_FOLDER = Path(__file__).parent
# How pages name their language, and what they say without scripts.
_WORDS = {
    "en": ("en", "The model runs in this page, and for that it needs JavaScript."),
    "zh": ("zh-CN", "模型在这一页里运行，为此需要 JavaScript。"),
}
LANGUAGES = tuple(_WORDS)


class Code(NamedTuple):
    """What runs in a page, and how it looks."""

    page: Path  # a module whose default export starts the page
    worker: Path  # the same of the model's thread
    styles: str  # the folder of `base.own_stylesheet`
    titles: Mapping[str, str]  # in each language; `{}` is the model's name


# of any model
VIEWS = Code(_FOLDER / "page.js", _FOLDER / "worker.js", "inside", {"en": "Inside {}", "zh": "内部：{}"})
STEP = _FOLDER / "step.wasm"  # written by tools/step_wasm.py
# What the page's tokenizer is compared with, besides the text: what tokenizers get wrong.
CASES = (
    "Hello, world! It's 3.14e-5; they'LL see.",
    "你好，世界。今天天气很好！",
    "  two  spaces,\ttabs\r\n\n and lines \n",
    "def f(x):\n    return x**2  # 平方",
    "👨‍👩‍👧‍👦 🇨🇳 é e\u0301 ﬁ ½ ٣",
    "\ufeff\u200b\u00a0\u0085\u3000|<>&",
)


def rope_of(config: MiniMindConfig) -> dict[str, Any] | None:
    """The frequencies [D/2] and the factor of a model's RoPE tables, for live/model.js; None: as they always are."""
    scaling = config.rope_scaling
    if scaling is None:
        return None
    used = scaling if scaling.starts_at(config.max_position_embeddings) else None
    frequencies = rope_frequencies(config.head_dim, config.rope_theta, used)
    return {"frequencies": frequencies.tolist(), "factor": used.table_factor if used else 1.0}


def check_fits(model: MiniMindForCausalLM) -> None:
    """Raise a ValueError if a page cannot hold or run this model; the message says what can."""
    if model.num_parameters() > MOST_WEIGHTS:
        raise ValueError(
            f"this model has {model.num_parameters() / 1e6:,.0f} million weights, and a page holds up to "
            f"{MOST_WEIGHTS / 1e6:,.0f} million; {LARGER}"
        )
    check_runs(model)


def check_runs(model: MiniMindForCausalLM) -> None:
    """Raise a ValueError if the views cannot show this kind of model, or its weights are not finite."""
    if model.config.norm_placement != "pre":
        raise ValueError("this model has its norms after each part, and a page runs those with the norms before it")
    check_finite(model)


def write_page(
    model: MiniMindForCausalLM,
    target: Path,
    *,
    name: str,
    text: str | Mapping[str, str],
    tokenizer: PageTokenizer | None = None,
    bits: int = 8,
    at: str | None = None,
    language: str = "en",
    assumed: Mapping[str, Any] | None = None,
    book_at: str | None = None,
    tell: Callable[[str], None] = lambda sentence: None,
) -> None:
    """Write the page of a model; it appears only when it is complete.

    Args:
        model: whose weights are stored as int8 rows, as int4 with a scale for 32 neighbors, or as float32.
        target: the .html file.
        name: what the page calls the model.
        text: what it shows first; token ids without a tokenizer. Or several in different languages, each with a
            sentence that says the same in all of them: the page takes the first, or the one whose sentence its
            tokenizer writes in clearly fewer tokens.
        tokenizer: None: the page takes ids.
        at: which of `PARTS` is open at first, or in sight.
        language: one of `LANGUAGES`, in which it speaks.
        assumed: fields of the config that nothing said, for the foot of the page: `infer_config.assumed`.
        book_at: where its links to the book lead: `book.links`.
        tell: gets a sentence for each step.

    Raises:
        FileNotFoundError, IsADirectoryError: if the file's folder does not exist, or it is a folder.
        ValueError: for bits, a part or a language that there is not; see `check_fits`; with `bits=4` also if 32
            neighbors do not fill a row.
    """
    for field, value, choices in (("bits", bits, BITS), ("at", at, (None, *PARTS)), ("language", language, LANGUAGES)):
        check_choice(field, value, choices)
    check_fits(model)
    if at == "experts" and not model.config.use_moe:
        raise ValueError("this model has no experts; its feed-forward network is at 'feed-forward'")
    texts = {text: text} if isinstance(text, str) else dict(text)
    first = next(iter(texts))
    with replacing(target) as partial:
        stored = partial.with_name("weights.safetensors")
        data = facts_of(model, name, first, tokenizer, book.links(language, book_at)) | {
            "texts": list(texts.items()),
            "at": at,
            "assumed": assumed and dict(assumed),
        }
        data |= packed(model, stored, bits, tokenizer, texts, tell)
        tell("writing the page")
        with partial.open("w", encoding="utf-8", newline="\n") as file:
            file.writelines(page_html(VIEWS, data, [stored], language))


def packed(
    model: MiniMindForCausalLM,
    stored: Path,
    bits: int,
    tokenizer: PageTokenizer | None,
    texts: Iterable[str],
    tell: Callable[[str], None],
) -> dict[str, Any]:
    """Write the weights of a model to a file of a page; returns what the page must know to run and to check them."""
    tell("copying the weights" if bits == 32 else "rounding the weights")
    model = _in_float32(model)
    rounded = store(model, stored, bits)
    tell("asking torch what the page must answer")
    compared = [*texts, *CASES] if tokenizer and tokenizer.kind == "bpe" else []
    found = check(model, rounded, tokenizer, compared)
    if compared and not found["texts"]:
        tell("optional check skipped: with tokenizers (pip install tokenizers), its tokens are compared as well")
    return {"rope": rope_of(model.config), "bits": bits, "check": found, "bytes": stored.stat().st_size}


def _in_float32(model: MiniMindForCausalLM) -> MiniMindForCausalLM:
    """The same weights in float32, in eval mode."""
    if next(model.parameters()).dtype == torch.float32 and not model.training:
        return model
    copied = MiniMindForCausalLM(model.config)
    copied.load_state_dict(model.state_dict())
    return copied.eval()


def store(model: MiniMindForCausalLM, target: Path, bits: int) -> MiniMindForCausalLM:
    """Write the weights of a page; returns the model that they stand for."""
    if bits != 4:
        save_checkpoint(model, target, int8=bits == 8)
        return rounded_model(model, ROWS) if bits == 8 else model
    grid = Grid(4, _SHARING)
    names = [name for name, _ in matrices(model) if not name.endswith("mlp.gate.weight")]  # a router's are few
    tensors = {name: parameter.detach() for name, parameter in model.named_parameters()}
    for name in names:
        if tensors[name].shape[1] % _SHARING:
            raise ValueError(
                f"of 4 bits, {_SHARING} neighbors in a row share a scale, but a row of {name} has "
                f"{tensors[name].shape[1]} weights; take 8 bits"
            )
        values, tensors[f"{name}{SCALE}"] = quantize(tensors[name], grid)
        pairs = (values + 8).to(torch.uint8)
        tensors[name] = pairs[:, ::2] | pairs[:, 1::2] << 4  # [R, C / 2]
    save_file(tensors, target, metadata={"config": json.dumps(dataclasses.asdict(model.config))})
    return rounded_model(model, grid, set(names).__contains__)


def facts_of(
    model: MiniMindForCausalLM, name: str, text: str, tokenizer: PageTokenizer | None, links: Mapping[str, str]
) -> dict[str, Any]:
    """What the views know of a model, whoever runs it; links: `book.links`."""
    config = model.config
    return {
        "name": name,
        "text": text,
        "config": {field.name: getattr(config, field.name) for field in dataclasses.fields(config)}
        | {"rope_scaling": config.rope_scaling and dataclasses.asdict(config.rope_scaling)},
        "ends": list(tokens_of(config.eos_token_id)),
        "most": min(MOST_TOKENS, config.max_position_embeddings),
        "parameters": model.num_parameters(),
        "tokenizer": tokenizer and {"kind": tokenizer.kind, "content": tokenizer.content},
        "prefix": list(tokenizer.prefix) if tokenizer else [],
        "suffix": list(tokenizer.suffix) if tokenizer else [],
        "chat": tokenizer and tokenizer.chat,
        "links": dict(links),
    }


@torch.no_grad()
def check(
    model: MiniMindForCausalLM,
    stored: MiniMindForCausalLM,
    tokenizer: PageTokenizer | None = None,
    texts: Sequence[str] = (),
) -> dict[str, Any]:
    """What torch says, for the page to compare itself with, and what the rounding changed.

    `ids` with the five likeliest of the last position as [id, logit] by the stored weights; `texts`, and others of the
    tokenizer's own tokens, with their ids, if the tokenizers library is here; of the model as it was given, at how many
    positions the likeliest token is `same`, and the largest `change` of a probability.
    """
    V = model.config.vocab_size
    cases = compared_texts(tokenizer.file, texts) if tokenizer and tokenizer.file else []
    prefix = tokenizer.prefix if tokenizer else ()
    ids = (cases and cases[0][1]) or [*prefix, *((7919 * i) % V for i in range(CHECKED))]
    ids = ids[: min(CHECKED, model.config.max_position_embeddings)]
    given, rounded = (network(torch.tensor([ids])).logits[0].float() for network in (model, stored))
    values, likeliest = rounded[-1].topk(min(5, V))
    return {
        "ids": ids,
        "top": [list(pair) for pair in zip(likeliest.tolist(), values.tolist(), strict=True)],
        "texts": [[text, ids] for text, ids in cases],
        "same": int((given.argmax(-1) == rounded.argmax(-1)).sum()),
        "change": (given.softmax(-1) - rounded.softmax(-1)).abs().max().item(),
    }


def page_html(code: Code, data: dict[str, Any], weights: Sequence[Path], language: str) -> Iterator[str]:
    """A page, piece by piece: the code before the weights, so that it runs while they arrive.

    Args:
        data: what the page reads; its `name` is the model's, its `bytes` the size of the weights.
        weights: of each model the file of them, as `store` writes it.
    """
    tag, unable = _WORDS[language]
    title = code.titles[language].format(data["name"])
    script = f'(() => {{\n"use strict";\n{_body(code.page, language)}}})();'
    scripts = [keep_script(with_fonts=False), script]
    font = _base64((FONTS / "sans.woff2").read_bytes())  # 22 kB, so that it looks as the book does
    faces = f'@font-face {{ font-family: "Book Sans"; src: url(data:font/woff2;base64,{font}); font-weight: 400 700; }}'
    styles = f"{faces}\n{shared_stylesheet()}{own_stylesheet(code.styles)}"
    allowed = " ".join(f"'{_hash(source)}'" for source in scripts)
    policy = (
        f"default-src 'none'; script-src {allowed} 'wasm-unsafe-eval'; worker-src blob:; "
        f"style-src '{_hash(styles)}'; font-src data:; img-src data:; base-uri 'none'; form-action 'none'"
    )
    yield (
        f'<!doctype html>\n<html lang="{tag}">\n<head>\n<meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">\n'
        f'<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f'<meta name="referrer" content="no-referrer">\n<title>{escape(title)}</title>\n'
        f'<link rel="icon" href="data:,">\n<style>{styles}</style>\n</head>\n'
        f'<body class="minimind-figure">\n<main class="mm-fig in-page"><noscript>{unable}</noscript></main>\n'
        f'<script type="application/json" id="data">{_json(data)}</script>\n'
        f'<script type="text/plain" id="step">{_base64(STEP.read_bytes())}</script>\n'
        f'<script type="text/plain" id="worker">"use strict";\n{_body(code.worker)}</script>\n'
        + "".join(f"<script>{source}</script>\n" for source in scripts)
    )
    for path in weights:
        with path.open("rb") as file:
            while piece := file.read(_PIECE):
                yield f'<script type="text/plain" class="weights">{_base64(piece)}</script>\n'
    yield "</body>\n</html>\n"


def _body(entry: Path, language: str = "en") -> str:
    """A module with its helpers, as a script: what it exports by default is what it does."""
    body, _, started = join(entry, language).rpartition("\nexport default ")
    script = f"{body}\n{started.rstrip().removesuffix(';')}();\n"
    if "</script" in script.lower() or "<!--" in script:
        raise AssertionError(f"{entry.name} would end its own element")
    return script


def _hash(text: str) -> str:
    return f"sha256-{_base64(hashlib.sha256(text.encode()).digest())}"


def _base64(content: bytes) -> str:
    return base64.b64encode(content).decode("ascii")


def _json(value: Any) -> str:
    """JSON inside a script element: no `<` can close it or open a comment, no half of a character breaks the file."""
    text = json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":")).replace("<", "\\u003c")
    return _HALVES.sub(lambda half: f"\\u{ord(half[0]):04x}", text)


def size_of(path: Path) -> str:
    """The size of a file for reading: 33.4 MiB."""
    return f"{os.path.getsize(path) / 2**20:,.1f} MiB"
