"""The heads that figures open first are found in the card: another training has others."""

import pytest
import torch

from minimind_edu.web.living_model import payload

HEADS = payload()["heads"]


def at(table) -> dict[str, int]:
    """Where a table [L, H] is largest."""
    layer, head = divmod(int(table.argmax()), table.shape[1])
    return {"layer": layer, "head": head}


@pytest.mark.parametrize("kind", HEADS["reading"])
def test_the_telling_head_reads_the_answer_and_is_missed(node, kind):
    lost, reading = (torch.tensor(HEADS[part][kind]) for part in ("lost_without", "reading"))
    assert node.call("web/live/heads", "tellingHead", [HEADS, kind]) == at(lost * reading)


def test_the_missed_head_is_needed_to_remember_and_not_to_translate(node):
    recall, translation = (torch.tensor(HEADS["lost_without"][kind]) for kind in ("recall", "translation"))
    assert node.call("web/live/heads", "missedHead", [HEADS]) == at(recall * (1 - translation))
