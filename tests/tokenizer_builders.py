"""A small tokenizer that tests train themselves, with a chat template, in files as upstream keeps them."""

import json
from collections.abc import Iterable
from pathlib import Path

from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers

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


def train_as_many_as_minimind() -> Tokenizer:
    """6,400 tokens, learned from this package's own code."""
    package = Path(__file__).parents[1] / "src"
    tokens = train_tokens(6400, [file.read_text(encoding="utf-8") for file in sorted(package.rglob("*.py"))])
    assert tokens.get_vocab_size() == 6400
    return tokens


def write_tokenizer(folder, tokens=None):
    """A folder as upstream's `model/`: tokenizer.json and tokenizer_config.json."""
    folder.mkdir(exist_ok=True)
    (train_tokens() if tokens is None else tokens).save(str(folder / "tokenizer.json"))
    config = {"tokenizer_class": "PreTrainedTokenizerFast", "chat_template": TEMPLATE, "add_bos_token": False}
    text = json.dumps(config | ROLES, ensure_ascii=False)
    (folder / "tokenizer_config.json").write_text(text, encoding="utf-8")
    return folder
