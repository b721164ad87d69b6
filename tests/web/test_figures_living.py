"""The living model reaches a figure that asks for it, from the kernel or from the page, and no other."""

import base64
import json
import mimetypes

import pytest
import torch
from browser import ALIVE, Watch, serve, static_page
from figure_examples import Probe
from minimind_book.figures import write_figures

from minimind_edu import world
from minimind_edu.figures import Figure, asks_for_living, figure_names, living_script, module_source
from minimind_edu.trained import living
from minimind_edu.web import host, living_model

KIT = module_source("quiz").partition("export default")[0]
ASKING = f"""{KIT}
export default {{
  async render({{ model, el }}) {{
    const both = await Promise.all([loadLiving(model), loadLiving(model)]);
    window.arrived = {{ ...both[0], once: both[0] === both[1] }};
    el.append("alive");
  }},
}};
"""

NOT_ASKING = f"{KIT}\nexport default {{ render({{ el }}) {{ el.append('alive'); }} }};\n"


def test_the_payload_is_the_file_the_tables_and_the_card():
    payload = living_model.payload()
    assert base64.b64decode(payload["weights"]) == living.WEIGHTS.read_bytes()
    assert payload["world"] == world.tables()
    assert payload["heads"] == {name: living.card()[name] for name in ("lost_without", "reading")}


# What the opened model says of itself: its world, and the logits after two words.
OPENED = """({ model, tensors, world, tables, heads, story, page }) => ({
    kinds: Object.keys(tables.weights),
    words: world.words,
    shapes: Object.keys(tensors).length,
    logits: [...model.run([0, 1]).traces[1].logits],
    story: world.encode(story),
    heads,
    page,
})"""


def assert_opened(found):
    """It is the stored model in the package's world, and its heads are the card's."""
    with torch.no_grad():
        logits = living.living_model()(torch.tensor([[0, 1]])).logits[0, 1]
    assert torch.allclose(torch.tensor(found["logits"]), logits, 0, 1e-3)
    assert found["kinds"] == list(world.tables()["weights"])  # their order has a meaning
    assert found["words"] == list(world.WORDS)
    assert found["story"] == world.encode(living_model.payload()["story"]).tolist()
    assert found["heads"] == living_model.payload()["heads"] and found["page"] == host.LIVING_PAGE


def test_a_figure_on_a_page_gets_the_opened_model_once(page):
    serve(page, static_page(Probe(), source=ASKING))
    page.wait_for_selector(ALIVE)
    assert page.evaluate("window.arrived.once")
    assert_opened(page.evaluate(f"({OPENED})(window.arrived)"))


def test_a_page_without_the_script_says_what_is_missing(page):
    source = ASKING.replace("await Promise", "window.asked = await Promise").replace(
        "loadLiving(model), loadLiving(model)", "loadLiving(model).catch((error) => error.message)"
    )
    serve(page, static_page(Probe(), source=source).replace(living_script(), ""))
    page.wait_for_selector(ALIVE)
    assert page.evaluate("window.asked") == ["this page carries no script called living"]


@pytest.fixture(scope="module")
def book(tmp_path_factory):
    """A page as the build writes it, with a folder of scripts of which two figures are replaced: `quiz` asks."""
    folder = tmp_path_factory.mktemp("book")
    write_figures(folder / "figures")
    (folder / "figures" / "quiz.js").write_text(host.registration("quiz", ASKING), encoding="utf-8")
    (folder / "figures" / "roofline.js").write_text(host.registration("roofline", NOT_ASKING), encoding="utf-8")
    for name in ("quiz", "roofline"):
        figure = Probe().static_html().replace('data-figure="quiz"', f'data-figure="{name}"')
        scripts = "".join(f'<script src="figures/{one}.js" async></script>' for one in (name, "figure_host"))
        page = f'<!doctype html><meta charset="utf-8"><link rel="icon" href="data:,">{figure}{scripts}'
        (folder / f"{name}.html").write_text(page, encoding="utf-8")
    return folder


def opened(browser, book, name, address):
    """A page of this book, alive, and what it has fetched."""
    page = browser.new_page()
    watch = Watch(page)

    def answer(route):
        path = book / route.request.url.removeprefix("http://book.test/")
        headers = {"content-security-policy": "default-src 'none'; script-src 'self'; img-src data:"}
        route.fulfill(path=path, headers=headers | {"content-type": mimetypes.guess_type(path)[0]})

    page.route("http://book.test/**", answer)
    page.goto(f"{address or book.as_uri()}/{name}.html")
    page.wait_for_selector(ALIVE)
    assert watch.problems == []
    return page, [url.rpartition("/")[2] for url in watch.requests]


@pytest.mark.parametrize("address", ["http://book.test", ""], ids=["strict policy", "from a file"])
def test_a_page_fetches_it_once_a_figure_asks_and_not_before(browser, book, address):
    page, fetched = opened(browser, book, "quiz", address)
    assert_opened(page.evaluate(f"({OPENED})(window.arrived)"))
    assert fetched.count("living.js") == 1
    page.close()
    page, fetched = opened(browser, book, "roofline", address)
    assert "living.js" not in fetched
    page.close()


# As anywidget's model with a kernel: what Python sends is heard as a message.
WITH_KERNEL = """async (answer) => {
    const { loadLiving } = await import("/web/kit/kit.js");
    const heard = new Map();
    const sent = [];
    const model = {
        on: (name, callback) => heard.set(name, callback),
        off: (name, callback) => heard.get(name) === callback && heard.delete(name),
        send: (content) => sent.push(content),
    };
    const promise = loadLiving(model);
    heard.get("msg:custom")({ other: "message" }, []);
    heard.get("msg:custom")(answer, []);
    const opened = await promise;
    const again = (await loadLiving(model)) === opened;
    return { opened: (OPENED)(opened), again, sent, left: heard.size };
}""".replace("OPENED", OPENED)


@pytest.fixture
def sent(monkeypatch):
    """What figures send to their views."""
    messages = []
    monkeypatch.setattr(Figure, "send", lambda self, content, buffers=None: messages.append(content))
    return messages


def test_the_kernel_answers_a_figure_that_asks_once(page, sent):
    serve(page)
    Probe()._handle_custom_msg({"ask": host.LIVING}, [])
    assert len(sent) == 1
    found = page.evaluate(WITH_KERNEL, json.loads(json.dumps(sent[0])))
    assert_opened(found.pop("opened"))
    assert found == {"again": True, "sent": [{"ask": host.LIVING}], "left": 0}


@pytest.mark.parametrize("message", [{"ask": "weather"}, {}, {"asked": "living"}, "living"])
def test_the_kernel_sends_nothing_unless_asked(sent, message):
    Probe()._handle_custom_msg(message, [])
    assert sent == []


def test_the_payload_is_in_no_state_and_in_no_module():
    assert host.LIVING not in Probe().state()
    beginning = living_model.payload()["weights"][:100]
    assert not any(beginning in module_source(name) for name in figure_names())
    assert host.LIVING not in figure_names()


def test_the_code_travels_with_the_weights_and_in_no_figure_that_only_asks():
    asking = [name for name in figure_names() if asks_for_living(module_source(name)) and name != "minimind_live"]
    assert asking, "some figure asks"
    for name in asking:
        assert "function createLiveModel(" not in module_source(name), name
        assert "function createWorld(" not in module_source(name), name
    assert "function createLiveModel(" in living_script()


def test_a_module_asks_where_it_calls_the_helper():
    assert asks_for_living(ASKING) and not asks_for_living(module_source("quiz"))


def test_the_script_can_stand_in_a_page():
    assert "</script" not in living_script() and "<!--" not in living_script()
    assert living_script() == living_script.__wrapped__()
