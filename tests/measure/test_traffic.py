"""traffic: bytes that must move, for operations whose traffic can be counted by hand."""

import torch

from minimind_edu.measure.traffic import Traffic
from minimind_edu.model.attention import attention, fast_attention, repeat_kv


def moved(call):
    with Traffic() as traffic:
        call()
    return traffic.read, traffic.written


def test_an_operation_reads_its_inputs_and_writes_its_result():
    a, b = torch.zeros(3, 4), torch.zeros(4, 5)
    assert moved(lambda: a @ b) == (4 * (12 + 20), 4 * 15)
    assert moved(lambda: a + 1) == (48, 48)


def test_a_view_moves_nothing_and_what_it_repeats_is_read_once():
    x = torch.zeros(1, 6, 2, 4)
    assert moved(lambda: x.transpose(1, 2)[:, :, :, None].expand(1, 2, 6, 3, 4)) == (0, 0)
    assert moved(lambda: repeat_kv(x, 3)) == (x.nbytes, 3 * x.nbytes)


def test_writing_in_place_is_writing():
    x, y = torch.zeros(8), torch.ones(1)
    assert moved(lambda: x.copy_(y)) == (4, 32)


def test_an_operation_with_several_results_writes_them_all():
    assert moved(lambda: torch.zeros(2, 5).max(dim=1))[1] == 40 + 2 * (4 + 8)


def test_a_decode_step_repeats_or_groups():
    q, k, v = torch.randn(1, 1, 8, 16), torch.randn(1, 64, 2, 16), torch.randn(1, 64, 2, 16)
    kept = k.nbytes + v.nbytes
    read, written = moved(lambda: attention(q, k, v, None))
    assert read > 5 * kept and written > 4 * kept
    read, written = moved(lambda: fast_attention(q, k, v, None))
    assert kept < read < 1.5 * kept and written < kept
