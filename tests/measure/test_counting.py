"""Operations, calls and bytes that PyTorch's own routines are known to need."""

import torch
import torch.nn.functional as F

from minimind_edu.measure.counting import Watch, count_operations


def test_a_product_takes_two_operations_for_each_multiply_add():
    operations, result = count_operations(F.linear, torch.ones(3, 5), weight=torch.ones(7, 5))
    assert operations == 2 * 3 * 5 * 7
    assert torch.equal(result, torch.full((3, 7), 5.0))


def test_attention_is_counted_by_its_two_products():
    heads = torch.ones(1, 2, 4, 6)  # [B, H, S, D]
    operations, _ = count_operations(F.scaled_dot_product_attention, heads, heads, heads)
    assert operations == 2 * (2 * 2 * 4 * 4 * 6)


def test_calls_have_names_and_only_new_tensors_are_written():
    x = torch.ones(4, 8)
    with torch.no_grad(), Watch() as watch:
        (x.t() + 1).t().view(-1)
    assert watch.calls == {"t": 2, "add": 1, "view": 1}
    assert watch.written == x.nbytes


def test_of_several_results_the_first_counts():
    x = torch.ones(4, 8)
    with torch.no_grad(), Watch() as watch:
        F.layer_norm(x, (8,))
    assert watch.calls.total() == 1
    assert watch.written == x.nbytes


def test_what_is_no_tensor_is_not_written():
    with Watch() as watch:
        torch.ones(3).sum().item()
    assert watch.written == 3 * 4 + 4
