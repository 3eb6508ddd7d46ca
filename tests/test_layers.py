"""Imports point one way: a room of the house imports only rooms that stand before it."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

import mlfbuild

PACKAGE = Path(mlfbuild.__file__).parent

ROOMS = (
    "core", "targets", "project", "graph", "frontends", "cgen", "c_analysis", "library", "archive", "compilers",
    "executor", "requirements", "build", "verify", "report", "usecases",
)  # fmt: skip
DRIVERS = {"scons": {*ROOMS, "scons"}, "cli": {*ROOMS, "cli"}}


def room_of(module: str) -> str:
    parts = module.split(".")
    return parts[1] if len(parts) > 1 else ""


def imports_of(path: Path) -> set[str]:
    """The rooms that the file at ``path`` imports."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: relative imports hide the room"
            assert node.module is not None
            names = [f"mlfbuild.{alias.name}" for alias in node.names]
            found |= set(names) if node.module == "mlfbuild" else {node.module}
    return {room_of(name) for name in found if name.split(".")[0] == "mlfbuild"} - {"", "__version__"}


def allowed(room: str) -> set[str]:
    if room in DRIVERS:
        return DRIVERS[room]
    return set(ROOMS[: ROOMS.index(room) + 1])


FILES = sorted(
    path for path in PACKAGE.rglob("*.py") if path.parent != PACKAGE or path.stem not in {"__init__", "__main__"}
)


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(PACKAGE)))
def test_imports_point_one_way(path: Path) -> None:
    room = path.relative_to(PACKAGE).parts[0].removesuffix(".py")
    assert imports_of(path) <= allowed(room)


def test_only_the_cli_prints_and_exits() -> None:
    for path in FILES:
        calls = {
            n.func.id
            for n in ast.walk(ast.parse(path.read_text()))
            if isinstance(n, ast.Call) and isinstance(n.func, ast.Name)
        }
        if path.relative_to(PACKAGE).parts[0] != "cli":
            assert not calls & {"print", "exit", "quit"}, f"{path} prints or exits"


def test_only_the_scons_room_imports_scons() -> None:
    for path in FILES:
        if path.relative_to(PACKAGE).parts[0] != "scons":
            assert "import SCons" not in path.read_text() and "from SCons" not in path.read_text(), path
