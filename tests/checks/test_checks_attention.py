"""checks.attention: right answers in other words pass, and what a comparison of results cannot show is noticed."""

import math

import torch
import torch.nn.functional as F
from judged_answers import judged

from minimind_edu import checks


def head_by_rows(query, key, value):
    rows = []
    for s in range(len(query)):
        scores = key[: s + 1] @ query[s] / len(query[s]) ** 0.5
        powers = (scores - scores.max()).exp()
        rows.append(powers / powers.sum() @ value[: s + 1])
    return torch.stack(rows)


def head_by_pytorch(query, key, value):
    return F.scaled_dot_product_attention(query[None], key[None], value[None], is_causal=True)[0]


def visible_by_comparing(attention_mask):
    places = torch.arange(attention_mask.shape[1])
    return ((places <= places[:, None]) & (attention_mask[:, None, :] == 1))[:, None]


def heads_one_by_one(query, key, value, num_heads):
    parts = zip(*(x.chunk(num_heads, -1) for x in (query, key, value)), strict=True)
    return torch.cat([F.scaled_dot_product_attention(*part, is_causal=True) for part in parts], dim=-1)


def heads_by_view(query, key, value, num_heads):
    batch, length, width = query.shape
    q, k, v = (x.view(batch, length, num_heads, width // num_heads).transpose(1, 2) for x in (query, key, value))
    out = F.scaled_dot_product_attention(q, k, v, is_causal=True)
    return out.transpose(1, 2).reshape(batch, length, width)


def softmax_by_powers(scores, mask):
    powers = (scores - scores.amax(-1, keepdim=True)).exp() * mask
    return powers / powers.sum(-1, keepdim=True).clamp(min=1e-300)


def divisors_by_logs(scores, weights):
    gaps, logs = scores[..., 1:] - scores[..., :1], weights[..., 1:].log() - weights[..., :1].log()
    return gaps / logs


def softmax_by_nan_to_num(scores, mask):
    return torch.where(mask, scores, -math.inf).softmax(-1).nan_to_num(0.0)


def lead_by_logits(written, gain, table, new, old):
    stream = written.sum(0)
    logits = table @ (gain[:, None] * written.T / stream.norm() * len(gain) ** 0.5)  # [V, W]
    return logits[new] - logits[old]


RIGHT = [
    (checks.check_causal_head, head_by_rows),
    (checks.check_causal_head, head_by_pytorch),
    (checks.check_visible, visible_by_comparing),
    (checks.check_multi_head, heads_one_by_one),
    (checks.check_multi_head, heads_by_view),
    (checks.check_masked_softmax, softmax_by_powers),
    (checks.check_masked_softmax, softmax_by_nan_to_num),
    (checks.check_divisors, divisors_by_logs),
    (checks.check_lead, lead_by_logits),
]


def softmax_without_a_maximum(scores, mask):
    powers = scores.exp() * mask
    return powers / powers.sum(-1, keepdim=True).clamp(min=1e-9)


def softmax_of_finite_scores(scores, mask):
    return scores.masked_fill(~mask, -math.inf).nan_to_num().softmax(-1)


def head_by_plain_powers(query, key, value):
    powers = (query @ key.T / math.sqrt(query.shape[-1])).exp().tril()
    return powers / powers.sum(-1, keepdim=True) @ value


def head_divided_by_the_width(query, key, value):
    return head_by_pytorch(query / math.sqrt(query.shape[-1]), key, value)


def visible_to_add(attention_mask):
    hidden = ~visible_by_comparing(attention_mask)
    return torch.zeros(hidden.shape).masked_fill(hidden, -math.inf)


def visible_to_add_as_in_minimind(attention_mask):
    """Two masks in one sum, as MiniMind adds them to its scores: a key hidden by either has another number."""
    length = attention_mask.shape[1]
    future = torch.full((length, length), -math.inf).triu(1)
    return future + (1 - attention_mask[:, None, None].float()) * -1e9


def hidden_by_triu(attention_mask):
    """True where a key is hidden, which is what masked_fill takes."""
    length = attention_mask.shape[1]
    return torch.ones(length, length).triu(1).bool() | (attention_mask == 0)[:, None, None]


def heads_of_scattered_channels(query, key, value, num_heads):
    """Head i has the channels i, i + H, i + 2H."""
    q, k, v = (x.unflatten(-1, (-1, num_heads)).permute(0, 3, 1, 2) for x in (query, key, value))
    return F.scaled_dot_product_attention(q, k, v, is_causal=True).permute(0, 2, 3, 1).flatten(2)


def heads_of_scattered_channels_joined_head_by_head(query, key, value, num_heads):
    q, k, v = (x.unflatten(-1, (-1, num_heads)).permute(0, 3, 1, 2) for x in (query, key, value))
    return F.scaled_dot_product_attention(q, k, v, is_causal=True).transpose(1, 2).flatten(2)


def lead_of_normed_writers(written, gain, table, new, old):
    normed = F.rms_norm(written, written.shape[-1:], gain)
    return normed @ table[new] - normed @ table[old]


def lead_in_shares(written, gain, table, new, old):
    """Which part of the whole lead each has written."""
    lead = lead_by_logits(written, gain, table, new, old)
    return lead / lead.sum()


WRONG = [
    (checks.check_causal_head, head_by_plain_powers, "subtract the row's largest score"),
    (checks.check_causal_head, head_divided_by_the_width, "by head_dim itself"),
    (checks.check_visible, visible_to_add, "numbers to add to scores"),
    (checks.check_visible, visible_to_add_as_in_minimind, "numbers to add to scores"),
    (checks.check_visible, hidden_by_triu, "yours is True where a key is hidden"),
    (checks.check_visible, lambda mask: {"visible": visible_by_comparing(mask)}, "got dict"),
    (checks.check_visible, lambda mask: visible_by_comparing(mask)[:, 0].float(), "has shape [2, 4, 4]"),
    (checks.check_visible, lambda mask: -1e9 * ~visible_by_comparing(mask), "numbers to add to scores"),
    (checks.check_multi_head, heads_of_scattered_channels, "neighboring channels"),
    (checks.check_multi_head, heads_of_scattered_channels_joined_head_by_head, "neighboring channels"),
    (checks.check_visible, lambda mask: visible_by_comparing(mask).int(), "True and False, not torch.int32"),
    (checks.check_masked_softmax, softmax_without_a_maximum, "subtract the row's largest score"),
    (checks.check_masked_softmax, softmax_of_finite_scores, "all keys tie"),
    (checks.check_lead, lead_of_normed_writers, "by its own size"),
    (checks.check_lead, lambda *given: lead_by_logits(*given).sum(), "has shape []"),
    (checks.check_lead, lead_in_shares, "shares of the lead"),
]


test_a_right_answer_passes, test_a_wrong_answer_gets_the_hint_that_fits = judged(RIGHT, WRONG)
