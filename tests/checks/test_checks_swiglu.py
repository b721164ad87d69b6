"""checks.swiglu: right answers in other words pass, and what a comparison of results cannot show is noticed."""

import torch
import torch.nn.functional as F
from judged_answers import judged

from minimind_edu import checks
from minimind_edu.model.feed_forward import FeedForward


def swiglu_by_exponentials(x, gate, up, down):
    z = F.linear(x, gate)
    return F.linear(z / (1 + (-z).exp()) * F.linear(x, up), down)


def swiglu_by_the_package(x, gate, up, down):
    network = FeedForward(x.shape[-1], len(gate)).double()
    weights = {"gate_proj.weight": gate, "up_proj.weight": up, "down_proj.weight": down}
    network.load_state_dict(weights)
    return network(x)


def swiglu_by_silu(x, gate, up, down):
    return (torch.nn.SiLU()(x @ gate.T) * (x @ up.T)) @ down.T


def swiglu_by_glu(x, gate, up, down):
    return (F.glu(torch.cat([x @ up.T, x @ gate.T], dim=-1)) * (x @ gate.T)) @ down.T


def squares_the_other_way():
    return [[2, -2], [-2, 2]], [[1, 1], [1, 1]], [[0.5, -0.5]]


def alone_by_gradients(part, x):
    slopes = torch.autograd.functional.jacobian(part, x).norm(dim=(1, 3))  # [S, S]
    return bool(torch.all(slopes - slopes.diag().diag() == 0))


def pruned_by_single_outputs(x, gate, up, down):
    sizes = []
    for i in range(len(gate)):
        one = F.linear(F.silu(F.linear(x, gate[i : i + 1])) * F.linear(x, up[i : i + 1]), down[:, i : i + 1])
        sizes.append(one.norm(dim=-1).sum())
    kept = sorted(range(len(gate)), key=lambda i: sizes[i])[1:]
    kept.sort()
    return gate[kept], up[kept], down[:, kept]


def alone_by_adding_unequal_numbers(part, x):
    return alone_by_adding(torch.arange(1.0, x.shape[1] + 1))(part, x)


RIGHT = [
    (checks.check_swiglu, swiglu_by_exponentials),
    (checks.check_squares, squares_the_other_way),
    (checks.check_alone, alone_by_gradients),
    (checks.check_alone, alone_by_adding_unequal_numbers),
    (checks.check_pruned, pruned_by_single_outputs),
]


def product():
    return [[1, 0], [-1, 0]], [[0, 1], [0, 1]], [[1, -1]]


def four_neurons():
    return torch.ones(4, 2), torch.ones(4, 2), torch.ones(1, 4)


def zeroed(x, gate, up, down):
    kept = torch.cat([gate[:1] * 0, gate[1:]])
    return kept, up, down


def pruned_by(score):
    def pruned(x, gate, up, down):
        lengths = (F.silu(x @ gate.T) * (x @ up.T)).abs() * down.norm(dim=0)  # [S, I]
        kept = torch.arange(len(gate)) != score(lengths).argmin()
        return gate[kept], up[kept], down[:, kept]

    return pruned


def alone_by_adding(number):
    """A position on its own changes none of the others, as far as this number in all its channels shows."""

    def alone_by_adding(part, x):
        for n in range(len(x)):
            other = x.clone()
            other[n] += number
            same = torch.isclose(part(other), part(x)).all(-1)
            same[n] = True
            if not same.all():
                return False
        return True

    return alone_by_adding


WRONG = [
    (checks.check_swiglu, swiglu_by_the_package, "to be solved without silu"),
    (checks.check_swiglu, swiglu_by_silu, "to be solved without silu"),
    (checks.check_swiglu, swiglu_by_glu, "to be solved without glu"),
    (checks.check_pruned, pruned_by(lambda lengths: lengths.pow(2).mean(0).sqrt()), "you average squares"),
    (checks.check_pruned, pruned_by(lambda lengths: lengths.amax(0)), "you take the largest length"),
    (checks.check_squares, product, "this is a · b"),
    (checks.check_squares, four_neurons, "two neurons have"),
    (checks.check_pruned, zeroed, "gate: the answer has shape [9, 4], expected [8, 4]"),
    (checks.check_alone, lambda part, x: True, "change one position and look at the others"),
    (checks.check_alone, alone_by_adding(1), "change them by unequal numbers"),
    (checks.check_alone, alone_by_adding(0.5), "change them by unequal numbers"),
]


test_a_right_answer_passes, test_a_wrong_answer_gets_the_hint_that_fits = judged(RIGHT, WRONG)


def test_no_design_yet_is_not_an_error(capsys):
    assert checks.check_squares(lambda: None) is False
    assert "not attempted yet" in capsys.readouterr().out
