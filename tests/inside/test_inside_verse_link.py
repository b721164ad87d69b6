"""The address of a poem: what it wrote it reads, and what anybody else wrote in it is checked."""

import random

import pytest

CONFIG = {"num_hidden_layers": 3, "num_attention_heads": 4}
AT_FIRST = {"begin": "", "rhyme": "", "lines": 4, "width": 5, "seed": None, "temperature": 0.8, "silenced": []}


def read(node, address):
    return node.call("inside/verse/link", "readAddress", [address, CONFIG])


def test_what_is_written_is_read(node):
    source = random.Random(2)
    asked = [
        {
            "begin": source.choice(["", "春", "远上寒山石径斜，", "a&b=c#d%20+ \n"]),
            "rhyme": source.choice(["", "花"]),
            "lines": source.choice([4, 8]),
            "width": source.choice([5, 7]),
            "seed": source.choice([None, 0, source.randrange(2**31)]),
            "temperature": source.choice([0, 0.05, 0.8, 1.5]),
            "silenced": sorted({f"{source.randrange(3)}.{source.randrange(4)}" for _ in range(source.randrange(4))}),
        }
        for _ in range(200)
    ]
    written = node.each("inside/verse/link", "addressOf", [[one] for one in asked])
    assert [read(node, address) for address in written] == asked
    assert node.call("inside/verse/link", "addressOf", [AT_FIRST]) == "form=4x5"


@pytest.mark.parametrize(
    "address",
    [
        "", "nonsense", "form=4x6", "form=constructor", "form=4x5x7", "seed=-1", "seed=1.5", "seed=2147483648",
        "seed=x", "seed=" + "9" * 40, "heat=-1", "heat=2", "heat=x", "heat=NaN", "silent=3.0", "silent=0.4",
        "silent=0", "silent=0.0.0", "silent=a.b", "silent=_._", "__proto__=1",
    ],
)  # fmt: skip
def test_what_does_not_fit_says_nothing(node, address):
    assert read(node, address) == AT_FIRST


def test_a_head_is_silent_once(node):
    assert read(node, "silent=2.0_0.1_2.0_00.01")["silenced"] == ["0.1", "2.0"]


def test_a_text_without_end_is_cut(node):
    assert len(read(node, "begin=" + "春" * 5000)["begin"]) == 200
