"""Every import, also those inside functions, goes down the layers of docs/architecture.md."""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parents[1] / "src" / "cuda_l1"

LAYERS: dict[str, int] = {
    "types": 0, "errors": 0, "interruption": 0, "ratios": 0, "texts": 0, "validation": 0,
    "config": 1, "exactness": 1, "scoring": 1, "tasks": 1, "archive": 1, "prelude": 1, "prompts": 1, "endpoint": 1,
    "proposers": 2, "evaluator": 2, "reviewer": 2,
    "search": 3, "training": 3,
    "report": 4, "export": 4,
    "api": 5, "cli": 5,
}  # fmt: skip
DOORS = {"__init__", "__main__"}
"""What the package is entered by; it belongs to no room."""
NEIGHBOURS = {1, 5}
"""Layers whose rooms may look into each other, as long as no cycle arises."""
FORBIDDEN = {("report", "evaluator"), ("export", "evaluator"), ("report", "proposers"), ("export", "proposers"),
             ("report", "search"), ("export", "search"), ("report", "reviewer"), ("export", "reviewer"),
             ("reviewer", "archive"), ("training", "evaluator")}  # fmt: skip
"""Report and export see records only; the search hands them over. Training gets its verdicts from the search."""
SIDEWAYS = {("training", "search")}
"""The one look into a neighbour that is allowed outside of NEIGHBOURS."""


def test_the_page_has_the_same_layers() -> None:
    page = (PACKAGE.parents[1] / "docs" / "architecture.md").read_text()
    rows = re.findall(r"^\| (\d) \| ([^|]+) \|", page, re.MULTILINE)
    assert {room: int(layer) for layer, rooms in rows for room in re.findall(r"`(\w+)`", rooms)} == LAYERS
    found = {path.stem for path in PACKAGE.iterdir() if path.suffix == ".py" or (path / "__init__.py").exists()}
    assert found - DOORS == set(LAYERS)


def modules() -> list[Path]:
    return sorted(path for path in PACKAGE.rglob("*.py") if "builtin" not in path.parts)


def name_of(path: Path) -> str:
    parts = path.relative_to(PACKAGE.parent).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def imports(path: Path) -> Iterator[str]:
    """Every module that a file imports: absolute names, `from x import y` as `x.y` (y may be a module)."""
    package = name_of(path) if path.name == "__init__.py" else name_of(path).rpartition(".")[0]
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = package.split(".")[: len(package.split(".")) - node.level + 1] if node.level else []
            module = ".".join([*base, *([node.module] if node.module else [])])
            yield from (f"{module}.{alias.name}" for alias in node.names)


def room(module: str) -> str | None:
    """The room of a module of ours: its first name below the package; None for the package itself and for others."""
    parts = module.split(".")
    return parts[1] if parts[0] == "cuda_l1" and len(parts) > 1 and parts[1] in LAYERS else None


@pytest.mark.parametrize("path", modules(), ids=name_of)
def test_imports_go_down_the_layers(path: Path) -> None:
    own = room(name_of(path))
    if own is None:
        assert path.parent == PACKAGE and path.stem in DOORS, f"{path} belongs to no room of the layer table"
        return
    for module in imports(path):
        other = room(module)
        if other is None or other == own:
            continue
        sideways = LAYERS[other] == LAYERS[own] and (LAYERS[own] in NEIGHBOURS or (own, other) in SIDEWAYS)
        assert LAYERS[other] < LAYERS[own] or sideways, f"{name_of(path)} imports {module}"
        assert (own, other) not in FORBIDDEN, f"{name_of(path)} imports {module}"


@pytest.mark.parametrize("path", [p for p in modules() if "guest" in p.parts], ids=name_of)
def test_guests_import_the_standard_library_torch_and_each_other(path: Path) -> None:
    guest = "cuda_l1.evaluator.guest"
    for module in imports(path):
        first = module.split(".")[0]
        assert first in sys.stdlib_module_names or first == "torch" or module.startswith(guest), module


def targets(path: Path, known: set[str]) -> set[str]:
    """The files that an import executes: the module itself, or the one that a name lies in."""
    found = set()
    for module in imports(path):
        exact = module if module in known else module.rpartition(".")[0]
        if exact in known and exact != name_of(path):
            found.add(exact)
    return found


def test_no_module_imports_itself_in_a_circle() -> None:
    """Also through imports inside functions, and those that only a type checker reads."""
    known = {name_of(path): path for path in modules()}
    graph = {name: targets(path, set(known)) for name, path in known.items()}
    graph["cuda_l1.evaluator.guest.life"].discard("cuda_l1.evaluator.guest.keeper")  # one function of it
    # A package's `__init__` that names its own modules is a door, not a cycle, as long as they do not look back at it.
    done: set[str] = set()

    def walk(name: str, trail: tuple[str, ...]) -> None:
        assert name not in trail, " -> ".join([*trail[trail.index(name) :], name])
        if name in done:
            return
        for other in sorted(graph[name]):
            walk(other, (*trail, name))
        done.add(name)

    for name in sorted(graph):
        walk(name, ())


def test_rooms_form_no_circle() -> None:
    """Also through imports inside functions."""
    graph: dict[str, set[str]] = {}
    for path in modules():
        own = room(name_of(path))
        if own:
            graph.setdefault(own, set()).update(r for m in imports(path) if (r := room(m)) and r != own)
    order: list[str] = []
    while graph:
        free = sorted(name for name, others in graph.items() if not others & graph.keys())
        assert free, f"a circle among {sorted(graph)}"
        order += free
        graph = {name: others for name, others in graph.items() if name not in free}


def test_proposers_name_no_task() -> None:
    """A technique that knows a workload by name would find nothing in anybody else's."""
    import torch

    names = {path.stem for path in (PACKAGE / "tasks" / "builtin").glob("[a-z]*.py")}
    # A technique may be called as the workload that shows it off, and PyTorch has operators of such names.
    names -= {path.stem for path in (PACKAGE / "proposers").rglob("*.py")}
    names -= set(dir(torch)) | set(dir(torch.nn.functional))
    for path in (PACKAGE / "proposers").rglob("*.py"):
        nodes = ast.walk(ast.parse(path.read_text()))
        words = {w for n in nodes if isinstance(n, ast.Constant) for w in re.findall(r"\w+", str(n.value))}
        assert not words & names, f"{path} names {words & names}"
