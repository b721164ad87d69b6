"""The page's BPE gives the ids of the tokenizers library, and writes the text that it writes."""

import json
import random

import pytest
from cases import long_after
from tokenizer_builders import (
    PATTERNS,
    SENTENCES,
    SPECIAL,
    random_tokenizer,
    train_as_many_as_minimind,
    train_tokens,
    wild_texts,
)
from tokenizers import Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, trainers

from minimind_edu.inside.page import CASES
from minimind_edu.inside.tokenizer import compared_texts, read_tokenizer

COUNT = 5000
OPEN = """async (content) => {
    globalThis.bpe = (await import("/inside/bpe.js")).createBpe(content);
}"""
# What tokenizers get wrong: spaces of all kinds, marks, digits of all scripts, halves of emoji, contractions, markup.
SPECIMENS = """😀 👨‍👩‍👧‍👦 🇨🇳 👍🏽 ❤️ é e\u0301 ñ ß İ ſ K Ⅷ ² ½ ① ٣ ० 한국어 日本語 ไทย हिन्दी العربية
's 'S ’s 'LL don't I'M １２３ 123456 3.14e-5
， 。 “ ” … —— 中文 你好 𠮷 𝒳 a Z _ $ € ™ <|im_start|> <|im_end|> <|im_start |>
<|im_start|>a <script> &amp; \\ / " { } [ ]""".split()
SPECIMENS += [*"\u200b\u00a0\u3000\ufeff\u2028\x00\x85\x1c\t\r\n ", "  ", "   ", "\r\n"]


def like_qwen(pattern=PATTERNS["Qwen"], normalizer=None, ignore_merges=False):
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
    "Qwen's": lambda: like_qwen(normalizer=normalizers.NFC()),
    "as large as MiniMind's": train_as_many_as_minimind,
    "Llama 3's": lambda: like_qwen(PATTERNS["Llama 3"], ignore_merges=True),
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


@pytest.mark.parametrize("kind", long_after(2, KINDS))
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


BOTH_WAYS = """async ([content, around, texts, lists]) => {
    const { createBpe } = await import("/inside/bpe.js");
    const { idsOf } = await import("/inside/field.js");
    const bpe = createBpe(content);
    return [texts.map((text) => idsOf(around, bpe, text)), lists.map(bpe.decode)];
}"""


def unlike(node, folder, source, count, each):
    """[tokenizer, text or ids, the page's, the library's] where they differ, and how many tokenizers were refused."""
    wrong, refused = [], 0
    file = folder / "tokenizer.json"
    for number in range(count):
        file.write_text(json.dumps(random_tokenizer(source), ensure_ascii=False), encoding="utf-8")
        try:
            read = read_tokenizer(file, 5000)
        except ValueError as error:
            assert "which the page does not know" in str(error)
            refused += 1
            continue
        library = Tokenizer.from_file(str(file))
        library.no_truncation()
        texts = wild_texts(source, each)
        expected = [one.ids for one in library.encode_batch(texts)]
        known = [id for id in range(library.get_vocab_size()) if library.id_to_token(id) is not None]
        lists = expected + [source.choices(known, k=source.randrange(8)) for _ in range(each // 3)]
        written = [library.decode(ids, skip_special_tokens=False) for ids in lists]
        around = {"prefix": read.prefix, "suffix": read.suffix}
        found, decoded = node.evaluate(BOTH_WAYS, [read.content, around, texts, lists])
        triples = [*zip(texts, found, expected, strict=True), *zip(lists, decoded, written, strict=True)]
        wrong += [[number, *triple] for triple in triples if triple[1] != triple[2]][:1]
    return wrong, refused


@pytest.mark.timeout(600)
def test_any_tokenizer_that_is_read_is_the_library_s(node, tmp_path, request):
    """Of random ones, over bytes and with bytes to fall back on; texts and ids are random, too."""
    count, each = (160, 400) if request.config.getoption("--all") else (20, 60)
    wrong, refused = unlike(node, tmp_path, random.Random(5), count, each)
    assert wrong == []
    assert refused < count / 10


CHARACTER = {"empty": "", "one": Regex("."), "one or the end of a line": Regex(r"[\s\S]")}


@pytest.mark.parametrize("pattern", CHARACTER)
def test_a_vocabulary_of_single_characters_is_read_as_the_library_reads_it(node, tmp_path, pattern):
    """As a model of verse has one: each character a token, all others one that is unknown, spaces too."""
    vocab = {token: id for id, token in enumerate(["<s>", "</s>", "[UNK]", *sorted(set("，。天地玄黄宇宙洪荒ab"))])}
    tokens = Tokenizer(models.WordLevel(vocab, unk_token="[UNK]"))
    tokens.pre_tokenizer = pre_tokenizers.Split(CHARACTER[pattern], "isolated")
    tokens.decoder = decoders.Fuse()
    tokens.add_special_tokens(["<s>", "</s>"])
    tokens.save(str(tmp_path / "tokenizer.json"))
    read = read_tokenizer(tmp_path / "tokenizer.json", len(vocab))
    given = ["天地玄黄，宇宙洪荒。", "<s>天 地</s>", "a\nb", "日月", "", *wild_texts(random.Random(3), 300)]
    expected = [one.ids for one in tokens.encode_batch(given)]
    around = {"prefix": read.prefix, "suffix": read.suffix}
    found, decoded = node.evaluate(BOTH_WAYS, [read.content, around, given, expected])
    assert found == expected
    assert decoded == [tokens.decode(ids, skip_special_tokens=False) for ids in expected]
    assert decoded[0] == given[0] and expected[3] == [2, 2]
    compared = {id for _, ids in compared_texts(tmp_path / "tokenizer.json", []) for id in ids}
    assert compared == set(vocab.values())


def test_half_a_character_is_read_as_the_sign_for_what_is_broken(node, tmp_path):
    """A text that is cut after so many letters may end in one."""
    tokens = train_tokens()
    tokens.save(str(tmp_path / "tokenizer.json"))
    node.evaluate(OPEN, read_tokenizer(tmp_path / "tokenizer.json", 300).content)
    found = node.evaluate(r"() => bpe.encode('ab \ud83d')")
    assert found == tokens.encode("ab \ufffd").ids


def test_special_tokens_are_known_and_an_id_without_a_token_is_shown_as_one(node, tmp_path):
    train_tokens().save(str(tmp_path / "tokenizer.json"))
    node.evaluate(OPEN, read_tokenizer(tmp_path / "tokenizer.json", 300).content)
    found = node.evaluate("() => [bpe.isSpecial(1), bpe.isSpecial(9), new TextDecoder().decode(bpe.bytesOf(5000))]")
    assert found == [True, False, "‹5000›"]


@pytest.mark.parametrize("how", ["bytes", "without a split"])
def test_a_long_word_takes_no_long_time(node, tmp_path, how):
    """4,000 characters are what the page reads of a text, and Chinese without punctuation is one word."""
    tokens = train_tokens(400)
    if how != "bytes":
        tokens.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
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
