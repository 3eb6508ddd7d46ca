"""The house: imports go one way and through the faces of rooms, without circles, and a name means one thing."""

from __future__ import annotations

import ast
from collections import Counter, defaultdict
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest

import mlfbuild

PACKAGE = Path(mlfbuild.__file__).parent

ROOMS = (
    "core", "cache", "targets", "farm", "c_analysis", "library", "ethos_u", "native", "datasets", "quantization",
    "evaluation", "exploration", "project", "archive", "compilers", "executor", "requirements", "jobs", "timing",
    "runners", "verify", "report", "usecases",
)  # fmt: skip
"""A room imports only rooms before it."""
DRIVERS = {"scons", "cli", "pytest_plugin"}
"""These import any room, but not each other."""
WING = {"core", "farm", "targets", "library", "ethos_u"}
"""The rooms that the native compiler may import, so that it can become a distribution of its own."""
NATIVE = ("graph", "frontends", "kernels", "lowering", "memory", "passes", "printing", "graph_executor")
"""The parts of the native compiler: a part imports only parts before it."""

MODULES = {
    ".".join(path.relative_to(PACKAGE.parent).with_suffix("").parts).removesuffix(".__init__"): path
    for path in sorted(PACKAGE.rglob("*.py"))
}
FACES = {name for name, path in MODULES.items() if path.stem == "__init__"}
INSIDE = {name: path for name, path in MODULES.items() if name.count(".") >= 1 and name != "mlfbuild.__main__"}


@cache
def tree(module: str) -> ast.Module:
    return ast.parse(MODULES[module].read_text())


@cache
def nodes(module: str) -> dict[type[ast.AST], list[Any]]:
    """Return the nodes of ``module`` by their type, from the only walk through it."""
    found: dict[type[ast.AST], list[Any]] = defaultdict(list)
    for node in ast.walk(tree(module)):
        found[type(node)].append(node)
    return found


def room_of(module: str) -> str:
    return module.split(".")[1] if "." in module else ""


def is_for_type_checkers(node: ast.stmt) -> bool:
    return isinstance(node, ast.If) and isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING"


@cache
def imports(module: str) -> tuple[tuple[str, str], ...]:
    """Return each import of ``module``: a module of the package, and the name that is taken of it, or ``""``."""
    names = [(alias.name, "") for node in nodes(module)[ast.Import] for alias in node.names]
    for node in nodes(module)[ast.ImportFrom]:
        assert node.level == 0, f"{module}: relative imports hide the room"
        names += [(node.module, alias.name) for alias in node.names]
    return tuple((name, taken) for name, taken in names if name.split(".")[0] == "mlfbuild")


@cache
def face_names(face: str) -> dict[str, str]:
    """Return what a face lists: each name, with the module that defines it."""
    blocks = [node for node in tree(face).body if is_for_type_checkers(node)]
    found = [node for block in blocks for node in ast.walk(block) if isinstance(node, ast.ImportFrom)]
    return {alias.name: node.module or "" for node in found for alias in node.names}


def test_imports_go_one_way_and_through_faces() -> None:
    for module in INSIDE:
        room = room_of(module)
        for imported, name in imports(module):
            other = room_of(imported) or (name if f"mlfbuild.{name}" in MODULES else "")
            if other in {"", room}:
                continue
            why = f"{module} imports {imported}"
            assert other in ROOMS and (room in DRIVERS or ROOMS.index(other) < ROOMS.index(room)), why
            assert room != "native" or other in WING, why
            assert imported in FACES, f"{why} past the face of its room"
            assert other != "native" or imported in {"mlfbuild", "mlfbuild.native"}, why


@pytest.mark.parametrize("part", NATIVE)
def test_parts_of_the_native_compiler_are_entered_by_their_faces_and_in_order(part: str) -> None:
    face = f"mlfbuild.native.{part}"
    later = tuple(f"mlfbuild.native.{other}" for other in NATIVE[NATIVE.index(part) + 1 :])
    for module in MODULES:
        found = [imported for imported, _ in imports(module)]
        if f"{module}.".startswith(f"{face}."):
            assert not [imported for imported in found if imported.startswith(later)], module
        elif module != "mlfbuild.native":  # the face of the room lists modules, so that a name loads one of them
            assert not [name for name in found if name.startswith(f"{face}.") and name not in FACES], module


def defined_names(module: str) -> Iterator[str]:
    """Yield the names that ``module`` defines or imports, and those of a sub-folder whose face it is."""
    if module in FACES:
        yield from face_names(module)
    for statement in tree(module).body:
        yield getattr(statement, "name", "")
        if isinstance(statement, (ast.Assign, ast.AnnAssign)):
            yield from (node.id for node in ast.walk(statement) if isinstance(node, ast.Name))
        if isinstance(statement, ast.ImportFrom):
            yield from (alias.name for alias in statement.names)


@cache
def own_names(module: str) -> frozenset[str]:
    """Return the names that ``module`` itself defines."""
    found = nodes(module)
    stored = (node.id for node in found[ast.Name] if isinstance(node.ctx, ast.Store))
    return frozenset((*stored, *(node.name for node in (*found[ast.ClassDef], *found[ast.FunctionDef]))))


def test_names_are_imported_from_the_modules_that_define_them() -> None:
    for module in MODULES:
        for imported, name in imports(module):
            if imported not in FACES and name and f"{imported}.{name}" not in MODULES:
                assert name in own_names(imported), f"{module} imports {name} from {imported}, which imports it"


def test_faces_list_names_that_are_there() -> None:
    for face in FACES - {"mlfbuild"}:
        for name, module in face_names(face).items():
            assert f"{face}.{name}" not in MODULES, f"{name} is a name and a module of {face}"
            assert name in set(defined_names(module)), f"{module} has no {name}"


def test_there_are_no_circles() -> None:
    """Of all imports, also those inside functions and for type checkers, followed through faces.

    The list of a face is followed from the modules that use a name of it.
    """
    edges: dict[str, set[str]] = defaultdict(set)
    for module in MODULES:
        for imported, name in imports(module):
            listed = module in FACES and face_names(module).get(name) == imported
            if listed or (imported == "mlfbuild" and f"mlfbuild.{name}" not in MODULES):
                continue
            target = f"{imported}.{name}" if f"{imported}.{name}" in MODULES else imported
            if target in FACES and name in face_names(target):
                target = face_names(target)[name]
            edges[module].add(target)
    assert {frozenset(circle) for circle in components(edges) if len(circle) > 1} == set()


def components(edges: dict[str, set[str]]) -> list[set[str]]:
    """Return the strongly connected components of a graph (Tarjan, 1972)."""
    index: dict[str, int] = {}
    low: dict[str, int] = {}
    stack: list[str] = []
    found: list[set[str]] = []

    def visit(node: str) -> None:
        index[node] = low[node] = len(index)
        stack.append(node)
        for other in sorted(edges.get(node, ())):
            if other not in index:
                visit(other)
                low[node] = min(low[node], low[other])
            elif other in stack:
                low[node] = min(low[node], index[other])
        if low[node] == index[node]:
            circle = set()
            while node not in circle:
                circle.add(stack.pop())
            found.append(circle)

    for node in sorted(MODULES):
        if node not in index:
            visit(node)
    return found


def test_no_folder_has_too_many_files() -> None:
    files = [*MODULES.values(), *PACKAGE.rglob("*.h")]
    folders = Counter(path.parent.relative_to(PACKAGE).as_posix() for path in files)
    assert {folder for folder, count in folders.items() if count > LARGEST} <= LARGER


LARGEST = 40
"""Modules and headers in a folder."""
LARGER = {"cli", "native/frontends/onnx/operators", "native/frontends/tflite/operators"}
"""Flat folders in which a file is found by a name that the user types: a verb's, or the family of an operator."""


def test_a_public_class_name_is_used_once() -> None:
    places = defaultdict(list)
    for module in MODULES:
        for node in tree(module).body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                places[node.name].append(module)
    assert {name for name, modules in places.items() if len(modules) > 1} == set()


def called_names(module: str) -> set[str]:
    return {node.func.id for node in nodes(module)[ast.Call] if isinstance(node.func, ast.Name)}


def test_only_the_command_prints_and_exits() -> None:
    for module in INSIDE:
        assert room_of(module) == "cli" or not called_names(module) & {"print", "exit", "quit"}, module


def test_only_the_scons_room_imports_scons() -> None:
    for module, path in INSIDE.items():
        text = path.read_text()
        assert room_of(module) == "scons" or ("import SCons" not in text and "from SCons" not in text), module
