"""The page of a reader's own model in real browsers: from a file, without a network, by mouse and keys."""

import json
import random
import re
import threading

import pytest
import torch
from accessible import axe_problems
from axe_playwright_python.sync_playwright import Axe
from book_builder import wait_until
from browser import Watch, press_when
from own_models import logits_of, own_folder, own_model, trained_folder
from own_pages import TEXTS, assert_quiet, settled, windows, write
from tokenizer_builders import PATTERNS, random_tokenizer, train_tokens
from tokenizers import Regex, Tokenizer, pre_tokenizers
from tokenizers.processors import TemplateProcessing
from web_engines import Firefox, WebKit, start

from minimind_edu import __main__ as program
from minimind_edu import from_checkpoint, save_checkpoint, world
from minimind_edu.inside.page import PARTS
from minimind_edu.inside.server import PageServer
from minimind_edu.trained.living import living_model
from minimind_edu.web import book

pytestmark = [pytest.mark.long, pytest.mark.timeout(300)]

TEXT = "我爱编程，the model reads what it wrote\n\tone token at a time 👨‍👩‍👧"
EVIL = "<img src=x onerror=document.title='bad'></script><b>"


@pytest.fixture(scope="module")
def own(tmp_path_factory):
    """The folder of a model, its page in float32, the model, its tokenizer."""
    folder = tmp_path_factory.mktemp("own") / "mine"
    model = own_folder(folder, "minimind3")
    return write(folder, folder, "--text", TEXT, "--bits", "32"), model, Tokenizer.from_file(f"{folder}/tokenizer.json")


@pytest.fixture(scope="module")
def living(tmp_path_factory):
    return write(tmp_path_factory.mktemp("living"))


@pytest.fixture
def visit(browser):
    with windows(browser) as opened:
        yield opened


def bars(page):
    shown = page.eval_on_selector_all(
        ".in-bar", "all => all.map((one) => [one.querySelector('.in-put').textContent, one.innerText])"
    )
    return [[name, re.findall(r"[\d.]+ %", text.replace("\u00a0", " "))[0]] for name, text in shown]


def fill(page, text):
    page.fill(".in-field", text)
    settled(page)


def percent(p):
    value = 100 * p
    return f"{value:.0f} %" if value >= 10 else f"{value:.1f} %" if value >= 0.095 else f"{value:.2f} %"


def be_greedy(page):
    """From now on the page writes the likeliest token, as `generate` does."""
    page.locator(".in-write .mm-more summary").click()
    page.get_by_role("slider", name="temperature").fill("0")
    page.get_by_text("How a token is drawn: always the likeliest").wait_for()


def test_a_trained_model_of_bytes_writes_words(tmp_path, visit):
    """As a reader's own: a folder with a byte-level tokenizer, trained before it is opened."""
    model = trained_folder(tmp_path / "stories")
    page = visit(write(tmp_path, tmp_path / "stories", "--text", "Mia is in the hall. Tom is", "--bits", "32"))
    page.get_by_role("switch", name="as a chat").uncheck()
    settled(page)
    tokens = Tokenizer.from_file(f"{tmp_path}/stories/tokenizer.json")
    ids = torch.tensor([tokens.encode("Mia is in the hall. Tom is").ids])
    likeliest = model(ids).logits[0, -1].argmax().item()
    assert bars(page)[0][0].strip("·") == tokens.decode([likeliest]).strip()
    be_greedy(page)
    for _ in range(40):
        page.get_by_role("button", name="Next token").click()
        settled(page)
    text = page.input_value(".in-field")
    assert text == tokens.decode(model.generate(ids, 40, eos_token_id=None)[0].tolist())
    words = set(" ".join(word for word in world.WORDS if word.isascii()).split())
    written = re.findall(r"[A-Za-z]+", text)
    assert len(written) > 12 and len([word for word in written[:-1] if word in words]) > 0.9 * len(written[:-1])
    assert_quiet(page)


def of_kind(kind):
    """A tokenizer.json as GPT-4 has it, as Llama 2, and with a first and a last token around every text."""
    if kind == "GPT-4":
        tokens = train_tokens(400)
        by_pattern = pre_tokenizers.Split(Regex(PATTERNS["GPT-4, all possessive"]), "isolated")
        by_bytes = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
        tokens.pre_tokenizer = pre_tokenizers.Sequence([by_pattern, by_bytes])
        return tokens
    if kind == "framed":
        tokens = train_tokens(400)
        special = [(name, tokens.token_to_id(name)) for name in ("<|im_start|>", "<|im_end|>")]
        tokens.post_processor = TemplateProcessing("<|im_start|> $A <|im_end|>", special_tokens=special)
        return tokens
    source = random.Random(3)
    while True:
        file = random_tokenizer(source)
        if file["model"]["byte_fallback"] and len(file["model"]["vocab"]) < 480:
            return Tokenizer.from_str(json.dumps(file))


@pytest.mark.parametrize("kind", ["GPT-4", "byte_fallback", "framed"])
def test_tokenizers_of_other_models_are_compared_and_write(tmp_path, visit, kind):
    (tmp_path / "mine").mkdir()
    tokens = of_kind(kind)
    tokens.save(str(tmp_path / "mine/tokenizer.json"))
    tokens.no_truncation()
    model = own_model("minimind3", vocab_size=500, max_position_embeddings=256)
    save_checkpoint(model, tmp_path / "mine/model.safetensors")
    text = "They'LL read 模型 123456  and café"
    page = visit(write(tmp_path, tmp_path / "mine", "--text", text, "--bits", "32"))
    assert page.text_content(".in-check").startswith("Checked: the same logits as PyTorch and the same tokens.")
    ids = tokens.encode(text).ids
    assert page.locator(".in-line .in-token").count() == len(ids)
    likeliest = model(torch.tensor([ids])).logits[0, -1].argmax().item()
    be_greedy(page)
    page.get_by_role("button", name="Next token").click()
    settled(page)
    if tokens.id_to_token(likeliest):
        first = len(tokens.encode("", add_special_tokens=True).ids) // 2
        assert page.input_value(".in-field") == tokens.decode([*ids, likeliest][first:], skip_special_tokens=False)
    assert_quiet(page)


def test_a_tokenizer_that_fails_in_the_page_is_told_and_ids_are_written(tmp_path, visit):
    """No page is written with a pattern that a browser cannot compile; so this one is broken by hand."""
    own_folder(tmp_path / "mine")
    file = write(tmp_path, tmp_path / "mine", "--text", TEXT)
    content = file.read_text(encoding="utf-8")
    broken = re.sub(r'"split":"[^"]*"', lambda found: '"split":"(("', content, count=1)
    assert broken != content
    file.write_text(broken, encoding="utf-8")
    page = visit(file)
    assert "Its tokenizer could not be used" in page.text_content(".in-state")
    assert page.text_content(".in-check").startswith("Checked: the same logits as PyTorch")
    assert "tokens" not in page.text_content(".in-check")
    assert re.fullmatch(r"[\d ]+", page.input_value(".in-field"))
    fill(page, "The model")
    complaint = page.text_content(".in-complaint")
    assert complaint.startswith("This page reads token ids") and "came without" not in complaint


@pytest.mark.parametrize("part", PARTS)
def test_the_part_that_was_asked_for_is_in_sight(tmp_path, visit, part):
    model = own_model("minimind3_moe" if part == "experts" else "minimind3", vocab_size=300)
    file = save_checkpoint(model, tmp_path / "own.safetensors")
    page = visit(write(tmp_path, file, "--text", "7 8 9", "--at", part), width=360)
    place = {"cache": ".in-cache", "generation": ".in-write .mm-controls"}.get(
        part, ".st-open .st-title >> visible=true"
    )
    box = page.locator(place).first.bounding_box()
    assert 0 <= box["y"] and box["y"] + box["height"] <= 900
    named = {"attention": "Head 1", "feed-forward": "feed-forward", "experts": "experts", "block": "Block 1"}
    assert part not in named or named[part].lower() in page.locator(place).inner_text().lower()
    assert_quiet(page)


def test_it_is_as_torch_says_and_asks_nobody(visit, own):
    file, model, tokens = own
    page = visit(file)
    chat = "<|im_start|>user\n" + TEXT + "<|im_end|>\n<|im_start|>assistant\n"
    for text, press in ((chat, False), (TEXT, True)):
        if press:
            page.get_by_role("switch", name="as a chat").check()
            page.get_by_role("switch", name="as a chat").uncheck()
            settled(page)
        ids = tokens.encode(text).ids
        assert page.locator(".in-line button").count() == len(ids)
        p = logits_of(model, ids)[-1].softmax(-1).sort(descending=True).values[:8]
        assert [share for _, share in bars(page)] == [percent(one) if one >= 5e-5 else "0.01 %" for one in p.tolist()]
    assert page.inner_text(".in-check") == "Checked: the same logits as PyTorch and the same tokens."
    assert_quiet(page)


def test_a_page_that_computes_something_else_says_so(visit, tmp_path):
    file = write(tmp_path)
    text = file.read_text(encoding="utf-8")
    changed = re.sub(r'"top":\[\[\d+,', '"top":[[3,', text, count=1)
    assert changed != text
    file.write_text(changed, encoding="utf-8")
    assert visit(file).inner_text(".in-check").startswith("This page differs from PyTorch: by ")


def test_writing_taking_back_and_choosing(visit, living):
    page = visit(living)
    first = bars(page)
    assert first[0] == ["hall", "100 %"]
    page.get_by_role("button", name="Next token").click()
    settled(page)
    assert page.locator(".in-line button").last.text_content() == "hall"
    assert page.input_value(".in-field").endswith("hall")
    page.get_by_role("button", name="Undo").click()
    settled(page)
    assert bars(page) == first
    page.locator(".in-put").nth(1).click()
    settled(page)
    assert page.locator(".in-line button").last.text_content() == first[1][0]
    fill(page, "汤姆在花园。汤姆在")
    assert bars(page)[0][0] == "花园"
    page.fill(".in-field", "Mia is in the xylophone")
    page.locator(".in-complaint", has_text="“xylophone” is no word of this model").wait_for()
    assert_quiet(page)


def test_a_token_more_leaves_the_others_alone(visit, own):
    """What is described anew for each token would be the time of many: see the speed of writing."""
    page = visit(own[0])
    fill(page, "abc de " * 30)
    page.evaluate("""() => {
        globalThis.touched = new Set();
        const line = document.querySelector(".in-line");
        new MutationObserver((all) => all.forEach(({ target }) => touched.add(target))).observe(
            line, { subtree: true, childList: true, attributes: true });
        touched.kept = [...line.children];
    }""")
    count = page.locator(".in-line button").count()
    page.get_by_role("button", name="Next token").click()
    settled(page)
    kept, touched = page.evaluate("() => [touched.kept.every((one) => one.isConnected), touched.size]")
    assert page.locator(".in-line button").count() == count + 1 > 100
    assert kept and touched <= 3, "the line, the token that was selected and the one that is"


def test_an_input_method_is_left_in_peace(visit, own):
    page = visit(own[0])
    page.get_by_role("switch", name="as a chat").uncheck()
    fill(page, "")
    page.focus(".in-field")
    before = page.locator(".in-line").inner_text()
    keys = page.context.new_cdp_session(page)
    keys.send("Input.imeSetComposition", {"text": "bian", "selectionStart": 4, "selectionEnd": 4})
    page.evaluate("() => new Promise((done) => setTimeout(done, 600))")  # later than the pause after a key
    assert page.locator(".in-line").inner_text() == before
    keys.send("Input.insertText", {"text": "编程"})
    page.locator(".in-line", has_text="编").wait_for()


def test_who_wrote_a_token_adds_up_and_opens_the_part(visit, living):
    page = visit(living)
    numbers = page.eval_on_selector_all(
        ".in-part b", "all => all.map((one) => Number(one.textContent.replace('−', '-')))"
    )
    [together] = re.findall(r"Together \+([\d.]+)", page.inner_text(".in-who"))
    assert sum(numbers) == pytest.approx(float(together), abs=0.05 * len(numbers) + 0.05)
    page.get_by_role("button", name="Compare with the runner-up").click()
    page.locator(".in-who h2", has_text="rather than garden").wait_for()
    page.locator(".in-part", has_text="head 2 of block 4").click()
    page.locator(".st-open .st-title", has_text="Block 4, head 2").wait_for()


def test_a_head_is_opened_and_silenced_and_what_was_is_marked(visit, living):
    page = visit(living)
    page.get_by_role("button", name="block 1, head 3").click()
    page.locator(".st-open .st-title", has_text="Block 1, head 3").wait_for()
    assert page.locator(".st-list li").first.inner_text().split()[0] == "hall"
    page.get_by_role("switch", name="silence this head").check()
    page.locator(".in-silent", has_text="Silent: head 3 of block 1.").wait_for()
    settled(page)
    page.locator(".in-bar", has_text="hall").locator("small", has_text=re.compile(r"^was 100\s%$")).wait_for()
    assert bars(page)[0][0] != "hall"
    page.get_by_role("button", name="Bring back").click()
    page.locator(".in-silent").wait_for(state="hidden")
    settled(page)
    assert bars(page)[0] == ["hall", "100 %"] and page.locator(".in-number small").count() == 0


def test_a_whole_block_falls_silent_and_its_stream_is_what_torch_has(visit, living):
    page = visit(living)
    page.get_by_role("button", name="block 2", exact=True).click()
    page.locator(".st-open .st-title", has_text="Block 2").wait_for()
    settled(page)
    model = living_model()
    ids = [0, *world.encode(page.input_value(".in-field"))]
    streams = []
    hook = model.model.layers[1].register_forward_hook(lambda _, x, y: streams.extend([x[0], y[0]]))
    logits_of(model, ids)
    hook.remove()
    sizes = [stream[0, -1].pow(2).mean().sqrt().item() for stream in streams]
    shown = [float(one) for one in page.locator(".st-strips b").all_inner_texts()]
    assert [shown[0], shown[3]] == pytest.approx(sizes, abs=0.02)
    page.get_by_role("switch", name="silence this whole block").check()
    page.locator(".in-silent", has_text="Silent: block 2.").wait_for()
    settled(page)
    shown = page.locator(".st-strips b").all_inner_texts()
    assert shown[0] == shown[3] and shown[1:3] == ["0.00", "0.00"]
    page.get_by_role("switch", name="silence this whole block").uncheck()
    page.locator(".in-silent").wait_for(state="hidden")
    page.locator(".in-feed").nth(3).click()
    page.get_by_role("switch", name="silence this feed-forward part").check()
    page.locator(".in-silent", has_text="Silent: feed-forward of block 4.").wait_for()
    assert_quiet(page)


def test_a_pinned_text_marks_every_bar_and_the_tokens_that_differ(visit, living):
    page = visit(living)
    page.get_by_role("button", name="Pin, to compare").click()
    fill(page, page.input_value(".in-field").replace("hall", "attic"))
    assert bars(page)[0][0] == "attic"
    assert page.locator(".in-bar", has_text="attic").locator("small").inner_text() == "was < 0.01\u00a0%"
    assert page.locator(".in-bar", has_text="hall").locator("small").inner_text() == "was 100\u00a0%"
    assert page.locator('.in-token[data-other="true"]').all_inner_texts() == ["attic"]
    page.get_by_role("button", name="Unpin").click()
    settled(page)
    assert page.locator(".in-bar small").count() == page.locator('[data-other="true"]').count() == 0


def test_its_address_opens_all_of_it_again(visit, living):
    page = visit(living)
    page.get_by_role("button", name="Pin, to compare").click()
    fill(page, page.input_value(".in-field").replace("hall", "attic"))
    page.get_by_role("button", name="block 1, head 3").click()
    page.get_by_role("switch", name="silence this head").check()
    settled(page)
    page.wait_for_url(re.compile("silent=0.2"))
    seen = (
        "() => ['.in-line', '.in-bars', '.in-silent', '.st-open', '.in-was'].map("
        "(one) => document.querySelector(one).innerText)"
    )
    expected = page.evaluate(seen)
    again = page.context.new_page()
    again.watch = Watch(again)
    again.goto(page.url)
    again.locator(".in-number small").first.wait_for()
    settled(again)
    assert again.evaluate(seen) == expected
    assert_quiet(again)
    again.evaluate("location.hash = 'ids=0.2.29'")
    again.locator(".in-count", has_text="3 tokens").wait_for()


def test_trying_without_each_head_finds_the_one_that_is_needed(visit, living):
    page = visit(living)
    page.get_by_role("button", name="Try without each head").click()
    page.locator(".in-tried", has_text="Needed most here: head 3 of block 1").wait_for()
    assert 1 <= page.locator(".in-tried .mm-link").count() <= 3
    falls = page.locator(".in-tried").inner_text().replace("\u00a0", " ")
    pairs = re.findall(r"\((.+?) → (.+?)\)", falls)
    assert pairs and all(before != after for before, after in pairs)


def test_where_no_head_is_needed_none_is_named(visit, tmp_path):
    model = own_model(vocab_size=61)
    with torch.no_grad():
        for block in model.model.layers:
            block.self_attn.o_proj.weight.zero_()
    page = visit(write(tmp_path, save_checkpoint(model, tmp_path / "deaf.safetensors")))
    page.get_by_role("button", name="Try without each head").click()
    page.locator(".in-tried", has_text="No single head is needed here. The second bar").wait_for()
    assert page.locator(".in-tried .mm-link").count() == 0


def test_before_it_is_open_nothing_can_be_pressed(visit, living, tmp_path, browser):
    text = living.read_text(encoding="utf-8")
    deaf = re.sub(r'(id="worker">).*?</script>', r"\1</script>", text, count=1, flags=re.DOTALL)
    (tmp_path / "deaf.html").write_text(deaf, encoding="utf-8")
    page = browser.new_page(viewport={"width": 1280, "height": 900})
    page.watch = Watch(page)
    page.goto((tmp_path / "deaf.html").as_uri())
    page.locator(".in-state", has_text="Opening the model… 100").wait_for()
    assert page.locator(".in-columns").is_hidden() and page.locator(".in-write").is_visible()
    for _ in range(5):  # past the way to the book and the theme
        page.keyboard.press("Tab")
        inside = page.evaluate("document.activeElement.closest('.in-write, .in-columns') !== null")
        assert not inside, "no control takes the keys"
    box = page.locator(".in-write").get_by_role("button", name="Play").bounding_box()
    place = [box["x"] + box["width"] / 2, box["y"] + box["height"] / 2]
    assert not page.evaluate("([x, y]) => document.elementFromPoint(x, y).closest('button')", place), "nor the mouse"
    assert_quiet(page)
    page.close()


def test_a_chat_shows_its_answer_as_a_text_and_the_newest_token_in_sight(visit, own):
    file, _, tokens = own
    page = visit(file)
    assert page.locator(".in-answer").is_hidden()
    ids = tokens.encode("<|im_start|>user\n" + TEXT + "<|im_end|>\n<|im_start|>assistant\n").ids
    for _ in range(4):  # it writes 40 tokens at a time
        page.get_by_role("button", name="Play").click()
        page.locator(".in-complaint", has_text=re.compile("ends its text|tokens and rests|over and over")).wait_for()
        settled(page)
    titles = page.eval_on_selector_all(".in-line button", "all => all.map((one) => one.title)")
    shown = [int(re.search(r", token (\d+) at", title)[1]) for title in titles]
    assert shown[: len(ids)] == ids and len(shown) > len(ids)
    spelled = "() => document.querySelector('.in-answer span').textContent"
    assert page.evaluate(spelled) == tokens.decode(shown[len(ids) :], skip_special_tokens=False)
    sight = """() => {
        const [box, chip] = [".in-line", ".in-line [aria-current=true]"].map((one) =>
            document.querySelector(one).getBoundingClientRect());
        return [box.top <= chip.top, chip.bottom <= box.bottom + 1, document.querySelector(".in-line").scrollTop > 0];
    }"""
    assert page.evaluate(sight) == [True, True, True]
    fill(page, "学习")
    assert page.locator(".in-answer").is_hidden()
    assert_quiet(page)


def test_a_page_of_the_command_says_how_long_its_address_lives(living, browser):
    with PageServer(living) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        page = browser.new_page()
        page.goto(server.address)
        page.locator(".in-foot", has_text="while the command runs; with -o page.html").wait_for()
        page.close()
        server.shutdown()


def test_all_of_who_wrote_can_be_reached_in_a_low_window(visit, living):
    page = visit(living)
    page.set_viewport_size({"width": 1280, "height": 600})
    box = page.locator(".in-left").bounding_box()
    assert box["height"] <= 600
    page.locator(".in-who .mm-button").scroll_into_view_if_needed()
    page.evaluate("scrollTo(0, document.body.scrollHeight)")
    page.locator(".in-left").evaluate("(one) => (one.scrollTop = one.scrollHeight)")
    button = page.locator(".in-who .mm-button").bounding_box()
    assert 0 <= button["y"] and button["y"] + button["height"] <= 600


@pytest.fixture
def slow(visit, tmp_path):
    """A page that reads 511 tokens of a model whose heads take long to try, and that never ends its text."""
    folder = tmp_path / "mine"
    own_folder(folder)
    sizes = {"hidden_size": 256, "num_attention_heads": 8, "num_hidden_layers": 4, "intermediate_size": 1024}
    model = own_model(vocab_size=300, max_position_embeddings=600, rope_scaling=None, **sizes)
    with torch.no_grad():
        model.lm_head.weight[model.config.eos_token_id] = 0  # any token above 0 is likelier
    save_checkpoint(model, folder / "model.safetensors")
    page = visit(write(folder, folder))
    page.fill(".in-field", "学习语言模型 " * 200)
    page.locator(".in-count", has_text="511 tokens").wait_for(timeout=60_000)
    settled(page)
    return page


TRYING = '/^[1-9][0-9]* of 32 heads tried…/.test(document.querySelector(".in-tried").innerText)'
WRITTEN = '.in-line [data-written="true"]'


def test_a_long_trial_is_stopped_by_its_button_another_token_and_a_new_text(slow):
    page, tried = slow, slow.locator(".in-tried")
    stopped = re.compile(r"^([1-9]\d*) of 32 heads tried; of the others the second bar is empty")
    try_all = page.get_by_role("button", name="Try without each head")
    press_when(try_all, TRYING, begin=try_all)
    tried.filter(has_text=stopped).wait_for()
    [count] = re.findall(stopped, tried.inner_text())
    drawn = "all => all.filter((one) => parseFloat(one.style.width) > 0).length"
    assert 0 < page.eval_on_selector_all(".in-need i", drawn) <= int(count) < 32
    page.evaluate("() => new Promise((done) => setTimeout(done, 400))")
    assert re.findall(stopped, tried.inner_text()) == [count], "nobody tries on"

    press_when(page.locator(".in-line button").nth(300), TRYING, begin=try_all)
    page.locator(".in-blocks[data-tried=false]").wait_for()
    settled(page)
    assert tried.inner_text() == ""
    page.locator(".in-line button").last.click()
    tried.filter(has_text=stopped).wait_for()

    press_when(page.locator(".in-field"), TRYING, begin=try_all)
    fill(page, "abc")
    assert tried.inner_text() == "" and page.locator(".in-line button").count() < 20
    page.get_by_role("button", name="Try without each head").click()
    tried.filter(has_text="Needed most here").wait_for()
    assert_quiet(page)


def test_playing_writes_until_it_is_stopped(slow):
    page = slow
    fill(page, "学习")
    before = page.locator(".in-line button").count()
    play = page.get_by_role("button", name="Play")
    press_when(play, f"document.querySelectorAll('{WRITTEN}').length > 3", begin=play)
    page.get_by_role("button", name="Play").wait_for()
    settled(page)
    count = page.locator(".in-line button").count()
    assert before + 3 < count < 512
    assert page.locator(WRITTEN).count() == count - before
    page.get_by_role("button", name="Next token").click()
    settled(page)
    assert page.locator(".in-line button").count() == count + 1
    assert_quiet(page)


def test_it_writes_until_the_text_is_full_and_only_text_and_bars_keep_up(slow):
    page = slow
    fill(page, "学习语言模型 " * 33)
    room = 512 - page.locator(".in-line button").count()
    assert 10 < room < 40, "Play writes 40 tokens at a time"
    page.evaluate("""() => {
        globalThis.drawn = { ".in-line": 0, ".in-cache span": 0 };
        for (const name of Object.keys(drawn))
            new MutationObserver(() => drawn[name]++).observe(document.querySelector(name), { childList: true });
    }""")
    page.get_by_role("button", name="Play").click()
    page.locator(".in-complaint", has_text="This page reads 512 tokens, and no more.").wait_for(timeout=60_000)
    page.get_by_role("button", name="Play").wait_for()
    settled(page)
    drawn = page.evaluate("drawn")
    assert drawn[".in-line"] > drawn[".in-cache span"] > 0
    assert "512 tokens ×" in page.inner_text(".in-cache"), "all of it is right when it has stopped"
    assert page.get_by_role("button", name="Play").is_disabled()
    assert page.get_by_role("button", name="Next token").is_disabled()
    page.get_by_role("button", name="Undo").click()
    settled(page)
    assert page.get_by_role("button", name="Play").is_enabled() and page.inner_text(".in-complaint") == ""
    assert_quiet(page)


def test_playing_rests_after_forty_tokens_and_says_so(slow):
    page = slow
    fill(page, "学习")
    before = page.locator(".in-line button").count()
    page.get_by_role("button", name="Play").click()
    page.locator(".in-complaint", has_text="Play has written 40 tokens and rests. Press it to go on.").wait_for()
    settled(page)
    assert page.locator(".in-line button").count() == before + 40
    page.get_by_role("button", name="Play").click()
    wait_until(page, "(most) => document.querySelectorAll('.in-line button').length === most", before + 80)
    page.get_by_role("button", name="Undo").click()
    settled(page)
    assert page.inner_text(".in-complaint") == ""
    assert_quiet(page)


def test_a_model_that_goes_in_circles_is_stopped_and_several_ends_of_lines_share_a_row(visit, tmp_path):
    """It writes nothing but the token of a new line."""
    folder = tmp_path / "mine"
    model = own_folder(folder)
    line = Tokenizer.from_file(f"{folder}/tokenizer.json").encode("\n").ids[0]
    with torch.no_grad():
        model.lm_head.weight.zero_()
        model.model.norm.weight.fill_(1.0)
        model.lm_head.weight[line] = 100 * model.model.norm.weight
        model.model.embed_tokens.weight.abs_()
        for layer in model.model.layers:
            layer.self_attn.o_proj.weight.zero_()
            layer.mlp.down_proj.weight.zero_()
    save_checkpoint(model, folder / "model.safetensors")
    (folder / "tokenizer_config.json").unlink()
    page = visit(write(tmp_path, folder, "--text", "我爱"))
    count = page.locator(".in-line button").count()
    page.get_by_role("button", name="Play").click()
    page.locator(".in-complaint", has_text="It says “⏎” over and over, so Play has stopped.").wait_for()
    settled(page)
    assert page.locator(".in-line button").count() == count + 4
    tops = page.eval_on_selector_all(".in-line button", "all => all.map((one) => one.offsetTop)")
    assert len(set(tops)) == 1 and page.locator(".in-line br").count() == 0
    fill(page, "我\n\n爱\n编")
    assert page.locator(".in-line br").count() == 2
    assert_quiet(page)


@pytest.mark.parametrize(("taught", "shows"), [("zh", "模型从左到右"), ("en", "The model reads")])
@pytest.mark.parametrize("language", ["en", "zh"])
def test_the_first_text_is_one_that_the_vocabulary_writes_in_few_tokens(visit, tmp_path, taught, shows, language):
    texts = {"zh": program.FIRST_TEXTS["zh"][0] * 9, "en": program.FIRST_TEXTS["en"][0] * 9}
    folder = tmp_path / "mine"
    own_folder(folder)
    train_tokens(300, [texts[taught]]).save(str(folder / "tokenizer.json"))
    (folder / "tokenizer_config.json").unlink()
    page = visit(write(tmp_path, folder, "--language", language))
    assert page.input_value(".in-field").startswith(shows)
    assert_quiet(page)


def test_pieces_of_characters_are_explained_where_they_are(visit, own):
    page = visit(own[0])
    page.get_by_role("switch", name="as a chat").uncheck()
    fill(page, "abc")
    assert page.locator(".in-pieces").is_hidden()
    fill(page, "数学")
    assert "tokens that share a character, as 归₁ and 归₂ do" in page.inner_text(".in-pieces")
    page.locator(".in-line button").nth(1).click()
    settled(page)
    assert page.inner_text(".in-bars >> xpath=preceding-sibling::h2").strip().endswith("数₂?"), "not as a bare byte"


def test_every_view_leads_to_its_chapter_and_the_page_to_the_book(visit, living, tmp_path):
    page = visit(living)
    links = book.links("en")
    assert page.get_attribute(".in-home", "href") == links["book"]
    assert page.inner_text(".in-foot").count("the book MiniMind from the inside") == 1
    page.locator(".in-write .mm-more summary").click()
    page.locator(".in-feed").first.click()
    seen = set(page.eval_on_selector_all("a.in-door:visible", "all => all.map((one) => one.getAttribute('href'))"))
    page.locator(".in-name").first.click()
    page.get_by_role("link", name="What runs through a block: chapter 10").wait_for()
    page.locator(".st-head").first.click()
    page.locator(".st-open").get_by_role("link", name="What a head is: chapter 3").wait_for()
    used = ("inside", "tokens", "drawing", "after", "who", "heads", "feed", "cache", "rounding")
    assert seen == {links[name] for name in used}
    beside = visit(write(tmp_path, "--language", "zh", "--book", "../"))
    assert beside.get_attribute(".in-home", "href") == "../book/index.html"
    assert beside.locator(".in-blocks a.in-door").first.inner_text() == "头是什么：第 3 章"
    assert_quiet(page)


def test_the_theme_is_turned_and_remembered(visit, living):
    page = visit(living, theme="dark")
    theme = "document.documentElement.dataset.theme"
    button = page.locator(".in-theme")
    assert page.evaluate(theme) == "dark" and button.get_attribute("aria-label") == "Color mode: dark"
    dark = page.evaluate("getComputedStyle(document.body).backgroundColor")
    button.click()
    assert page.evaluate(theme) == "light" and button.get_attribute("aria-label") == "Color mode: light"
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") != dark
    page.reload()
    page.locator(".in-bar").first.wait_for()
    assert page.evaluate(theme) == "light"
    assert_quiet(page)


def test_its_letters_are_those_of_the_book(visit, living):
    page = visit(living)
    assert page.evaluate("document.fonts.check('16px Book Sans') && [...document.fonts].map((one) => one.status)") == [
        "loaded"
    ]


def test_heads_have_a_scale_of_their_own(visit, living):
    page = visit(living)
    page.locator(".in-who .mm-button").wait_for()
    widths = "all => Math.max(...all.map((one) => parseFloat(one.style.width)))"
    assert page.eval_on_selector_all(".st-head .in-push:not(.in-need) i", widths) == 50
    assert page.eval_on_selector_all(".in-feed .in-push i", widths) == 50


@pytest.mark.parametrize("how", ["rest", "print"])
def test_maps_out_of_sight_are_drawn_after_a_rest_and_for_paper(visit, living, how):
    page = visit(living, 360)
    if how == "print":
        page.evaluate("() => [...document.querySelectorAll('.st-head canvas')].forEach((one) => (one.width = 1))")
        page.fill(".in-field", "Mia is in the hall.")
        settled(page)
        page.evaluate("dispatchEvent(new Event('beforeprint'))")
    drawn = "[...document.querySelectorAll('.st-head canvas')].every((one) => one.width > 1)"
    if how == "print":
        assert page.evaluate(drawn)
    wait_until(page, f"() => {drawn}")
    assert page.locator(".st-head canvas").last.bounding_box()["y"] > 900


def test_a_map_that_scrolls_says_what_is_out_of_sight_and_cuts_no_row(visit, own):
    """By the words that it writes: in the corner how many rows and columns are hidden, and where."""
    page = visit(own[0], 360)
    fill(page, "abc de " * 12)
    page.evaluate("""() => {
        const write = CanvasRenderingContext2D.prototype.fillText;
        globalThis.written = [];
        CanvasRenderingContext2D.prototype.fillText = function (text, ...place) {
            written.push(text);
            return write.call(this, text, ...place);
        };
    }""")
    page.locator(".st-head").first.click()
    wait_until(page, "() => written.some((text) => /^[↑←] \\d+$/.test(text))")
    page.evaluate("() => { written.length = 0; dispatchEvent(new Event('resize')); }")
    wait_until(page, "() => written.length")
    hidden = set(page.evaluate("written.filter((text) => /^[↑↓←→] /.test(text)).map((text) => text[0])"))
    assert hidden == {"↑", "←"}, "the selected token is the last one"
    page.evaluate("() => { written.length = 0; document.querySelector('.st-map').scrollTo(7, 7); }")
    wait_until(page, "() => written.some((text) => text.startsWith('→'))")
    assert not page.evaluate("written.some((text) => /^[↑←] /.test(text))"), "less than half a cell is none"
    sizes = "(one) => [one.clientWidth - 92, one.clientHeight - 84].map((size) => size % 15)"
    assert page.locator(".st-map").evaluate(sizes) == [0, 0], "whole cells"


def test_the_map_of_a_head_says_who_reads_whom(visit, living):
    page = visit(living)
    page.get_by_role("button", name="block 1, head 3").click()
    page.locator(".st-map").scroll_into_view_if_needed()
    box = page.locator(".st-map canvas").bounding_box()
    page.mouse.move(box["x"] + 100, box["y"] + box["height"] - 6)
    page.locator(".st-mapside .mm-note", has_text="in·the reads").wait_for()
    assert re.match(r"in·the reads <s>: [\d.< ]+\s%", page.inner_text(".st-mapside .mm-note"))
    page.mouse.click(box["x"] + 100, box["y"] + 90)
    page.locator('.in-line [aria-current="true"]', has_text="<s>").wait_for()


def test_keys_move_along_the_tokens(visit, living):
    page = visit(living)
    page.locator('.in-line [aria-current="true"]').focus()
    page.keyboard.press("ArrowLeft")
    page.keyboard.press("ArrowLeft")
    assert page.evaluate("document.activeElement.textContent") == "Mia"
    page.keyboard.press("Home")
    assert page.evaluate("document.activeElement.textContent") == "<s>"
    settled(page)
    page.locator(".in-blocks h2", has_text="Inside, at <s>").wait_for()


def test_a_mixture_shows_its_router_and_neurons(visit, tmp_path):
    folder = tmp_path / "mixture"
    own_folder(folder, "minimind2_moe")
    page = visit(write(folder, folder))
    page.locator(".in-feed").nth(1).click()
    page.locator(".in-neurons li").first.wait_for()
    assert page.locator(".in-router li").count() == 4 and page.locator('[data-chosen="true"]').count() == 2
    assert page.locator(".in-neurons li").count() == 6
    box = page.locator(".in-grid").bounding_box()
    page.mouse.move(box["x"] + box["width"] / 2, box["y"] + 5)
    page.locator(".in-routes .mm-note", has_text=re.compile(r": expert \d \([\d.]+\s%\), expert")).wait_for()
    page.mouse.click(box["x"] + 72, box["y"] + 5)
    settled(page)
    assert page.locator(".in-line button").first.get_attribute("aria-current") == "true"
    assert_quiet(page)


def test_names_and_tokens_of_others_are_text(visit, tmp_path):
    folder = tmp_path / "mine"
    own_folder(folder)
    file = folder / "tokenizer.json"
    content = json.loads(file.read_text(encoding="utf-8"))
    content["model"]["vocab"][EVIL] = content["model"]["vocab"].pop("<|im_end|>")
    content["added_tokens"][2]["content"] = EVIL
    file.write_text(json.dumps(content), encoding="utf-8")
    evil = tmp_path / EVIL.replace("/", "")
    folder.rename(evil)
    page = visit(write(evil, evil, "--text", f"a{EVIL}b"))
    assert page.locator("h1").inner_text() == f"Inside {evil.name}"
    assert page.locator(".in-line button", has_text=EVIL.replace(" ", "·")).count() == 1
    assert page.locator("img").count() == 0 and page.title() == f"Inside {evil.name}"
    assert_quiet(page)


def test_without_a_tokenizer_ids_are_written(visit, tmp_path):
    path = save_checkpoint(own_model(), tmp_path / "bare.safetensors")
    page = visit(write(tmp_path, path, "--bits", "32"))
    assert page.locator(".in-steps li").first.inner_text().endswith("Write token ids.")
    fill(page, "4 5 60")
    p = logits_of(from_checkpoint(path), [4, 5, 60])[-1].softmax(-1)
    assert bars(page)[0] == [str(int(p.argmax())), percent(p.max().item())]
    page.fill(".in-field", "61")
    page.locator(".in-complaint", has_text="write ids from 0 to 60").wait_for()


def test_a_long_text_is_cut_and_stays_quick(visit, tmp_path):
    folder = tmp_path / "mine"
    own_folder(folder)
    model = own_model(vocab_size=300, max_position_embeddings=600, rope_scaling=None)
    save_checkpoint(model, folder / "model.safetensors")
    page = visit(write(folder, folder))
    page.fill(".in-field", "学习语言模型 " * 200)
    page.locator(".in-complaint", has_text="this page reads the first 511").wait_for()
    page.locator(".in-count", has_text="511 tokens").wait_for(timeout=60_000)
    page.get_by_role("button", name="block 2, head 4").click()
    settled(page)
    seen = page.evaluate("""() => {
        const box = document.querySelector(".st-map");
        const { width, height } = box.querySelector("canvas").getBoundingClientRect();
        return [box.scrollHeight > 7000, width <= box.clientWidth, height <= 440, box.scrollTop > 6000];
    }""")
    assert seen == [True, True, True, True]
    assert_quiet(page)


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("width", [1280, 360])
def test_it_fits_and_can_be_used_by_everybody(visit, own, living, width, theme):
    for file in (own[0], living):
        page = visit(file, width, theme)
        page.evaluate(Axe().axe_script)
        assert axe_problems(page) == []
        page.locator(".st-head").nth(2).click()
        page.get_by_text("How a token is drawn").click()
        page.get_by_role("switch", name="silence this head").check()
        page.locator(".in-number small").first.wait_for()
        assert page.evaluate("document.documentElement.scrollWidth") <= width
        assert page.evaluate("document.documentElement.dataset.theme") == theme
        assert axe_problems(page) == []
        page.locator(".in-feed").first.click()
        page.locator(".in-neurons li").first.wait_for()
        assert page.evaluate("document.documentElement.scrollWidth") <= width
        assert axe_problems(page) == []
        page.get_by_role("button", name="Pin, to compare").click()
        page.locator(".in-name").first.click()
        page.get_by_role("switch", name="silence this whole block").check()
        settled(page)
        assert page.evaluate("document.documentElement.scrollWidth") <= width
        assert axe_problems(page) == []


# What stays Latin on the Chinese page: names, units, and the words of the model's own world.
LATIN = {"MiniMind", "token", "logit", "logits", "PyTorch", "QK", "norm", "KV", "KiB", "MiB", "top", "k", "p", "s"}


@pytest.mark.parametrize("width", [1280, 360])
def test_it_speaks_chinese_in_every_part(visit, tmp_path, width):
    page = visit(write(tmp_path, "--language", "zh"), width)
    told = []

    def look():
        settled(page)
        assert page.evaluate("document.documentElement.scrollWidth") <= width
        told.extend(page.evaluate(TEXTS))

    assert page.inner_text(".in-check").startswith("已核对：logits 与 PyTorch 相")
    page.get_by_text("怎样抽取 token").click()
    look()
    page.locator(".st-head").nth(2).click()
    page.get_by_role("switch", name="让这个头静音").check()
    look()
    page.get_by_role("button", name="钉住，用来对比").click()
    page.get_by_role("button", name="把每个头轮流去掉试试").click()
    page.get_by_text("这里最离不开的：").wait_for()
    look()
    page.locator(".in-feed").first.click()
    page.locator(".in-neurons li").first.wait_for()
    look()
    page.locator(".in-name").first.click()
    look()
    assert {word for text in told for word in re.findall(r"[A-Za-z]+", text)} <= LATIN | set(
        " ".join(world.WORDS).split()
    )
    assert_quiet(page)


@pytest.mark.parametrize("kind", [Firefox, WebKit], ids=lambda kind: kind.name)
def test_other_engines_run_it_from_a_file(own, kind):
    engine = start(kind)
    try:
        engine.open(own[0].as_uri())
        engine.wait_until("/Checked|differs/.test(document.querySelector('.in-check')?.textContent)")
        said = engine.evaluate("return document.querySelector('.in-check').textContent")
        engine.evaluate("document.querySelector('.in-theme').click()")
        assert engine.evaluate("return document.documentElement.dataset.theme") == "dark"
        engine.wait_until("document.fonts.check('16px Book Sans')")
        assert said == "Checked: the same logits as PyTorch and the same tokens."
        engine.wait_until("document.querySelector('.in-says b')?.textContent")
        assert engine.evaluate("return document.querySelectorAll('.in-bar').length") == 8
    finally:
        engine.close()


def test_a_map_is_kept_as_a_picture_and_as_a_link_to_what_is_open(living, visit):
    """The policy of the page lets nothing in or out, and a file goes to its reader all the same."""
    page = visit(living)
    page.locator(".st-head").nth(3).click()
    keeper = page.locator(".st-open .mm-keep")
    keeper.locator("summary").click()
    for kind, begins in {"SVG": b"<svg", "PNG": b"\x89PNG"}.items():
        with page.expect_download() as found:
            keeper.get_by_role("button", name=kind).click()
        kept = found.value.path().read_bytes()
        assert kept.startswith(begins) and len(kept) > 10_000
        keeper.get_by_role("button", name=kind).wait_for()
        if kind == "SVG":
            words = re.findall(r">([^<>]+)</t", kept.decode("utf-8"))
            assert {"Block 1, head 4", "silence this head", "kitchen"} <= set(words) and "×" not in words
    keeper.get_by_role("button", name="Link").click()
    keeper.get_by_role("button", name="In the address bar").wait_for()
    assert page.url.endswith("open=head.0.3")
    again = page.context.new_page()
    again.goto(page.url)
    again.locator(".st-open .st-title", has_text="Block 1, head 4").wait_for()
    assert_quiet(page)
