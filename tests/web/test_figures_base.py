"""The base of all figures: two forms of output, JSON that repeats byte for byte, and traits that keep their bounds."""

import pytest
import torch
import traitlets
from figure_examples import Probe, state_in
from IPython.core.formatters import DisplayFormatter

from minimind_edu import figures
from minimind_edu.figures import Figure, cache_stepper, class_of, figure_names, module_source, residual_stream
from minimind_edu.web.base import rounded


def bundle(figure: Figure) -> dict:
    """What a kernel would store for the figure."""
    return DisplayFormatter().format(figure)[0]


@pytest.fixture
def static(monkeypatch):
    monkeypatch.setenv("MINIMIND_EDU_STATIC", "1")


@pytest.fixture
def live(monkeypatch):
    monkeypatch.delenv("MINIMIND_EDU_STATIC", raising=False)


def test_static_bundle_holds_text_and_html_only(static):
    assert set(bundle(Probe())) == {"text/plain", "text/html"}


def test_live_bundle_holds_a_widget_view(live):
    figure = Probe()
    stored = bundle(figure)
    assert stored["application/vnd.jupyter.widget-view+json"]["model_id"] == figure.model_id
    assert "text/html" not in stored
    assert stored["text/plain"] == repr(figure)


def test_two_equal_figures_are_stored_byte_for_byte_alike(static):
    assert bundle(Probe()) == bundle(Probe())


def test_repr_is_short_and_names_no_address():
    assert repr(Probe(values=list(range(100)))) == "Probe(values=[0, 1, 2, 3, ...], name='a < b')"


def test_state_holds_six_significant_digits_and_only_its_own_traits():
    own = {"values": [0.333333, 0.0, 12345700.0, 2, True], "name": "a < b", "counted": 3}
    assert state_in(Probe().static_html()) == own
    assert "-0.0" not in Probe().static_html()


def test_state_keys_are_sorted():
    assert list(state_in(Probe().static_html())) == ["counted", "name", "values"]
    assert '[{"a":1,"b":2}]' in Probe(values=[{"b": 2, "a": 1}]).static_html()


@pytest.mark.parametrize("number", [float("nan"), float("inf"), -float("inf")])
def test_numbers_that_json_cannot_hold_are_refused_by_name(number):
    with pytest.raises(ValueError, match=r"state\['values'\]\[1\] is -?(nan|inf)"):
        Probe(values=[0.0, number]).static_html()


def test_rounding_reaches_into_nested_values():
    assert rounded({"a": [1 / 3, (2 / 3,)]}) == {"a": [0.333333, [0.666667]]}


@pytest.mark.parametrize("text", ["</script><b>x</b>", "<!-- <script>", "a & b", '"quotes"', "中文 √"])
def test_text_in_the_state_cannot_end_its_script_element(text):
    html = Probe(name=text).static_html()
    assert html.count("</script>") == 1
    assert "<!--" not in html
    assert state_in(html)["name"] == text


def test_fallback_escapes_words_and_numbers():
    assert (
        "<p>A sentence &amp; more.</p><table><tbody>"
        '<tr><th scope="row">&lt;label&gt;</th><td>1 &lt; 2</td></tr></tbody></table>'
    ) in Probe().static_html()


def test_a_figure_must_say_its_summary():
    class Silent(Figure):
        _module = "quiz"

    with pytest.raises(NotImplementedError, match="Silent must implement _summary"):
        Silent().static_html()


def test_an_unknown_figure_is_told_with_those_that_exist():
    with pytest.raises(ValueError, match="no figure is called 'dial'.*quiz"):
        module_source("dial")


def test_a_misspelt_argument_is_told_with_those_that_exist():
    with pytest.raises(TypeError, match="Probe has no argument nmae, valeus; it has name, values$"):
        Probe(nmae="x", valeus=[])


@pytest.mark.parametrize("name", [name for name in figure_names() if name != "quiz"])
def test_every_figure_refuses_arguments_that_it_has_not(name):
    with pytest.raises(TypeError, match=f"{class_of(name).__name__} has no argument kv_heads; it has "):
        class_of(name)(kv_heads=2)


class Threads(Probe):
    """A figure that notes with how many threads it computes."""

    at_work = traitlets.Int(read_only=True).tag(sync=True)

    @traitlets.default("at_work")
    def _now(self):
        return torch.get_num_threads()

    def _summary(self):
        return f"{torch.get_num_threads()} in the table", []


def test_figures_compute_on_one_thread_and_give_the_others_back():
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    try:
        figure = Threads()
        html = figure.static_html()
        assert figure.state()["at_work"] == 1
        assert "1 in the table" in html
        assert torch.get_num_threads() == 2
    finally:
        torch.set_num_threads(before)


def test_measured_runs_are_made_on_one_thread(monkeypatch):
    threads = []
    monkeypatch.setattr(cache_stepper, "read", spy(cache_stepper.read, threads))
    monkeypatch.setattr(residual_stream, "step", spy(residual_stream.step, threads))
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    try:
        cache_stepper.cached_logits.__wrapped__("none")
        residual_stream.measurements.__wrapped__("swiglu")
    finally:
        torch.set_num_threads(before)
    assert set(threads) == {1}


def spy(function, threads):
    """The same function, noting the number of threads at every call."""

    def noting(*args):
        threads.append(torch.get_num_threads())
        return function(*args)

    return noting


def test_every_folder_with_a_module_is_a_figure_that_is_imported_by_the_name_of_its_class():
    assert len(figure_names()) > 15
    for name in figure_names():
        kind = class_of(name)
        assert kind._module == name and kind.__name__.lower() == name.replace("_", "")
        assert getattr(figures, kind.__name__) is kind and kind.__name__ in figures.__all__
