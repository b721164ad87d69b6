"""What a reader keeps of a page: the files that its button hands over, and how far they are from what is seen."""

import io
import xml.etree.ElementTree as ET

import numpy as np
from PIL import Image, ImageFilter

SVG = "{http://www.w3.org/2000/svg}"
MARGIN = 14  # pixels, that keep.js puts around a part of a page without a margin of its own


def open_menu(keeper):
    keeper.locator("summary").click()
    keeper.get_by_role("button", name="PNG").wait_for()


def handed_over(page, keeper, kind):
    """The name and the bytes of the file that a press on `kind` hands over; the menu is open."""
    with page.expect_download() as found:
        keeper.get_by_role("button", name=kind).click()
    content = found.value.path().read_bytes()
    keeper.get_by_role("button", name=kind).wait_for()  # until it says its name again
    return found.value.suggested_filename, content


def address_in(svg):
    """Where a picture says that it is found."""
    return ET.fromstring(svg).find(f"{SVG}desc").text


def words_in(svg):
    """All texts of a picture, one after the other."""
    return "".join(text for one in ET.fromstring(svg).iter(f"{SVG}text") for text in one.itertext())


def pixels_of(content):
    return Image.open(io.BytesIO(content)).convert("RGB")


def halved(image):
    """As large as on the page: a PNG has two pixels for one of the page."""
    return image.resize((image.width // 2, image.height // 2), Image.Resampling.BOX)


def far_apart(here, there):
    """Of the pixels of two pictures, the share that differs; letters may be a pixel elsewhere."""
    size = (min(here.width, there.width), min(here.height, there.height))
    pixels = [np.asarray(one.crop((0, 0, *size)).filter(ImageFilter.BoxBlur(3)), dtype=float) for one in (here, there)]
    return float((np.abs(pixels[0] - pixels[1]).max(-1) > 24).mean())


def alone(browser, file, size):
    """A picture's file by itself in a window of this size, as pixels."""
    page = browser.new_page(viewport={"width": size[0], "height": size[1]})
    page.goto(file.as_uri())
    shot = page.screenshot(animations="disabled")
    page.close()
    return pixels_of(shot)
