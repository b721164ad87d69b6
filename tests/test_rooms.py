"""The rooms of the package stand on each other in one direction, and no part of the model on another room."""

import ast
from collections import defaultdict
from graphlib import TopologicalSorter
from importlib.util import resolve_name
from pathlib import Path

import minimind_edu

PACKAGE = Path(minimind_edu.__file__).parent
UNDER_THE_MODEL = {"device", "validation", "words"}


def room_of(module: str) -> str:
    """`model` for minimind_edu.model.rope; nothing for the package itself, which only passes names on."""
    return module.removeprefix("minimind_edu").lstrip(".").split(".")[0]


def rooms_below() -> dict[str, set[str]]:
    """Each room with those that its files import, wherever in the file."""
    below = defaultdict(set)
    for path in PACKAGE.rglob("*.py"):
        parts = path.relative_to(PACKAGE).with_suffix("").parts
        package = ".".join(["minimind_edu", *parts[:-1]])
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            modules = []
            if isinstance(node, ast.ImportFrom):
                base = resolve_name("." * node.level + (node.module or ""), package)
                modules = [f"{base}.{name.name}" if base == "minimind_edu" else base for name in node.names]
            elif isinstance(node, ast.Import):
                modules = [name.name for name in node.names]
            below[parts[0]] |= {room_of(module) for module in modules if module.split(".")[0] == "minimind_edu"}
    names = {path.stem for path in PACKAGE.iterdir()}  # the package's own names, such as from_checkpoint, are no rooms
    return {room: (others & names) - {room} for room, others in below.items()}


def test_no_room_stands_on_one_that_stands_on_it():
    assert len(list(TopologicalSorter(rooms_below()).static_order())) > 10, "a circle raises a CycleError that names it"


def test_no_part_of_the_model_imports_another_room():
    assert rooms_below()["model"] <= UNDER_THE_MODEL
