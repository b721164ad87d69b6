"""tools.answers: what checks answer is found in their code, and its Chinese is whole and no more."""

from tools.answers import complaints, files, is_sentence, of_checks, texts_in

SOURCE = '''"""A docstring of words."""
KEPT = "you changed it; " "return a copy"


def problem(x):
    """Another docstring."""
    return f"there are {len(x)} blocks, {'not' if x else 'no'} more" if x else None


check = Exercise(
    "Is `attempt(x)` a question of words?",
    cases=(Case("one word", ("word",)), Case("x", ("a", 1)), Property("float64 stays", problem)),
    mistakes=(Mistake(problem, "first line\\n  second line"),),
)
'''


def test_sentences_are_strings_of_words_but_docstrings_and_questions():
    assert sorted(filter(is_sentence, texts_in(SOURCE))) == [
        "first line",
        "float64 stays",
        "one word",
        "second line",
        "there are {} blocks, {} more",
        "you changed it; return a copy",
    ]


def test_what_is_missing_superfluous_or_filled_otherwise_is_told():
    pairs = {"one word": "一个词", "gone by now": "没了", "{} blocks": "几个块", "{} of {}": "{1} 里的"}
    assert list(complaints(["one word", "{} blocks", "{} of {}", "two words", "name"], pairs)) == [
        "lacks 'two words'",
        "is answered no more: 'gone by now'",
        "has other places to fill: '几个块'",
    ]
    assert list(complaints(["{} of {}"], {"{} of {}": "{2} 里的"})) == ["has other places to fill: '{2} 里的'"]


def test_every_file_belongs_to_checks_and_is_whole():
    assert len(files()) > 1
    assert {path.name: wrong for path, _, wrong in of_checks() if wrong} == {}
