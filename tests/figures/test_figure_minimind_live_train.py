"""A reader trains a model on the live page: what the page tells is what the trainer reported."""

import re
from collections.abc import Iterator

import pytest
from browser import FIGURE, Watch, press_when, settle, static_page
from figure_examples import state_in

from minimind_edu import MiniMindConfig, MiniMindForCausalLM, world
from minimind_edu.figures import MiniMindLive, module_source
from minimind_edu.web.living_model import message

LINKS = {"training": {"href": "thirteen.html", "label": "13 · Training"}}
SWITCHES = ["positions", "residual", "initialization"]
# Keeps every message of the Workers that the page makes, and what each was asked for; a test may wish for more.
OVERHEAR = """
window.heard = [];
window.asked = [];
window.wished = {};
window.Worker = class extends Worker {
    constructor(url) {
        super(url);
        this.addEventListener("message", ({ data }) => heard.push(data));
    }
    postMessage(options) {
        asked.push(options);
        super.postMessage({ ...options, ...wished });
    }
};"""
NO_WORKER = """window.Worker = class { constructor() { throw new Error("no Workers here"); } };"""


@pytest.fixture(scope="module")
def address(tmp_path_factory) -> str:
    path = tmp_path_factory.mktemp("train") / "page.html"
    path.write_text(static_page(MiniMindLive(links=LINKS)), encoding="utf-8")
    return path.as_uri()


def opened(browser, address: str, script: str, width: int = 928) -> Iterator:
    context = browser.new_context(viewport={"width": width, "height": 900}, reduced_motion="reduce")
    context.add_init_script(script)
    page = context.new_page()
    watch = Watch(page)
    page.goto(address)
    page.wait_for_selector(f'{FIGURE}[data-state="alive"]')
    page.get_by_role("tab", name="Train").click()
    yield page
    assert watch.problems == []
    assert [url for url in watch.requests[1:] if not url.startswith(("blob:", "data:"))] == []
    context.close()


@pytest.fixture
def visit(browser, address):
    """The live page from a file, with the view unfolded, and its Workers overheard."""
    yield from opened(browser, address, OVERHEAR)


def train(page, *changes: str, steps: int = 40) -> list[dict]:
    """Press Train with these switches, and Stop after some steps; returns the messages of this run."""
    for at, name in enumerate(SWITCHES):
        page.locator(".ml-changes input").nth(at).set_checked(name in changes)
    page.evaluate("heard.length = 0")
    button = page.locator(".ml-train button")
    press_when(button, f"heard.filter(({{ type }}) => type === 'progress').length >= {steps}", begin=button)
    settle(page)
    return page.evaluate("heard")


def of_kind(heard: list[dict], kind: str) -> list[dict]:
    return [one for one in heard if one["type"] == kind]


def assert_told(page, heard: list[dict]) -> None:
    """The sentence has the numbers of the messages."""
    progress, samples = of_kind(heard, "progress"), of_kind(heard, "samples")[-1]
    above = [one["loss"] - one["entropy"] for one in progress[-20:]]
    right = [one for one in samples["rows"] if one["ids"][one["given"] :] == one["expected"]]
    told = page.inner_text(".ml-train .ml-seen")
    steps, averaged, excess, at, good, rows = re.findall(r"\d+(?:\.\d+)?", told)[:6]
    assert (int(steps), int(averaged)) == (len(progress), 20)
    assert float(excess) == pytest.approx(sum(above) / 20, abs=0.0051)
    assert (int(at), int(good), int(rows)) == (samples["step"], len(right), 4)


def test_the_loss_falls_and_the_sentence_tells_what_happened(visit):
    heard = train(visit)
    progress = of_kind(heard, "progress")
    assert progress[0]["loss"] > 4 and progress[-1]["loss"] < 1.5
    assert_told(visit, heard)
    shown = visit.locator(".ml-loss-now").text_content()
    assert float(shown) == pytest.approx(progress[-1]["loss"], abs=0.0051)
    assert f"{shown} nats per word" in visit.get_attribute(".ml-loss", "aria-label")
    assert visit.get_attribute(".ml-loss-run", "d").count("L") == len(progress) - 1


def test_samples_mark_the_words_that_are_wrong(visit):
    samples = of_kind(train(visit), "samples")[-1]  # a busy machine may be past the second 25 steps before Stop
    assert samples["step"] % 25 == 0 and f"after step {samples['step']}" in visit.inner_text(".ml-train")
    rows = visit.locator(".ml-written li").all()
    assert len(rows) == len(samples["rows"])
    for row, said in zip(rows, samples["rows"], strict=True):
        ids, given = said["ids"], said["given"]
        assert world.encode(row.locator(".ml-given").inner_text()).tolist() == ids[1 : given - 1]
        words = row.locator("span:last-child > *").evaluate_all(
            "all => all.map((one) => [one.textContent, one.tagName])"
        )
        expected = zip(ids[given:], said["expected"], strict=True)
        assert words == [[world.WORDS[id_], "SPAN" if id_ == right else "DEL"] for id_, right in expected]
    assert visit.locator(".ml-written del").count() > 0


def test_stop_stops_and_the_switches_are_locked_while_it_runs(visit):
    button, switches = visit.locator(".ml-train button"), visit.locator(".ml-changes input")
    seen = button.evaluate(
        """(button) => new Promise((done) => {
            const look = () => (heard.length > 2 ? requestAnimationFrame(stop) : setTimeout(look));
            const stop = () => {
                const locked = [...document.querySelectorAll(".ml-changes input")].map((one) => one.disabled);
                done([button.innerText, locked]);
                button.click();
            };
            button.click();
            look();
        })"""
    )
    assert seen == ["Stop", [True] * switches.count()]
    settle(visit)
    count = len(of_kind(visit.evaluate("heard"), "progress"))
    told = visit.inner_text(".ml-train .ml-seen")
    visit.wait_for_timeout(300)
    assert len(of_kind(visit.evaluate("heard"), "progress")) == count < 150
    assert visit.inner_text(".ml-train .ml-seen") == told and f"After {count} steps" in told
    assert button.inner_text() == "Train" and all(one.is_enabled() for one in switches.all())


def test_each_switch_changes_what_is_trained_and_the_run_before_stays(visit):
    whole = of_kind(train(visit), "progress")
    assert visit.locator(".ml-loss-before").count() == 0
    before = visit.get_attribute(".ml-loss-run", "d")
    without = of_kind(train(visit, "residual"), "progress")
    assert visit.get_attribute(".ml-loss-before", "d") == before
    assert "no residual. Faint: the run before, nothing changed" in visit.inner_text(".ml-loss-legend")
    assert without[29]["loss"] > whole[29]["loss"] + 0.2
    assert without[29]["entropy"] == whole[29]["entropy"]
    train(visit, "positions", "initialization", steps=2)
    asked = visit.evaluate("asked.map(({ switches, config }) => [switches, config.initializer_range])")
    both = {"positions": True, "residual": True}
    assert asked == [[both, 0.1], [both | {"residual": False}, 0.1], [both | {"positions": False}, 0.02]]


def test_a_whole_run_comes_within_a_twentieth_nat_of_the_entropy(visit):
    visit.locator(".ml-train button").click()
    visit.wait_for_function("heard.some(({ type }) => type === 'done')", timeout=120_000)
    heard = visit.evaluate("heard")
    assert len(of_kind(heard, "progress")) == 200
    last = of_kind(heard, "progress")[-20:]
    assert sum(one["loss"] - one["entropy"] for one in last) / 20 < 0.05
    assert_told(visit, heard)
    assert "4 of 4 sentences right, 4 of them about a person and a thing" in visit.inner_text(".ml-train .ml-seen")
    assert visit.locator(".ml-written del").count() == 0
    assert visit.locator(".ml-train button").inner_text() == "Train"


def test_where_no_worker_may_run_it_trains_all_the_same_on_a_phone(browser, address):
    for page in opened(browser, address, NO_WORKER, width=328):
        button = page.locator(".ml-train button")
        press_when(button, "document.querySelector('.ml-loss-run')?.getAttribute('d').includes('L')", begin=button)
        settle(page)
        assert re.search(r"After \d+ steps? its loss", page.inner_text(".ml-train .ml-seen"))
        assert page.evaluate("document.documentElement.scrollWidth") == 328


def test_a_loss_that_is_no_number_is_told_and_the_next_training_goes_well(visit):
    visit.evaluate("window.wished = { rate: 30 }")
    button, told = visit.locator(".ml-train button"), visit.locator(".ml-train .ml-seen")
    button.click()
    visit.wait_for_function("document.querySelector('.ml-train .ml-seen').textContent !== ''")
    assert told.inner_text().startswith("The training stopped: in step 3 the loss is Infinity")
    assert button.inner_text() == "Train" and visit.locator(".ml-changes input").first.is_enabled()
    assert visit.get_attribute(".ml-loss-run", "d").count("L") == 1, "the two losses that are numbers"
    assert "after step 1" in visit.inner_text(".ml-train")
    visit.evaluate("window.wished = {}")
    assert_told(visit, train(visit))


def test_without_weights_training_says_so(browser, tmp_path):
    html = re.sub(r"<script>[^<]*\[\"living\"\] = .*?</script>", "", static_page(MiniMindLive()), flags=re.DOTALL)
    (tmp_path / "page.html").write_text(html, encoding="utf-8")
    context = browser.new_context()
    page = context.new_page()
    page.goto((tmp_path / "page.html").as_uri())
    page.get_by_role("tab", name="Train").click()
    page.locator(".ml-train button").click()
    page.wait_for_function("document.querySelector('.ml-train .ml-seen').textContent.includes('did not arrive')")
    assert page.locator(".ml-train button").inner_text() == "Train"
    context.close()


def test_the_view_names_the_size_of_the_model_and_the_chapter(visit):
    visit.locator(".ml-train button").click()
    visit.wait_for_function("asked.length > 0")
    sizes = visit.evaluate("asked[0].config")
    trained = MiniMindForCausalLM(MiniMindConfig(**sizes, tie_word_embeddings=True))
    assert f"{trained.num_parameters():,} weights" in visit.inner_text(".ml-train")
    assert visit.get_attribute(".ml-train a", "href") == "thirteen.html"


def test_the_trainer_travels_with_the_weights_and_not_with_the_page():
    assert "function trainingCode" in message()["code"]
    assert "function trainingCode" not in module_source("minimind_live")
    assert state_in(MiniMindLive(links=LINKS).static_html())["links"]["training"]["label"] == "13 · Training"
