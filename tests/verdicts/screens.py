"""The screens and the curve that the book shows of `minimind-edu check`: what the command says of files made here.

python tests/verdicts/screens.py    writes them anew, in both languages, into book/screens
"""

import argparse
import random
import sys
import tempfile
from pathlib import Path

sys.path[:0] = [str(Path(__file__).parents[1]), str(Path(__file__).parent)]

from situations import chat, curve, write_log, write_merged, write_rows  # noqa: E402
from tokenizer_builders import train_tokens, write_tokenizer  # noqa: E402

from minimind_edu.hf import export  # noqa: E402
from minimind_edu.trained import living  # noqa: E402
from minimind_edu.verdicts import command  # noqa: E402
from minimind_edu.verdicts.verdict import as_html  # noqa: E402

SCREENS = Path(__file__).parents[2] / "book" / "screens"


def file(folder):
    """The book's own model as a folder for transformers."""
    return [export(living.living_model(), folder / "MyMiniMind")]


def log(folder):
    """SFT that was resumed: 1.5 before, 3.7 some lines after."""
    source = random.Random(3)
    before = curve((0, 2.2), (8000, 1.5), noise=0.1)
    after = [(8100, 1.52), (8200, 1.6), *((8300 + 100 * n, 3.7 + source.gauss(0, 0.1)) for n in range(18))]
    places = [*before, "Epoch [1/1]: 跳过前8000个step，从step 8001开始", *after]
    return ["--log", write_log(folder / "full_sft.log", places, form="2026", rate=1e-5, iterations=20000)]


def dpo(folder):
    """DPO that stands at ln 2."""
    places = curve((0, 0.6931), (5000, 0.6930), noise=0.0004)
    return ["--log", write_log(folder / "dpo.log", places, form="2026", rate=4e-8, dpo_loss=None, iterations=20000)]


def lora(folder):
    """A LoRA that was merged twice."""
    return write_merged(folder, times=2)


def data(folder):
    """Conversations, one of which asks so much that its answer is cut away."""
    rows = [chat("我爱编程，你呢？", "我爱学习语言模型。") for _ in range(7)]
    rows += [chat("谁在厨房？" * 30), chat("我爱编程", "我也爱编程。<|im_end|>")]
    texts = [message["content"] for row in rows for message in row["conversations"]]
    write_tokenizer(folder / "model", train_tokens(400, [*texts, "user assistant"] * 3))
    return ["--data", write_rows(folder / "sft.jsonl", rows), "--tokenizer", folder / "model", "--max-length", 48]


EXAMPLES = {made.__name__: made for made in (file, log, dpo, lora, data)}


def name_of(example, language, suffix="html"):
    return f"{example}.zh.{suffix}" if language == "zh" else f"{example}.{suffix}"


def shown(example, language, folder, *more):
    """What the command says, as the page shows it."""
    parser = argparse.ArgumentParser()
    command.add_arguments(parser)
    given = parser.parse_args([*map(str, EXAMPLES[example](folder)), "--language", language, *map(str, more)])
    return as_html(command.groups_of(given, Path, lambda told: None), language)


def main():
    for language in ("en", "zh"):
        for example in EXAMPLES:
            with tempfile.TemporaryDirectory() as folder:
                more = ("--picture", SCREENS / name_of("curve", language, "svg")) if example == "log" else ()
                text = shown(example, language, Path(folder), *more)
            (SCREENS / name_of(example, language)).write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
