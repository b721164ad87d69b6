"""What axe-core finds on a page, and how it finds it in a tenth of the time."""

COLORS = "color-contrast"  # the one rule about colors, and as much work as all others together

# A page has thousands of words in a few dozen colors, and one of each kind is enough: of the words whose element, its
# parent, size and colors are alike, the first one that can be seen and has more than the one letter that axe does not
# judge. In a figure, where words lie on shapes, each is looked at.
FIRST_OF_ITS_KIND = """() => {
    const kinds = new Set();
    const background = (one) => {
        const color = one ? getComputedStyle(one).backgroundColor : "";
        return color === "rgba(0, 0, 0, 0)" ? background(one.parentElement) : color;
    };
    return (word) => {
        if (!word.checkVisibility() || word.textContent.trim().length < 2) return false;
        if (word.closest(".minimind-figure")) return true;
        const { color, fontSize, fontWeight } = getComputedStyle(word);
        const names = [word, word.parentElement].flatMap((one) => [one.tagName, one.className]);
        const kind = [...names, color, fontSize, fontWeight, background(word)].join();
        return !kinds.has(kind) && Boolean(kinds.add(kind));
    };
}"""

# Words of code are spans for their color only: without it they are plain text, and axe has a tenth to look through.
# All are looked at before the first one is changed, else the page would be laid out anew for each.
FEW_COLORED_WORDS_OF_CODE = f"""() => {{
    const isFirst = ({FIRST_OF_ITS_KIND})();
    const words = [...document.querySelectorAll(".highlight span[class]")];
    for (const word of words.filter((one) => !isFirst(one))) word.replaceWith(...word.childNodes);
}}"""

# The colors of these words are judged.
ONE_WORD_OF_EACH_KIND = f"""() => {{
    const isFirst = ({FIRST_OF_ITS_KIND})();
    const hasWords = (one) => [...one.childNodes].some((node) => node.nodeType === 3 && node.data.trim());
    const words = [...document.body.querySelectorAll("*")].filter(hasWords).filter(isFirst);
    document.querySelectorAll("[data-judged]").forEach((one) => delete one.dataset.judged);
    words.forEach((word) => (word.dataset.judged = ""));
    axe.configure({{ rules: [{{ id: "{COLORS}", selector: "[data-judged]" }}] }});
    return words.length;
}}"""

# Serious and critical findings of axe-core, one line each. Other rules are not run, and it loads nothing: pages have
# their styles inside, and neither sound nor film.
PROBLEMS = """async (names) => {
    const isGrave = ({ impact, enabled, tags }) =>
        ["serious", "critical"].includes(impact) && enabled && !tags.includes("experimental");
    const grave = axe._audit.rules.filter(isGrave).map((rule) => rule.id);
    const runOnly = names.only ?? grave.filter((id) => !names.without?.includes(id));
    const { violations } = await axe.run({ resultTypes: ["violations"], preload: false, runOnly });
    return violations.flatMap(({ id, nodes }) =>
        nodes.map(({ html, failureSummary }) => `${id}: ${html.slice(0, 150)} ${failureSummary.slice(0, 300)}`));
}"""


def axe_problems(page, **names: list[str]) -> list[str]:
    """What axe-core finds: with `only` these rules, or with all that are grave `without` these."""
    return page.evaluate(PROBLEMS, names)
