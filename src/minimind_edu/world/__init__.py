"""The house: a small world in which people walk, pick up, put down and give things, told in English and Chinese.

    words       the vocabulary: words of either language and their ids
    house       the grammar, one program that writes stories and knows what may come next
    stories     batches of stories; the exact distribution and entropy of every word
    state       who is where and who holds what, read from a text without the grammar
    questions   questions with their only right answers, to judge a model by
    tables      words, sentences and weights as plain data, for the same grammar in a page

Most words of a story repeat what follows from it, which a model can only learn by keeping track. The entropy is known
exactly, and it is the least loss that any model can reach. A text begins with `<s>` and is cut at its length.
"""

from minimind_edu.world.questions import QUESTIONS, Question, questions
from minimind_edu.world.state import State, state_after
from minimind_edu.world.stories import Reader, distributions, entropies, next_word_distribution, stories, write_story
from minimind_edu.world.tables import tables
from minimind_edu.world.words import BOS, WORDS, decode, encode

__all__ = [
    "BOS",
    "QUESTIONS",
    "WORDS",
    "Question",
    "Reader",
    "State",
    "decode",
    "distributions",
    "encode",
    "entropies",
    "next_word_distribution",
    "questions",
    "state_after",
    "stories",
    "tables",
    "write_story",
]
