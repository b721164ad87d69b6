"""Small tokenizers that tests train themselves: one with a chat template, as upstream keeps it, and random ones."""

import json
import random
import unicodedata
from collections.abc import Iterable
from functools import cache
from pathlib import Path
from typing import Any

from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers, trainers

SPECIAL = ["<|endoftext|>", "<|im_start|>", "<|im_end|>"]
TEXTS = [
    "我爱编程，也爱学习语言模型。",
    "the model reads what it wrote, one token at a time",
    "user system assistant tool think",
]
ROLES = {
    "bos_token": "<|im_start|>",
    "eos_token": "<|im_end|>",
    "pad_token": "<|endoftext|>",
    "unk_token": "<|endoftext|>",
}

TEMPLATE = """\
{%- for message in messages %}
    {{- '<|im_start|>' + message.role + '\\n' + message.content + '<|im_end|>\\n' }}
{%- endfor %}
{%- if add_generation_prompt %}
    {{- '<|im_start|>assistant\\n' }}
{%- endif %}"""


def train_tokens(vocab_size: int = 300, texts: Iterable[str] = tuple(TEXTS)) -> Tokenizer:
    """A byte-level BPE as MiniMind's; 256 bytes, the special tokens, and the merges that are left."""
    tokens = Tokenizer(models.BPE())
    tokens.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokens.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=vocab_size,
        special_tokens=SPECIAL,
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    tokens.train_from_iterator(texts, trainer)
    return tokens


@cache
def as_many_as_minimind() -> str:
    """6,400 tokens, learned from this package's own code, as tokenizer.json has them."""
    package = Path(__file__).parents[1] / "src"
    tokens = train_tokens(6400, [file.read_text(encoding="utf-8") for file in sorted(package.rglob("*.py"))])
    assert tokens.get_vocab_size() == 6400
    return tokens.to_str()


def train_as_many_as_minimind() -> Tokenizer:
    """A tokenizer of so many, learned once."""
    return Tokenizer.from_str(as_many_as_minimind())


def write_tokenizer(folder, tokens=None):
    """A folder as upstream's `model/`: tokenizer.json and tokenizer_config.json."""
    folder.mkdir(exist_ok=True)
    (train_tokens() if tokens is None else tokens).save(str(folder / "tokenizer.json"))
    config = {"tokenizer_class": "PreTrainedTokenizerFast", "chat_template": TEMPLATE, "add_bos_token": False}
    text = json.dumps(config | ROLES, ensure_ascii=False)
    (folder / "tokenizer_config.json").write_text(text, encoding="utf-8")
    return folder


# Patterns as widely used tokenizers have them.
PATTERNS = {
    "GPT-2": r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+",
    "GPT-4": r"'(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]++[\r\n]*|\s*[\r\n]|"
    r"\s+(?!\S)|\s+",
    "GPT-4, all possessive": r"'(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}++|\p{N}{1,3}+| ?[^\s\p{L}\p{N}]++"
    r"[\r\n]*+|\s++$|\s*[\r\n]|\s+(?!\S)|\s",
    "GPT-4o": r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+"
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)?|"
    r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?|"
    r"\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+",
    "Llama 3": r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|"
    r"\s*[\r\n]+|\s+(?!\S)|\s+",
    "Qwen": r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|"
    r"\s*[\r\n]+|\s+(?!\S)|\s+",
    "Tekken": r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+|"
    r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n/]*|"
    r"\s*[\r\n]+|\s+(?!\S)|\s+",
    "Bloom": r" ?[^(\s|[.,!?…。，、।۔،])]+",
    "DeepSeek": r"[!\"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+| ?[\p{P}\p{S}]+"
    r"[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+",
    "of scripts": r"[一-龥぀-ゟ゠-ヿ]+|\p{Hangul}+|[[:alpha:]&&[^\p{Han}]]+|\d{1,3}(?=(?:\d{3})*\b)|.",
    "of words": r"\w+|[^\w\s]+|\s+",
    "of lines": r"^\s+|\S+$|.+?(?=\s|\Z)|\R",
}
SENTENCES = [
    "我爱编程，也爱学习语言模型。注意力的归一因子是 1/√d，因为点积的方差随维度增长。",
    "The model reads what it wrote, one token at a time; it doesn't look ahead, and we'll see why.",
    "def attention(q, k, v):\n    scores = q @ k.transpose(-2, -1) / math.sqrt(D)  # [B, H, S, T]\n\treturn scores",
    "café été K-means, straße; ｆｕｌｌ ﬁ ﬀ İstanbul 12345678 ²³ ½ ﬃ e\u0301 한국어 日本語",
]
_LETTERS = "aAbBsSkKzZſKéÉßİıÿΩωЖж中文あア한ﬁ가½Å"
_OTHERS = "019_²½٣Ⅷ-'’.,!?()[]{}|&^$*+\\/#~<>=:;\"@▁ \t\n\r\x0b\x0c\x1c\x85\xa0\u2028\u3000\u200b\u0301\u0327😀👍🏽"
_SPECIMENS = [
    "<s>",
    "</s>",
    "<|a|>",
    "<0x41>",
    "▁",
    "  ",
    "'ll",
    "'S",
    "\r\n",
    "the",
    " the",
    "模型",
    "<unk>",
    "\ufeff",
]


def is_known_to_all(character: str) -> bool:
    """Whether Unicode 14 has it, which is older than the tables of today, and the library normalizes it as that says.

    Its table for this is older than those for categories: marks of the last years have no order there.
    """
    if unicodedata.category(character) in ("Cn", "Cs"):
        return False
    between = f"\u0315{character}\u0334"
    whole, parts = normalizers.NFKC().normalize_str(between), normalizers.NFD().normalize_str(between)
    return whole == unicodedata.normalize("NFKC", between) and parts == unicodedata.normalize("NFD", between)


def wild_texts(source: random.Random, count: int, longest: int = 24) -> list[str]:
    """Strings of what tokenizers get wrong, of a few letters, and of any character that is known to all."""

    def any_character() -> str:
        while True:
            code = source.randrange(*source.choice([(32, 0x300), (0x300, 0x3000), (0xA000, 0xD7FF), (0xE000, 0x1FFFF)]))
            if is_known_to_all(chr(code)):
                return chr(code)

    def text() -> str:
        length, kind = source.randrange(longest), source.random()
        if kind < 0.2:
            return "".join(any_character() for _ in range(length))
        if kind < 0.4:
            sentence = source.choice(SENTENCES)
            start = source.randrange(len(sentence))
            return sentence[start : start + 2 * length]
        alphabet = [*(_LETTERS + _OTHERS), *_SPECIMENS] if kind < 0.8 else [*"ab \n1"]
        return "".join(source.choices(alphabet, k=length))

    return [text() for _ in range(count)]


def random_tokenizer(source: random.Random) -> dict[str, Any]:
    """A tokenizer.json as people train it: over bytes, by one pattern or another, or with bytes to fall back on."""
    are_bytes = source.random() < 0.5
    file = _of_bytes(source) if are_bytes else _with_fallback(source)
    model = file["model"]
    if source.random() < 0.3:
        source.shuffle(model["merges"])
    if source.random() < 0.3 and model["merges"]:
        model["merges"] += source.choices(model["merges"], k=3)
    if source.random() < 0.3:
        model["merges"] = [" ".join(pair) for pair in model["merges"]]
    model["ignore_merges"] = source.random() < 0.3
    normalizers = source.choices([None, "NFC", "NFKC", "NFD", "NFKD"], [6, 2, 2, 1, 1])
    file["normalizer"]["normalizers"][:0] = [{"type": name} for name in normalizers if name]
    contents = source.sample(["<s>", "</s>", "<|a|>", "<|a|>b", " b", "é", "模型", "aa"], source.randrange(5))
    for content in contents:
        flags = {name: source.random() < 0.25 for name in ("lstrip", "rstrip", "normalized", "special")}
        _add(file, content, **flags)
    if contents and source.random() < 0.4:
        _frame(file, source)
    if source.random() < 0.3:
        file["truncation"] = {"direction": "Right", "max_length": 3, "strategy": "LongestFirst", "stride": 0}
    return file


def _file(model: dict[str, Any]) -> dict[str, Any]:
    empty = {"type": "Sequence", "normalizers": []}
    parts = {"added_tokens": [], "normalizer": empty, "pre_tokenizer": None, "post_processor": None, "decoder": None}
    return {"version": "1.0", "truncation": None, "padding": None, **parts, "model": model}


def _trained(pre_tokenizer: Any, texts: list[str], **settings: Any) -> dict[str, Any]:
    tokens = Tokenizer(models.BPE())
    tokens.pre_tokenizer = pre_tokenizer
    trainer = trainers.BpeTrainer(show_progress=False, min_frequency=1, **settings)
    tokens.train_from_iterator(texts * 2, trainer)
    return json.loads(tokens.to_str())["model"]


def _of_bytes(source: random.Random) -> dict[str, Any]:
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    model = _trained(
        pre_tokenizers.ByteLevel(), SENTENCES, vocab_size=source.choice([280, 400]), initial_alphabet=alphabet
    )
    if source.random() < 0.2:  # bytes without a token are left out, or unknown
        model["vocab"] = {token: at for at, token in enumerate(model["vocab"]) if len(token) > 1 or token not in "éÃĥ½"}
        kept = model["vocab"]
        model["merges"] = [pair for pair in model["merges"] if {*pair, "".join(pair)} <= kept.keys()]
        model["unk_token"] = source.choice([None, "a"])
        model["fuse_unk"] = source.random() < 0.5
    file = _file(model)
    behaviors = ["Isolated"] * 4 + ["Removed", "Contiguous", "MergedWithPrevious", "MergedWithNext"]
    pattern = source.choice(
        [{"Regex": source.choice(list(PATTERNS.values()))}, {"String": source.choice([" ", "a", "\n", "aa"])}]
    )
    split = {"type": "Split", "pattern": pattern, "behavior": source.choice(behaviors), "invert": source.random() < 0.2}
    digits = {"type": "Digits", "individual_digits": source.random() < 0.5}
    punctuation = {"type": "Punctuation", "behavior": source.choice(behaviors)}
    level = {"type": "ByteLevel", "add_prefix_space": source.random() < 0.3, "trim_offsets": False}
    level["use_regex"] = source.random() < 0.5
    parts = source.choice(
        [[level], [split, level], [split, level], [digits, level], [punctuation, level, digits, split]]
    )
    file["pre_tokenizer"] = {"type": "Sequence", "pretokenizers": parts}
    file["decoder"] = level
    return file


def _with_fallback(source: random.Random) -> dict[str, Any]:
    by_metaspace = source.random() < 0.5
    is_split = source.random() < 0.5
    metaspace = pre_tokenizers.Metaspace(prepend_scheme="always", split=is_split)
    trained = _trained(
        metaspace, SENTENCES, vocab_size=source.choice([100, 200]), limit_alphabet=source.choice([30, 60])
    )
    first = ["<unk>", "<s>", "</s>", *(f"<0x{byte:02X}>" for byte in range(256))]
    if source.random() < 0.2:
        first = [token for token in first if token not in ("<0xE4>", "<0xC3>")]
    tokens = [*first, *(token for token in trained["vocab"] if token not in first)]
    trained["vocab"] = {token: at for at, token in enumerate(tokens)}
    trained |= {"byte_fallback": source.random() < 0.8, "fuse_unk": source.random() < 0.5}
    trained["unk_token"] = source.choice(["<unk>", "<unk>", None])
    file = _file(trained)
    for token in ("<unk>", "<s>", "</s>"):
        _add(file, token, normalized=source.random() < 0.3, special=True)
    scheme = source.choice(["always", "first", "never"])
    if by_metaspace:
        if scheme == "first":  # beside such tokens it is refused
            for token in file["added_tokens"]:
                token["normalized"] = False
        file["pre_tokenizer"] = {"type": "Metaspace", "replacement": "▁", "prepend_scheme": scheme, "split": is_split}
        file["decoder"] = source.choice([file["pre_tokenizer"], None])
    else:
        prepend, replace = (
            {"type": "Prepend", "prepend": "▁"},
            {"type": "Replace", "pattern": {"String": " "}, "content": "▁"},
        )
        file["normalizer"]["normalizers"] = source.choice([[prepend, replace], [replace], [replace, prepend]])
    if file["decoder"] is None:
        back = {"type": "Replace", "pattern": {"String": "▁"}, "content": " "}
        strip = [{"type": "Strip", "content": " ", "start": 1, "stop": 0}] * (scheme != "never")
        decoding = [back, {"type": "ByteFallback"}, {"type": "Fuse"}, *strip]
        file["decoder"] = {"type": "Sequence", "decoders": decoding}
    return file


def _add(file: dict[str, Any], content: str, **flags: bool) -> None:
    added, vocab = file["added_tokens"], file["model"]["vocab"]
    if any(token["content"] == content for token in added):
        return
    following = max([len(vocab) - 1, *(token["id"] for token in added)]) + 1
    plain = {"single_word": False, "lstrip": False, "rstrip": False, "normalized": False, "special": False}
    added.append({"id": vocab.get(content, following), "content": content, **plain, **flags})


def _frame(file: dict[str, Any], source: random.Random) -> None:
    text, token = {"Sequence": {"id": "A", "type_id": 0}}, source.choice(file["added_tokens"])
    special = {"SpecialToken": {"id": token["content"], "type_id": 0}}
    single = source.choice([[special, text], [special, text, special], [text, special]])
    known = {token["content"]: {"id": token["content"], "ids": [token["id"]], "tokens": [token["content"]]}}
    pair = [text, {"Sequence": {"id": "B", "type_id": 1}}]
    template = {"type": "TemplateProcessing", "single": single, "pair": pair, "special_tokens": known}
    level = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": True}
    parts = source.choice([[template], [level, template], [template, level]])
    file["post_processor"] = {"type": "Sequence", "processors": parts}
