"""The page's byte-level BPE gives the ids of the tokenizers library, and the bytes that they stand for."""

import random

import pytest
from tokenizer_builders import SPECIAL, train_as_many_as_minimind, train_tokens
from tokenizers import Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, trainers

from minimind_edu.figures.inside.page import CASES
from minimind_edu.figures.inside.tokenizer import read_tokenizer

COUNT = 5000
QWEN = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
LLAMA = QWEN.replace(r"|\p{N}|", r"|\p{N}{1,3}|")
OPEN = """async (content) => {
    globalThis.bpe = (await import("/inside/bpe.js")).createBpe(content);
}"""
# What tokenizers get wrong: spaces of all kinds, marks, digits of all scripts, halves of emoji, contractions, markup.
SPECIMENS = """😀 👨‍👩‍👧‍👦 🇨🇳 👍🏽 ❤️ é e\u0301 ñ ß İ ſ K Ⅷ ² ½ ① ٣ ० 한국어 日本語 ไทย हिन्दी العربية
's 'S ’s 'LL don't I'M １２３ 123456 3.14e-5
， 。 “ ” … —— 中文 你好 𠮷 𝒳 a Z _ $ € ™ <|im_start|> <|im_end|> <|im_start |>
<|im_start|>a <script> &amp; \\ / " { } [ ]""".split()
SPECIMENS += [*"\u200b\u00a0\u3000\ufeff\u2028\x00\x85\x1c\t\r\n ", "  ", "   ", "\r\n"]
SENTENCES = [
    "我爱编程，也爱学习语言模型。注意力的归一因子是 1/√d，因为点积的方差随维度增长。",
    "The model reads what it wrote, one token at a time; it doesn't look ahead, and we'll see why.",
    "def attention(q, k, v):\n    scores = q @ k.transpose(-2, -1) / math.sqrt(D)  # [B, H, S, T]\n\treturn scores",
]


def like_qwen(pattern=QWEN, normalizer=None, ignore_merges=False):
    """A byte-level BPE that splits first by a pattern of its own."""
    tokens = Tokenizer(models.BPE(ignore_merges=ignore_merges))
    splits = [
        pre_tokenizers.Split(Regex(pattern), "isolated"),
        pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False),
    ]
    tokens.pre_tokenizer = pre_tokenizers.Sequence(splits)
    if normalizer:
        tokens.normalizer = normalizer
    tokens.decoder = decoders.ByteLevel()
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    trainer = trainers.BpeTrainer(
        vocab_size=600, special_tokens=SPECIAL, initial_alphabet=alphabet, show_progress=False
    )
    tokens.train_from_iterator(SENTENCES * 3 + SPECIMENS, trainer)
    return tokens


def with_digits():
    tokens = train_tokens(400)
    splits = [pre_tokenizers.Digits(individual_digits=True), pre_tokenizers.ByteLevel(add_prefix_space=False)]
    tokens.pre_tokenizer = pre_tokenizers.Sequence(splits)
    tokens.add_special_tokens(["<|im_start|>a"])  # begins as another one
    return tokens


KINDS = {
    "MiniMind's": lambda: train_tokens(400),
    "as large as MiniMind's": train_as_many_as_minimind,
    "Qwen's": lambda: like_qwen(normalizer=normalizers.NFC()),
    "Llama 3's": lambda: like_qwen(LLAMA, ignore_merges=True),
    "digit by digit": with_digits,
}


def texts():
    """Strings of Chinese, English, code, emoji and spaces, and of any characters at all."""
    source = random.Random(7)
    found = list(CASES)
    while len(found) < COUNT:
        sentence = source.choice(SENTENCES)
        start = source.randrange(len(sentence))
        found.append(sentence[start : start + source.randrange(1, 60)])
        found.append("".join(source.choices(SPECIMENS, k=source.randrange(1, 14))))
        ranges = [(32, 0x300), (0x300, 0xD800), (0xE000, 0x10000), (0x10000, 0x1FFFF)]
        found.append("".join(chr(source.randrange(*source.choice(ranges))) for _ in range(source.randrange(1, 20))))
    return found[:COUNT]


@pytest.mark.parametrize("kind", KINDS)
def test_ids_are_those_of_the_library(node, tmp_path, kind):
    tokens = KINDS[kind]()
    tokens.save(str(tmp_path / "tokenizer.json"))
    node.evaluate(OPEN, read_tokenizer(tmp_path / "tokenizer.json", tokens.get_vocab_size()).content)
    given = texts()
    expected = [one.ids for one in tokens.encode_batch(given, add_special_tokens=False)]
    found = node.evaluate("(texts) => texts.map(bpe.encode)", given)
    wrong = [text for text, one, other in zip(given, found, expected, strict=True) if one != other]
    assert wrong == []
    spelled = node.evaluate("(all) => all.map((ids) => ids.flatMap((id) => [...bpe.bytesOf(id)]))", expected)
    normal = normalizers.NFC().normalize_str if tokens.normalizer else str
    parts = [bytes(one).decode() for one in spelled]
    assert [normal(part) for part in parts] == [normal(text) for text in given]


def test_special_tokens_are_known_and_an_id_without_a_token_is_shown_as_one(node, tmp_path):
    train_tokens().save(str(tmp_path / "tokenizer.json"))
    node.evaluate(OPEN, read_tokenizer(tmp_path / "tokenizer.json", 300).content)
    found = node.evaluate("() => [bpe.isSpecial(1), bpe.isSpecial(9), new TextDecoder().decode(bpe.bytesOf(5000))]")
    assert found == [True, False, "‹5000›"]


def test_a_long_word_takes_no_long_time(node, tmp_path):
    """4,000 characters are what the page reads of a text, and Chinese without punctuation is one word."""
    tokens = train_tokens(400)
    tokens.save(str(tmp_path / "tokenizer.json"))
    node.evaluate(OPEN, read_tokenizer(tmp_path / "tokenizer.json", 400).content)
    text = "我爱编程也爱学习语言模型" * 333
    script = """(text) => {
        const before = process.cpuUsage();
        const ids = bpe.encode(text);
        const { user } = process.cpuUsage(before);
        return [ids, user / 1e6];
    }"""
    ids, seconds = node.evaluate(script, text)
    assert ids == tokens.encode(text).ids
    assert seconds < 5
