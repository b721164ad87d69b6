"""Where the book is published, and which of its pages explains what a page outside of it shows."""

# `make refresh` writes here what _config.yml says: an installed package has no other way to know.
ADDRESS = "https://minimind-edu.github.io/minimind-edu/"
FOLDERS = {"en": "", "zh": "zh/"}  # of the editions
EXPLAINED = {
    "book": "book/index",
    "inside": "book/own_model",
    "verse": "book/verse",
    "rhyme": "chapters/16_a_real_text",
    "tokens": "chapters/01_whole_model",
    "drawing": "chapters/12_generation",
    "after": "chapters/12_generation",
    "who": "chapters/10_block_and_model",
    "heads": "chapters/03_attention",
    "feed": "chapters/08_swiglu",
    "experts": "chapters/09_mixture_of_experts",
    "block": "chapters/10_block_and_model",
    "cache": "chapters/07_kv_cache",
    "rounding": "chapters/15_fewer_bytes",
}


def links(language: str, address: str | None = None) -> dict[str, str]:
    """Of each thing in `EXPLAINED` the address of its page in a language.

    Args:
        language: "en" or "zh".
        address: of the folder of that edition, if it is not the published one; it may be relative.
    """
    folder = ADDRESS + FOLDERS[language] if address is None else address
    return {name: f"{folder}{page}.html" for name, page in EXPLAINED.items()}
