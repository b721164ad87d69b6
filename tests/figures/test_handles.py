"""Every handle of every figure obeys Home, End, Page Up and Page Down, as a slider of the browser does."""

from browser import Watch, open_figures, settle, unfold
from figure_examples import EVERY_FIGURE, example

HANDLES = ".mm-draggable[role=slider]"
ROUND = {"norm_geometry", "rotation_dials"}  # arrows on circles: their ends are all around
HANDLED = ROUND | {"pairing_lab", "parameter_ledger", "frequency_comb", "gate_surface", "quantization_grid"}
HANDLED |= {"residual_stream", "roofline", "tick_tock"}
VALUE = "one => [one.ariaValueMin, one.ariaValueNow, one.ariaValueMax, one.ariaValueText]"


def pressed(page, handle, key: str) -> list:
    handle.focus()
    page.keyboard.press(key)
    settle(page)
    return handle.evaluate(VALUE)


@EVERY_FIGURE
def test_home_end_and_pages_lead_a_handle_to_its_ends_and_on(page, name):
    page.set_viewport_size({"width": 944, "height": 1200})
    watch = Watch(page)
    open_figures(page, example(name))
    unfold(page)
    settle(page)
    handles = [one for one in page.locator(HANDLES).all() if one.is_visible()]
    assert bool(handles) == (name in HANDLED)
    for handle in handles:
        last, first = pressed(page, handle, "End"), pressed(page, handle, "Home")
        assert last[1:] != first[1:], handle.get_attribute("aria-label")
        if name not in ROUND:
            assert float(first[1]) == float(first[0]) and float(last[1]) == float(last[2]), (first, last)
        further = pressed(page, handle, "PageUp")
        assert further[1:] != first[1:]
        assert pressed(page, handle, "PageDown")[1:] != further[1:]
    assert watch.problems == []
