"""verdicts.picture: the curve of a log with numbers where verdicts point, in each form."""

import re

import matplotlib.image
import pytest
from situations import NAN, curve, write_log

from minimind_edu.verdicts import picture
from minimind_edu.verdicts.curve import check_log, stage_of
from minimind_edu.verdicts.log import read_log


@pytest.fixture
def jumped(tmp_path):
    """A log that jumps after a resume, and its verdicts."""
    before = curve((0, 2.2), (6000, 1.5), noise=0.1)
    places = [*before, "Epoch [1/1]: 跳过前6000个step，从step 6001开始", *((6100 + 100 * n, 3.7) for n in range(12))]
    log = read_log(write_log(tmp_path / "full_sft.log", places))
    return log, check_log(log)


def drawn(log, verdicts, language="en"):
    return picture.draw(log, verdicts, stage_of(log), language=language)


def words_of(svg):
    return re.findall(r">([^<>]+)</text>", svg)


def test_verdicts_with_a_step_are_numbered_on_the_curve_and_in_its_description(jumped):
    log, verdicts = jumped
    shown = drawn(log, verdicts)
    assert [verdict.about for verdict in picture.marks(verdicts)] == ["start", "jump"]
    assert {"1", "2", "step", "loss, nats a token"} <= set(words_of(shown.svg))
    assert "2 resumed at step 6,100, it rises from" in shown.alt
    assert shown.svg.count("#d6554d") > 0, "a fault is red"


def test_pretraining_is_drawn_before_the_runs_of_others_and_dpo_beside_ln_2(tmp_path):
    log = read_log(write_log(tmp_path / "pretrain.log", curve((0, 8.9), (2000, 3.0))))
    assert {"#26 (26.9M)", "#634 (7.3M)", "ln V = 8.76"} <= set(words_of(drawn(log, check_log(log)).svg))
    dpo = read_log(write_log(tmp_path / "dpo.log", curve((0, 0.6931), (2000, 0.6))))
    words = words_of(drawn(dpo, check_log(dpo)).svg)
    assert "ln 2 = 0.693" in words and not any(word.startswith("#") for word in words)


def test_a_log_without_one_number_is_drawn_too(tmp_path):
    log = read_log(write_log(tmp_path / "pretrain.log", [(0, NAN), (100, NAN)]))
    assert "the first one already" in drawn(log, check_log(log)).alt


def test_each_form_is_written(jumped, tmp_path):
    log, verdicts = jumped
    shown = drawn(log, verdicts)
    png = picture.write(shown, verdicts, tmp_path / "curve.png")
    height, width, _ = matplotlib.image.imread(png).shape
    assert width > 1000 and height > 400
    assert picture.write(shown, verdicts, tmp_path / "curve.svg").read_text(encoding="utf-8") == shown.svg
    page = picture.write(shown, verdicts, tmp_path / "curve.html").read_text(encoding="utf-8")
    assert page.count("<li ") == len(verdicts)
    assert '<b>2 · wrong</b> <span>jump</span> <span class="finding">resumed at step 6,100' in page
    assert "http" not in page.replace("http://www.w3.org/2000/svg", "") and page.count("<svg ") == 2
    with pytest.raises(ValueError, match=r"must end in .png, .svg, .html, got 'curve.pdf'"):
        picture.write(shown, verdicts, tmp_path / "curve.pdf")


def test_in_chinese_a_page_needs_no_font_and_a_png_one(jumped, tmp_path, monkeypatch):
    log, verdicts = jumped
    shown = drawn(log, verdicts, "zh")
    page = picture.write(shown, verdicts, tmp_path / "curve.html", "zh").read_text(encoding="utf-8")
    assert 'lang="zh-CN"' in page and "<b>2 · 有误</b> <span>跳升</span>" in page and "步" in words_of(page)
    monkeypatch.setattr(picture, "_FONTS", ("no such font",))
    with pytest.raises(ValueError, match="no font of this machine has Chinese letters"):
        picture.write(shown, verdicts, tmp_path / "curve.png", "zh")
    assert not (tmp_path / "curve.png").exists()
