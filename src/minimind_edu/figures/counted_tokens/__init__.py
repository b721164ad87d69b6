"""CountedTokens: a chat as one row of tokens, which of them count, and what a model learns that is fine-tuned so.

Nothing is trained here: every mask and every shift is a training that `python -m minimind_edu.trained.tuning` ran and
stored, with the loss of each token of this chat, what the model answered, and how many new chats it had right.
"""

from functools import cache
from typing import Any

from traitlets import Bunch, Dict, Enum, Int, TraitError, default, validate

from minimind_edu.trained.tuning import AHEAD, EXAMPLE_LENGTH, LOOKS, MASKS, SHIFTED, WORDS, example, rows, runs
from minimind_edu.web.base import Figure

STAGES = ("chat", "template", "ids", "labels", "loss", "padding", "future")
PROMPT = len(example().prompt)
TENTHS = 10  # a loss is stored as whole tenths of a nat


class CountedTokens(Figure):
    """Choose what counts, and train; or build the row stage by stage.

    Args:
        shows: `masks`, what counts and what is learned from it; `shift`, with labels that are shifted wrongly as well;
            `row`, how the row is made.
        mask: what counts, one of `minimind_edu.trained.tuning.MASKS`; with `shift` one of SHIFTED.
        ahead: a label is the token so far ahead, 0, 1 or 2.
        trained: steps of fine-tuning, one of `minimind_edu.trained.tuning.LOOKS`.
        stage: of the row, one of STAGES by number, from 0.
        reader: in the last stage the token that reads, from 0.

    Raises:
        TraitError: for another value, or wrongly shifted labels where the figure has no switch for them.
    """

    _repr_traits = ("shows", "mask", "ahead", "trained")

    shows = Enum(("masks", "shift", "row"), default_value="masks").tag(sync=True)
    mask = Enum(MASKS, default_value="answer").tag(sync=True)
    ahead = Enum(AHEAD, default_value=1).tag(sync=True)
    trained = Enum(LOOKS, default_value=0).tag(sync=True)
    stage = Int(0, min=0, max=len(STAGES) - 1).tag(sync=True)
    reader = Int(PROMPT - 1, min=0, max=EXAMPLE_LENGTH - 1).tag(sync=True)
    stored = Dict(read_only=True).tag(sync=True)

    @validate("ahead")
    def _with_a_switch(self, proposal: Bunch) -> int:
        if self.shows != "shift" and proposal["value"] != 1:
            raise TraitError(f"labels are one ahead with shows={self.shows!r}, got ahead={proposal['value']}")
        return proposal["value"]

    @validate("mask")
    def _trained_with_each_shift(self, proposal: Bunch) -> str:
        if self.shows == "shift" and proposal["value"] not in SHIFTED:
            raise TraitError(f"shows='shift' has the masks {' and '.join(SHIFTED)}, got mask={proposal['value']!r}")
        return proposal["value"]

    @default("stored")
    def _stored(self) -> dict[str, Any]:
        return pictured()

    def _summary(self) -> tuple[str, list[tuple[str, str]]]:
        run, at = self.stored["runs"][self.mask][str(self.ahead)], LOOKS.index(self.trained)
        lines = [
            ("right place, of 200 new chats", f"{run['place'][at]} %"),
            ("stops after it", f"{run['stop'][at]} %"),
        ]
        return f"A chat of {EXAMPLE_LENGTH} tokens, after {self.trained} steps of fine-tuning.", lines


@cache
def pictured() -> dict[str, Any]:
    """The chat, and of the book's model every run: losses in tenths, answers as words, shares in percent."""
    ids = rows([example()], EXAMPLE_LENGTH)[0].tolist()
    found: dict[str, Any] = {mask: {} for mask in MASKS}
    for run in runs()["masks"]:
        if run["model"] == "living":
            found[run["mask"]][str(run["ahead"])] = {
                "losses": [[round(TENTHS * loss) for loss in look] for look in run["losses"]],
                "says": [[WORDS[i] for i in answer] for answer in run["says"]],
                **{name: [int(f"{share:.0%}"[:-1]) for share in run[name]] for name in ("place", "stop")},
            }
    return {"words": [WORDS[i] for i in ids], "ids": ids, "prompt": PROMPT, "looks": list(LOOKS), "runs": found}
