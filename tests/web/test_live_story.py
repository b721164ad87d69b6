"""The reader's story: read from the address, kept by the browser, told to all figures, and never in the way."""

import pytest
from browser import ORIGIN, serve

from minimind_edu import world

TOLD = "Mia is in the hall. 汤姆在花园。"

# In the page: everything that story.js does, with the world as createWorld makes it.
WITH_STORY = """async ([tables, body]) => {
    const [story, { createWorld }] = await Promise.all([import("/web/live/story.js"), import("/web/live/world.js")]);
    const world = createWorld(tables);
    return await new Function("story", "world", `return (async () => { ${body} })()`)(story, world);
}"""


ADDRESSES = {
    "#story=Leo_is_in_the_barn.": ("Leo is in the barn.", None),
    "#story=Leo_is_in_the_barn.&part=head-4-2": ("Leo is in the barn.", "head-4-2"),
    "#part=norm-1": (None, "norm-1"),
    "#story=%E4%B&part=norm-1": (None, "norm-1"),  # cut within an escape
    "#story=": ("", None),
    "#figure-1": (None, None),
    "": (None, None),
}


def ids_of(text: str) -> list[int]:
    return world.encode(f"<s> {text}").tolist()


@pytest.mark.parametrize("address, told", ADDRESSES.items())
def test_an_address_names_a_story_and_a_part(node, address, told):
    assert tuple(node.call("web/live/story", name, [address]) for name in ("storyInHash", "partInHash")) == told


@pytest.mark.parametrize("text", [TOLD, "where is Mia? in the hall.", "汤姆在花园。⇒ Tom is in the garden."])
def test_the_address_of_a_story_leads_to_it(node, text):
    hashed = """async ([tables, ids]) => {
        const story = await import("/web/live/story.js"), { createWorld } = await import("/web/live/world.js");
        const address = story.hashOfStory(ids, createWorld(tables));
        return [address, story.storyInHash(address)];
    }"""
    address, read = node.evaluate(hashed, [world.tables(), ids_of(text)])
    assert world.encode(read).tolist() == ids_of(text)[1:] and not set(" ?。⇒") & set(address)


# In a window, with an address, storage and other tabs


@pytest.fixture
def blank(page):
    """A page without a story."""
    serve(page)
    page.evaluate("localStorage.clear()")
    yield page
    page.evaluate("localStorage.clear()")


def call(page, body: str):
    return page.evaluate(WITH_STORY, [world.tables(), body])


def test_the_address_comes_before_what_was_kept_and_that_before_the_default(blank):
    assert call(blank, 'return story.storyOf(world, "Tom is in the attic.")') == ids_of("Tom is in the attic.")
    call(blank, f'story.keepStory([0, ...world.encode("{TOLD}")], world)')
    assert call(blank, 'return story.storyOf(world, "Tom is in the attic.")') == ids_of(TOLD)
    address = call(blank, 'return story.hashOfStory([0, ...world.encode("Leo is in the barn.")], world)')
    assert address == "#story=Leo_is_in_the_barn."
    blank.goto(f"{ORIGIN}/{address}")
    assert call(blank, "return story.storyOf(world)") == ids_of("Leo is in the barn.")


@pytest.mark.parametrize("address", ["#story=the_house_is_on_fire", "#story=%E4%B", "#figure-1"])
def test_an_address_without_a_story_of_this_world_is_passed_over(blank, address):
    blank.goto(f"{ORIGIN}/{address}")
    assert call(blank, f'return story.storyOf(world, "{TOLD}")') == ids_of(TOLD)


def test_only_who_asks_for_it_writes_the_address(blank):
    call(blank, f'story.keepStory([0, ...world.encode("{TOLD}")], world)')
    assert "#" not in blank.url
    call(blank, f'story.keepStory([0, ...world.encode("{TOLD}")], world, {{ inAddress: true }})')
    blank.reload()
    blank.evaluate("localStorage.clear()")
    assert call(blank, "return story.storyOf(world)") == ids_of(TOLD)


def test_other_figures_other_tabs_and_the_address_are_heard_until_the_clean_up(blank):
    heard = call(
        blank,
        """const heard = [];
        const stop = story.onStory(world, (ids) => heard.push(world.decode(ids.slice(1))));
        const tell = (text) => story.keepStory([0, ...world.encode(text)], world);
        tell("Mia is in the hall.");
        dispatchEvent(new StorageEvent("storage", { key: "minimind-story", newValue: "Tom is in the hall." }));
        dispatchEvent(new StorageEvent("storage", { key: "something else", newValue: "Tom is in the barn." }));
        dispatchEvent(new StorageEvent("storage", { key: "minimind-story", newValue: "no story" }));
        location.hash = "#story=Leo_is_in_the_hall.";
        await new Promise((done) => addEventListener("hashchange", done, { once: true }));
        stop();
        tell("Zoe is in the hall.");
        return heard;""",
    )
    assert heard == [f"{name} is in the hall." for name in ("Mia", "Tom", "Leo")]


def test_where_storage_is_forbidden_the_address_still_works(blank):
    blank.evaluate(
        """window.own = Object.getOwnPropertyDescriptor(window, "localStorage");
        const get = () => { throw new DOMException("no"); };
        Object.defineProperty(window, "localStorage", { get, configurable: true });"""
    )
    call(blank, f'story.keepStory([0, ...world.encode("{TOLD}")], world, {{ inAddress: true }})')
    assert call(blank, "return story.storyOf(world)") == ids_of(TOLD)
    blank.evaluate("Object.defineProperty(window, 'localStorage', window.own); 0")


def test_an_address_may_name_a_part_after_the_story(blank):
    blank.goto(f"{ORIGIN}/#story=Leo_is_in_the_barn.&part=head-4-2")
    assert call(blank, "return story.storyOf(world)") == ids_of("Leo is in the barn.")
