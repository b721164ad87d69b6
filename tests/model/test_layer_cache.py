"""Both caches of a layer give back all that was appended, and no fork overwrites another's past."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from model_builders import PROPERTY, tensor

from minimind_edu.model.for_comparison import CatCache
from minimind_edu.model.layer_cache import BufferCache

CACHES = [CatCache, BufferCache]
seeds = st.integers(0, 10_000)
cuts = st.lists(st.integers(1, 5), min_size=1, max_size=6)


def pair(length, seed=0, batch=2, heads=2, dim=4, dtype=torch.float64):
    return (
        tensor(batch, length, heads, dim, seed=seed, dtype=dtype),
        tensor(batch, length, heads, dim, seed=seed + 1, dtype=dtype),
    )


@pytest.mark.parametrize("cache_class", CACHES)
@PROPERTY
@given(lengths=cuts, capacity=st.integers(0, 30), seed=seeds)
def test_a_cache_returns_all_that_was_appended_in_order(cache_class, lengths, capacity, seed):
    key, value = pair(sum(lengths), seed)
    cache = cache_class() if cache_class is CatCache else BufferCache(capacity)
    end = 0
    for length in lengths:
        start, end = end, end + length
        got_key, got_value = cache.append(key[:, start:end], value[:, start:end])
        assert cache.length == end
        assert torch.equal(got_key, key[:, :end])
        assert torch.equal(got_value, value[:, :end])
    assert torch.equal(cache.key, key) and torch.equal(cache.value, value)


@pytest.mark.parametrize("cache", [CatCache(), BufferCache(), BufferCache(8)])
def test_a_new_cache_is_empty(cache):
    assert cache.length == 0
    assert cache.key is None and cache.value is None


def test_a_buffer_with_room_is_written_in_place():
    cache = BufferCache(capacity=10)
    first, _ = cache.append(*pair(3))
    then, _ = cache.append(*pair(1))
    assert first.data_ptr() == then.data_ptr(), "no copy was made"


def test_a_full_buffer_is_replaced_rarely():
    cache, addresses = BufferCache(), set()
    for _ in range(200):
        key, _ = cache.append(*pair(1))
        addresses.add(key.untyped_storage().size())
    assert cache.length == 200
    assert len(addresses) <= 9, "200 positions need about log2(200) buffers, each larger"


def test_what_a_cache_returned_is_not_changed_by_later_appends():
    cache = BufferCache(capacity=10)
    key, _ = cache.append(*pair(3))
    kept = key.clone()
    for seed in range(5):
        cache.append(*pair(1, seed))
    assert torch.equal(key, kept)


@pytest.mark.parametrize("way", ["append", "reserve"])
@PROPERTY
@given(lengths=cuts, steps=st.lists(st.tuples(st.integers(0, 4), st.integers(0, 3)), max_size=12), seed=seeds)
def test_forks_never_overwrite_each_other(way, lengths, steps, seed):
    """Any tree of forks, continued in any order: each holds what was appended along its own branch."""
    caches, expected = [BufferCache(capacity=4)], [[]]
    for number, (which, length) in enumerate([(0, n) for n in lengths] + steps):
        which %= len(caches)
        if length == 0:
            caches.append(caches[which].fork())
            expected.append(list(expected[which]))
            continue
        new = pair(length, seed + 10 * number)
        if way == "append" or caches[which].length == 0:
            caches[which].append(*new)
        else:
            for buffer, part in zip(caches[which].reserve(length), new, strict=True):
                buffer[:, caches[which].length - length : caches[which].length] = part
        expected[which].append(new)
    for cache, appended in zip(caches, expected, strict=True):
        if appended:
            keys, values = zip(*appended, strict=True)
            assert torch.equal(cache.key, torch.cat(keys, dim=1))
            assert torch.equal(cache.value, torch.cat(values, dim=1))


def test_reserved_room_is_the_buffer_itself_until_it_is_full():
    cache = BufferCache(capacity=6)
    cache.append(*pair(4))
    keys, values = cache.reserve(2)
    assert keys.shape == values.shape == (2, 6, 2, 4) and cache.length == 6
    assert keys.data_ptr() == cache.key.data_ptr() and values.data_ptr() == cache.value.data_ptr()
    keys[:, 4:] = 0
    before = cache.key.clone()
    keys, _ = cache.reserve(1)
    assert cache.capacity == keys.shape[1] == 14 and torch.equal(keys[:, :6], before)


def test_a_fork_of_an_empty_cache_makes_as_much_room():
    cache = BufferCache(capacity=40).fork()
    cache.append(*pair(4))
    assert cache.capacity == 40


def test_two_who_reserve_the_same_position_each_get_their_own():
    first = BufferCache(capacity=8)
    first.append(*pair(2))
    second = first.fork()
    first.reserve(1)[0][:, 2] = 1.0
    second.reserve(1)[0][:, 2] = 2.0
    assert (first.key[:, 2] == 1.0).all() and (second.key[:, 2] == 2.0).all()
    assert torch.equal(first.key[:, :2], second.key[:, :2])


def test_writing_into_reserved_room_disturbs_no_gradient():
    past = BufferCache(capacity=4)
    key, _ = past.append(*pair(2))
    query = torch.ones_like(key, requires_grad=True)
    product = query * key  # autograd keeps the view of the past that it will need
    past.fork().reserve(1)[0][:, 2:3] = 7.0
    product.sum().backward()
    assert torch.equal(query.grad, key)


def test_holding_does_not_write_into_the_tensors_it_was_given():
    key, value = pair(5)
    before = key.clone()
    window = (key[:, :3], value[:, :3])  # there is memory behind these views, but it is not the cache's
    cache = BufferCache.holding(*window)
    cache.append(*pair(2, seed=9))
    assert torch.equal(key, before)
    assert cache.length == 5


@pytest.mark.parametrize("cache_class", CACHES)
def test_rejects_keys_that_do_not_continue_the_cache(cache_class):
    cache = cache_class()
    cache.append(*pair(3))
    message = (
        r"the cache holds \[B, T, K, D\] = \[2, 3, 2, 4\], which new keys of shape \[2, 1, 4, 4\] do not continue: "
        "only the second axis, positions, may differ"
    )
    with pytest.raises(ValueError, match=message):
        cache.append(*pair(1, heads=4))
    assert cache.length == 3


@pytest.mark.parametrize("cache_class", CACHES)
def test_rejects_keys_of_another_dtype(cache_class):
    cache = cache_class()
    cache.append(*pair(3))
    message = (
        "the cache holds torch.float64 on cpu, but the new keys are torch.float32 on cpu; "
        "convert the model before the first call"
    )
    with pytest.raises(ValueError, match=message):
        cache.append(*pair(1, dtype=torch.float32))


@pytest.mark.parametrize("cache_class", CACHES)
def test_rejects_values_that_do_not_go_with_the_keys(cache_class):
    message = r"must both be \[B, S, K, D\], got \[2, 3, 2, 4\] and \[2, 2, 2, 4\]"
    with pytest.raises(ValueError, match=message):
        cache_class().append(pair(3)[0], pair(2)[1])
    with pytest.raises(ValueError, match=r"must both be \[B, S, K, D\], got \[3, 2, 4\]"):
        cache_class().append(torch.zeros(3, 2, 4), torch.zeros(3, 2, 4))


@pytest.mark.parametrize("cache_class", CACHES)
@pytest.mark.parametrize("other", [torch.int64, torch.float16, "meta"])
@pytest.mark.parametrize("past", [0, 3])
def test_rejects_values_of_another_dtype_or_device(cache_class, other, past):
    """Joined with the old ones, they would convert the values of the whole past."""
    cache = cache_class()
    if past:
        cache.append(*pair(past, dtype=torch.float32))
    key, value = pair(1, dtype=torch.float32)
    with pytest.raises(ValueError, match="keys and values must have one dtype and device, got torch.float32 on cpu"):
        cache.append(key, value.to(other))
    assert cache.length == past


@pytest.mark.parametrize("count", [-1, 1.5])
def test_rejects_room_for_fewer_positions_than_there_are(count):
    cache = BufferCache()
    cache.append(*pair(3))
    with pytest.raises(ValueError, match=f"count must be a whole number of at least 0, got {count}"):
        cache.reserve(count)
    assert cache.length == 3


def test_rejects_a_capacity_below_zero():
    with pytest.raises(ValueError, match="capacity must be a whole number of at least 0, got -1"):
        BufferCache(-1)


def test_an_empty_cache_has_nothing_to_reserve_room_for():
    with pytest.raises(ValueError, match="an empty cache has no shapes to reserve room for: append the prompt's keys"):
        BufferCache(8).reserve(1)
