"""Write every list that follows from code: run it as ``make generate``.

CI runs it and fails if a file changes: what it writes is committed, so that packages need nothing to be generated and a
review shows what a change of a table comes to.
"""

from __future__ import annotations

import ast
import contextlib
import json
import os
import sys
import textwrap
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from scripts.pins import write_pins

_OPS = ROOT / "mlfbuild/native/graph/ops"
_SCHEMA = ROOT / "tests/golden/project/test_schema/test_schema_changes_are_seen_in_review/mlfbuild.schema.json"
_ONNX = ROOT / "mlfbuild/native/frontends/onnx/operators"
_MADE_BY_PASSES = {"fused", "shift"}
"""Files of operators that stand in no model file."""


def operator_table() -> dict[str, tuple[str, str]]:
    """Return the operators in the order of their names: name -> (module below ``graph/ops``, class)."""
    found = {}
    for path in _OPS.rglob("*.py"):
        for node in ast.parse(path.read_text(encoding="utf-8")).body:
            if isinstance(node, ast.ClassDef) and (name := _operator_name(node)) and path.stem not in _MADE_BY_PASSES:
                found[name] = (_ops_module(path), node.name)
    return dict(sorted(found.items()))


def _ops_module(path: Path) -> str:
    return ".".join(path.relative_to(_OPS).with_suffix("").parts)


def _operator_name(node: ast.ClassDef) -> str | None:
    """Return the value of the class variable ``name``, or ``None`` for classes that operators build on."""
    for item in node.body:
        if isinstance(item, ast.Assign) and ast.unparse(item.targets[0]) == "name":
            return ast.literal_eval(item.value)
    return None


def write_operators() -> None:
    """Write ``graph/ops/operators.json`` and the face of the folder, ``graph/ops/__init__.py``."""
    table = {name: f"{module}:{kind}" for name, (module, kind) in operator_table().items()}
    (_OPS / "operators.json").write_text(json.dumps(table, indent=2) + "\n", encoding="utf-8")
    blocks = [_face_import(path) for path in sorted(_OPS.rglob("*.py")) if path.stem != "__init__"]
    face = "\n".join(
        [
            '"""The operators, one file per family: attributes, rules of shape and type, and a numpy reference.',
            "",
            "Families of a kind share a folder, such as ``convolution``. A file is imported when one of its names is",
            "first used. ``make generate`` writes this file.",
            '"""',
            "",
            "from __future__ import annotations",
            "",
            "from typing import TYPE_CHECKING",
            "",
            "from mlfbuild.core import lazy_attributes",
            "",
            "if TYPE_CHECKING:",
            *blocks,
            "else:",
            "    __getattr__ = lazy_attributes(__name__)",
            "",
        ]
    )
    (_OPS / "__init__.py").write_text(face, encoding="utf-8")


def _face_import(path: Path) -> str:
    """Return the import of every public name that the module at ``path`` defines, as a face lists it."""
    names = set()
    for node in ast.parse(path.read_text(encoding="utf-8")).body:
        if isinstance(node, (ast.ClassDef, ast.FunctionDef)):
            names.add(node.name)
        elif isinstance(node, (ast.Assign, ast.AnnAssign)):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            names |= {target.id for target in targets if isinstance(target, ast.Name)}
    listed = "".join(f"        {name} as {name},\n" for name in sorted(names, key=_by_type) if not name.startswith("_"))
    return f"    from mlfbuild.native.graph.ops.{_ops_module(path)} import (\n{listed}    )"


def _by_type(name: str) -> tuple[int, str]:
    """Sort as ruff does: constants, classes, functions."""
    return (0 if name.isupper() else 1 if name[0].isupper() else 2, name.lower())


def onnx_table() -> dict[str, str]:
    """Return the operators of ONNX in the order of their names: name -> stem of the file whose table has it."""
    found = {}
    for path in _ONNX.glob("*.py"):
        for node in ast.parse(path.read_text(encoding="utf-8")).body:
            if path.stem != "__init__" and isinstance(node, ast.AnnAssign) and ast.unparse(node.target) == "OPERATORS":
                assert isinstance(node.value, ast.Dict)
                found.update({ast.literal_eval(key): path.stem for key in node.value.keys if key is not None})
    return dict(sorted(found.items()))


def write_onnx_operators() -> None:
    """Write ``frontends/onnx/operators/operators.json``."""
    (_ONNX / "operators.json").write_text(json.dumps(onnx_table(), indent=2) + "\n", encoding="utf-8")


def write_toolchains() -> None:
    """Write the toolchain file of each CPU and compiler, and remove those of CPUs that are gone."""
    from mlfbuild.targets import CPUS, cmake_folder
    from mlfbuild.targets.cpus import toolchain_text

    texts = {
        cpu.toolchain_with(compiler): toolchain_text(cpu, compiler)
        for cpu in CPUS.values()
        for compiler in cpu.compilers
    }
    folder = cmake_folder() / "toolchains"
    for path in folder.glob("*.cmake"):
        if path.name not in texts and "\nset(MLFBUILD_CPU_FLAGS" in path.read_text(encoding="utf-8"):
            path.unlink()
    for name, text in texts.items():
        (folder / name).write_text(text, encoding="utf-8")


def write_schema() -> None:
    """Write the JSON Schema of project files that ``tests/project/test_schema.py`` holds."""
    from mlfbuild.project import json_schema

    _SCHEMA.write_text(json.dumps(json_schema(), indent=2) + "\n", encoding="utf-8")


def write_methods() -> None:
    """Write the methods of the engines that quantise; without engines, the table stays."""
    with contextlib.suppress(ImportError):
        from mlfbuild.quantization import with_ai_edge, with_onnxruntime
        from mlfbuild.quantization.engines import ONNX, TFLITE

        table = {ONNX: [*with_onnxruntime.methods()], TFLITE: [*with_ai_edge.methods()]}
        path, text = ROOT / "mlfbuild/quantization/methods.json", json.dumps(table, indent=2) + "\n"
        if path.read_text(encoding="utf-8") != text:
            path.write_text(text, encoding="utf-8")
            os.execv(sys.executable, [sys.executable, __file__])  # noqa: S606 - the schema has the old words


def write_documentation() -> None:
    """Write the pages of ``docs/reference``, and the lists in other pages."""
    sys.path.insert(0, str(ROOT / "docs/_ext"))
    from mlfbuild_reference import PAGES
    from mlfbuild_reference.lists import LISTS

    for name, make in PAGES.items():
        (ROOT / "docs/reference" / name).write_text(make(), encoding="utf-8")
    for name, fill in LISTS.items():
        page = ROOT / "docs" / name
        page.write_text(fill(page.read_text(encoding="utf-8")), encoding="utf-8")


def write_plots() -> None:
    """Write the pictures of committed figures."""
    sys.path.insert(0, str(ROOT / "benchmarks"))
    from plots import PLOTS, drawn

    for name, plot in PLOTS.items():
        (ROOT / "docs/images" / name).write_text(drawn(plot()), encoding="utf-8")


_WIDTH = 120


def write_faces() -> None:
    """Sort the list of each room's face (``core/lazy.py``) and fill its lines."""
    for path in sorted((ROOT / "mlfbuild").rglob("__init__.py")):
        text = path.read_text(encoding="utf-8")
        start, end = text.find("\nif TYPE_CHECKING:\n"), text.find("\nelse:\n    __getattr__ = lazy_attributes")
        if -1 not in (start, end):
            listed: dict[str, set[str]] = {}
            for node in ast.walk(ast.parse(text[start:end])):
                if isinstance(node, ast.ImportFrom):
                    listed.setdefault(node.module or "", set()).update(alias.name for alias in node.names)
            lines = [line for module, names in sorted(listed.items()) for line in _face_lines(module, names)]
            block = "\n".join(["\nif TYPE_CHECKING:", "    # fmt: off", *lines])
            path.write_text(text[:start] + block + text[end:], encoding="utf-8")


def _face_lines(module: str, names: set[str]) -> list[str]:
    """Return the import of ``names`` from ``module`` in lines of full width."""
    listed = ", ".join(sorted(names, key=_by_type))
    line = f"    from {module} import {listed}"
    if len(line) <= _WIDTH:
        return [line]
    indent = " " * 8
    filled = textwrap.wrap(f"{listed},", _WIDTH, initial_indent=indent, subsequent_indent=indent)
    return [f"    from {module} import (", *filled, "    )"]


def main() -> None:
    """Write all of them; registration first, as the others import it."""
    write_operators()
    write_onnx_operators()
    write_faces()
    write_toolchains()
    write_methods()
    write_schema()
    write_documentation()
    write_plots()
    write_pins()


if __name__ == "__main__":
    main()
