"""The page of each operator's files, found by the stem of its family, as the package finds them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import cache
from pathlib import Path

from mlfbuild.native.frontends.onnx.operators import OPERATORS as ONNX
from mlfbuild.native.frontends.tflite.operators import FILES as TFLITE
from mlfbuild.native.graph import Operator
from mlfbuild.native.graph.ops import OPERATORS, operator_class
from mlfbuild.native.lowering.dispatch import lowering_module
from mlfbuild_reference.markdown import REPOSITORY, code, page, table

_OPS = "mlfbuild/native/graph/ops"
_ONNX = "mlfbuild/native/frontends/onnx/operators"
_LOWERING = "mlfbuild/native/lowering"
_KERNELS = "mlfbuild/native/kernels"
_HEAD = ("operators", "graph", "TFLite", "ONNX", "lowering", "kernels", "tests")
_ABOUT = (
    "A family of operators has the same stem in each folder: `graph/ops` (attributes, rules, reference in numpy), "
    "`frontends/onnx/operators` (how a file says it), `native/lowering` "
    "(the call) and `native/kernels` (the C). Forms for one extension of a processor have its name behind "
    "the stem. `graph/ops` and `native/lowering` have a sub-folder for families of a kind, such as `convolution`, and "
    "`native/kernels` one for each kind of core. TFLite operators are rows of a few tables in "
    "`frontends/tflite/operators`, and some families share a file for ONNX, such as `movement.py`: the last table "
    "lists these. If a column is empty, the operator needs no file of its own there: TFLite operators without options "
    "are read by their class, and operators are lowered with the class that they build on, such as `Movement`. "
    "[Adding an operator](../contributing.md#an-operator) explains the steps."
)
_PLAIN = "What several families share has no operator's name, for example `window.py` and `requantize.h`."


def operator_files_page() -> str:
    """Return the page ``reference/operator-files.md``."""
    families: dict[str, list[str]] = {}
    for name, (module, _) in OPERATORS.items():
        families.setdefault(_family(module), []).append(name)
    others: dict[str, list[str]] = {}
    for name, family in ONNX.items():
        if family not in families:
            others.setdefault(family, []).append(name)
    return page(
        "Files of each operator",
        "the classes in `mlfbuild/native/graph/ops` and the files with their stems",
        _ABOUT,
        _PLAIN,
        "## Operators of graphs",
        table(_HEAD, (_row(family, names) for family, names in sorted(families.items()))),
        "## Operators of ONNX in files of other names",
        table(
            ("operators", "ONNX"), ([_words(names), _links(_ONNX, family)] for family, names in sorted(others.items()))
        ),
    )


def _family(module: str) -> str:
    return module.rpartition(".")[2]


def _row(family: str, names: list[str]) -> list[str]:
    kinds = [kind for name in names if (kind := operator_class(name)) is not None]
    modules = [module for kind in kinds if (module := lowering_module(kind)) is not None]
    lowered = dict.fromkeys([family, *(_family(module.__name__) for module in modules)])
    return [
        _words(names),
        _links(_OPS, family),
        " ".join(map(_link, _tflite(names))),
        _links(_ONNX, family) or " ".join(map(_link, _onnx_rows(kinds))),
        " ".join(filter(None, (_links(_LOWERING, stem) for stem in lowered))),
        " ".join(filter(None, (_links(_KERNELS, stem) for stem in lowered))),
        " ".join(_link(path) for path in _tests(names)),
    ]


def _tflite(names: Iterable[str]) -> list[Path]:
    """Return the files that have a row of one of ``names``."""
    return [Path(str(module.__file__)) for module in TFLITE if not module.ROWS.keys().isdisjoint(names)]


def _onnx_rows(kinds: Iterable[type[Operator]]) -> list[Path]:
    """Return the files with a row for one of ``kinds``."""
    rows = {f'("{kind.__name__}"),' for kind in kinds}
    return [path for path in sorted((REPOSITORY / _ONNX).glob("*.py")) if any(row in path.read_text() for row in rows)]


def _words(names: Iterable[str]) -> str:
    return ", ".join(code(name) for name in names)


def _links(folder: str, family: str) -> str:
    """Return links to the files of ``family`` in ``folder``."""
    return " ".join(_link(path) for path in _files(folder).get(family, ()))


@cache
def _files(folder: str) -> Mapping[str, list[Path]]:
    """Return the files below ``folder`` by the longest stem of a family that their names begin with."""
    found_paths = (path for path in (REPOSITORY / folder).rglob("*") if path.suffix in {".py", ".h"})
    paths = sorted(found_paths, key=lambda path: path.name)
    stems = {_family(module) for module, _ in OPERATORS.values()} | {path.stem for path in paths if _is_plain(path)}
    found: dict[str, list[Path]] = {}
    for path in paths:
        family = max((stem for stem in stems if f"{path.stem}_".startswith(f"{stem}_")), key=len, default="")
        found.setdefault(family, []).append(path)
    return found


def _is_plain(path: Path) -> bool:
    return not path.stem.endswith(("_dsp", "_mve", "_vfp", "_int16", "_float", "_linear"))


@cache
def _sources() -> Mapping[Path, str]:
    """Return the text of what draws networks for tests."""
    return {
        path: path.read_text(encoding="utf-8") for path in sorted((REPOSITORY / "tests/support").glob("*networks.py"))
    }


def _tests(names: Iterable[str]) -> list[Path]:
    return [path for path, text in _sources().items() if any(f'"{name}"' in text for name in names)]


def _link(path: Path) -> str:
    return f"[{path.name}](../../{path.relative_to(REPOSITORY).as_posix()})"
