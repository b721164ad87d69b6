"""figures.Inside in a notebook: the views in a real browser, with a kernel behind them that is this process."""

import base64
import json

import pytest
from browser import Watch, serve
from kept import handed_over, open_menu, pixels_of, words_in
from own_models import logits_of, own_folder, own_model
from tokenizer_builders import train_tokens
from transformers import AutoTokenizer

from minimind_edu import figures
from minimind_edu.web import host

TEXT = "我爱编程，the model reads"
# What anywidget gives to a module: traits, and messages with bytes, which a kernel answers.
HOST = """async ([source, data]) => {
    const url = URL.createObjectURL(new Blob([source], { type: "text/javascript" }));
    const { default: widget } = await import(url);
    const heard = [];
    const viewOf = (base64) => new DataView(Uint8Array.from(atob(base64), (one) => one.charCodeAt(0)).buffer);
    const model = {
        get: () => data,
        on: (_, callback) => heard.push(callback),
        off: (_, callback) => heard.splice(heard.indexOf(callback), 1),
        send: async (message) => {
            const answers = await ask(message);
            for (const [answer, buffers] of answers) heard.forEach((one) => one(answer, buffers.map(viewOf)));
        },
    };
    const el = document.createElement("main");
    globalThis.end = await widget.render({ model, el });
    document.body.append(el); // a front end may show it later
    globalThis.heard = heard;
}"""


COLORED = """() => {
    const canvas = document.querySelector(".st-head canvas");
    const { data } = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height);
    return data.some((value, i) => i % 4 === 0 && value !== data[i + 1]);
}"""


@pytest.fixture
def shown(browser):
    """Shows a figures.Inside in a window of its own; gives the page and what its kernel was asked."""
    page = browser.new_page()
    serve(page)  # a blank page may not import a module

    def show(inside):
        asked = []

        def ask(message):
            answers = []
            asked.append(message.get("what") or message.get("do") or message["ask"])
            inside.send = lambda content, buffers=(): answers.append(
                [content, [base64.b64encode(b).decode() for b in buffers]]
            )
            inside._handle_custom_msg(json.loads(json.dumps(message)), [])
            return answers

        page.watch = Watch(page)
        page.expose_function("ask", ask)
        page.add_style_tag(content=inside._css)
        page.evaluate(HOST, [inside._esm, inside.data])
        settled(page)
        return page, asked

    yield show
    page.close()


def settled(page):
    page.locator('.in-page[data-busy="false"]').wait_for(timeout=60_000)


def bars(page):
    return page.eval_on_selector_all(".in-bar .in-put", "all => all.map((one) => one.textContent)")


def test_the_views_are_those_of_the_page(shown, tmp_path):
    model = own_folder(tmp_path / "mine")
    tokenizer = AutoTokenizer.from_pretrained(tmp_path / "mine")
    page, asked = shown(figures.Inside(model, tokenizer, TEXT))
    page.get_by_role("switch", name="as a chat").uncheck()
    settled(page)
    ids = train_tokens().encode(TEXT).ids
    assert page.locator(".in-line button").count() == len(ids)
    expected = logits_of(model, ids)[-1].argmax().item()
    page.locator(".in-write .mm-more summary").click()
    page.get_by_role("slider", name="temperature").fill("0")  # always the likeliest
    page.get_by_role("button", name="Next token").click()
    settled(page)
    assert page.locator(".in-line button").count() == len(ids) + 1
    written = page.locator(".in-line button").last.get_attribute("title")
    assert f"token {expected} at position {len(ids) + 1}" in written
    page.get_by_role("button", name="block 1, head 3").click()
    page.get_by_role("switch", name="silence this head").check()
    page.locator(".in-number small").first.wait_for()
    page.get_by_role("button", name="block 2", exact=True).click()
    page.locator(".st-strips b", has_text=".").first.wait_for()
    page.locator(".in-feed").first.click()
    page.locator(".in-neurons li").first.wait_for()
    page.get_by_role("button", name="Try without each head").click()
    page.locator(".in-tried", has_text="Needed most here").wait_for()
    assert {"read", "lens", "wrote", "stream", "neurons", "maps", "without"} == set(asked)
    assert page.locator(".in-private").inner_text() == "The model runs in the kernel of this notebook."
    assert page.watch.problems == []
    assert page.evaluate(COLORED), "the maps have the color of what is read"
    page.evaluate("end()")
    assert page.evaluate("heard.length") == 0 and asked[-1] == "close"


def test_each_part_can_be_kept_and_has_no_address(shown):
    """The kernel sends what draws pictures, once and only when somebody asks for it."""
    page, asked = shown(figures.Inside(own_model(), text="4 5 60"))
    page.get_by_role("button", name="block 1, head 3").click()
    settled(page)
    assert host.KEEP not in asked
    names = {
        ".in-tokens": "text",
        ".in-left > section >> nth=0": "next",
        ".in-who": "who",
        ".in-blocks": "heads",
        ".st-open": "part",
    }
    keepers = page.locator(".mm-keep")
    assert keepers.count() == len(names)
    for part, name in names.items():
        root = page.locator(part)
        keeper = root.locator("> .mm-keep")
        open_menu(keeper)
        assert keeper.locator("button").all_text_contents() == ["SVG", "PNG"]
        files = dict(handed_over(page, keeper, kind) for kind in ("SVG", "PNG"))
        assert list(files) == [f"minimind-inside-{name}.svg", f"minimind-inside-{name}.png"]
        svg, png = files.values()
        first = root.locator(".in-token, .st-title").first.inner_text()
        assert first and first in words_in(svg)
        assert len(pixels_of(png).getcolors(1 << 20)) > 50
        page.keyboard.press("Escape")
    assert asked.count(host.KEEP) == 1
    assert page.watch.problems == []


def said(inside):
    """What an Inside answers: say(message) gives its messages without their bytes."""
    answers = []
    inside.send = lambda content, buffers: answers.append(content)

    def say(**message):
        answers.clear()
        inside._handle_custom_msg(message, [])
        return list(answers)

    return say


def test_two_views_read_two_texts_and_a_closed_one_leaves_nothing():
    model = own_model()
    inside = figures.Inside(model, text="1 2")
    say = said(inside)
    texts = {"one": [1, 2, 3], "two": [4, 5]}
    for view, ids in texts.items():
        told = say(view=view, do="read", run=1, ids=ids, silenced=[], known=0)
        assert [message["view"] for message in told] == [view, view]
    for view, ids in texts.items():
        [answer] = say(view=view, do="look", key=1, what="lens", at=1)
        assert answer["view"] == view
        assert answer["answer"][-1][0][0] == logits_of(model, ids)[1].argmax().item()
    assert say(view="one", do="close") == say(view="never opened", do="close") == []
    assert [*inside._kernels] == ["two"]
    for number in range(20):
        say(view=f"{number}", do="read", run=1, ids=[1], silenced=[], known=0)
    assert [*inside._kernels] == [f"{number}" for number in range(12, 20)], "the last ones"


def test_without_a_tokenizer_it_takes_ids(shown):
    model = own_model("minimind2_moe")
    page, _ = shown(figures.Inside(model, text="4 5 60"))
    likeliest = logits_of(model, [4, 5, 60])[-1].topk(8).indices.tolist()
    assert bars(page) == list(map(str, likeliest))


def test_tokenizers_of_both_libraries_and_folders_are_taken(tmp_path):
    model = own_folder(tmp_path / "mine")
    kinds = [
        tmp_path / "mine",
        str(tmp_path / "mine"),
        train_tokens(),
        AutoTokenizer.from_pretrained(tmp_path / "mine"),
    ]
    found = [figures.Inside(model, kind, "a").data["tokenizer"]["content"]["model"] for kind in kinds]
    assert all(one == found[0] for one in found)
    for kind, reason in (
        (tmp_path, "there is no tokenizer.json"), (3, "got int"), (train_tokens(310), "it is another's")
    ):  # fmt: skip
        with pytest.raises(ValueError, match=reason):
            figures.Inside(model, kind)


def test_what_the_views_cannot_show_is_refused_and_a_stored_output_is_a_line(monkeypatch):
    with pytest.raises(ValueError, match="norms after each part"):
        figures.Inside(own_model("minimind2", norm_placement="post"))
    inside = figures.Inside(own_model(), text="1 2", name="mine")
    assert repr(inside) == "Inside('mine', text='1 2')"
    monkeypatch.setenv("MINIMIND_EDU_STATIC", "1")
    assert inside._repr_mimebundle_() == {"text/plain": repr(inside)}
