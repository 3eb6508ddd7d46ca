"""A project to start from: a whole firmware around one model, in an empty folder."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator, Sequence
from pathlib import Path

from mlfbuild.compilers import CompileRequest, compiler_called
from mlfbuild.compilers.native.names import member_name
from mlfbuild.errors import ConflictError
from mlfbuild.files import write_atomic
from mlfbuild.library import Module, TensorInfo
from mlfbuild.steps.project import default_compiler, default_name
from mlfbuild.targets import CPUS, board_called
from mlfbuild.targets.types import Cpu

_TEMPLATES = Path(__file__).parent / "starter_files"
_PLACES = {
    "mlfbuild.yml": "mlfbuild.yml",
    "SConstruct": "SConstruct",
    "mlf.py.in": "site_scons/site_tools/mlf.py",
    "CMakeLists.txt": "CMakeLists.txt",
    "main.c": "src/main.c",
}
_PLAIN_YAML = re.compile(r"[A-Za-z./][A-Za-z0-9_./+-]*")
PLACEHOLDER = Path("models/network.tflite")
"""Where a project that starts without a model expects one, relative to its folder."""
_C_TYPES = {"float32": "float", "bool": "uint8_t"}


def write_starter(folder: Path, *, model: Path | None, board: str) -> list[Path]:
    """Write a starter project around ``model`` (a placeholder where ``None``) for ``board``; returns the files.

    Raises ``ConflictError``, before anything is written, where one of the files is there; ``UsageError`` for an unknown
    board; what compiling raises for a model that cannot be used; ``StorageError``.
    """
    cpu = CPUS[board_called(board).cpu]
    source = model or PLACEHOLDER
    name = default_name(source)
    words = {
        "TARGET": cpu.name.removeprefix("cortex-"),
        "CPU": cpu.name,
        "BOARD": board,
        "MODEL": name,
        "MODEL_UPPER": name.upper(),
        "SOURCE": _yaml_text(Path(os.path.relpath(source, folder)).as_posix()),
        "RUN": "\n".join(_run_lines(name, _module(model, name, cpu) if model else None)),
    }
    files = {folder / place: _fill(template, words) for template, place in _PLACES.items()}
    _refuse_existing(list(files))
    for path, text in files.items():
        write_atomic(path, text.encode())
    return list(files)


def _refuse_existing(paths: Sequence[Path]) -> None:
    there = [str(path) for path in paths if os.path.lexists(path)]
    if there:
        raise ConflictError(f"{', '.join(there)}: already there; init writes into an empty folder (-C DIR)")


def _fill(template: str, words: dict[str, str]) -> str:
    text = (_TEMPLATES / template).read_text()
    return re.sub(r"@([A-Z_]+)@", lambda match: words[match[1]], text)


def _yaml_text(text: str) -> str:
    return text if _PLAIN_YAML.fullmatch(text) else json.dumps(text, ensure_ascii=False)


def _module(model: Path, name: str, cpu: Cpu) -> Module | None:
    """Return the compiled model; ``None`` for an archive, which need not have our names in its header."""
    if default_compiler(model) == "archive":
        return None
    (module,) = compiler_called("native").compile(CompileRequest(name, model, cpu)).modules
    return module


def _run_lines(name: str, module: Module | None) -> Iterator[str]:
    if module is None:
        yield f"    /* Fill struct tvmgen_{name}_inputs and _outputs, then call tvmgen_{name}_run(). */"
        return
    for prefix, tensors in (("in", module.inputs), ("out", module.outputs)):
        for tensor in tensors:
            member = member_name(tensor.name)
            yield f"    static {_c_type(tensor)} {prefix}_{member}[MLF_{name.upper()}_{member.upper()}_ELEMENTS];"
    for prefix, tensors in (("in", module.inputs), ("out", module.outputs)):
        members = ", ".join(f".{member_name(t.name)} = {prefix}_{member_name(t.name)}" for t in tensors)
        yield f"    struct tvmgen_{name}_{prefix}puts {prefix}puts = {{{members}}};"
    yield ""
    yield "    /* All inputs are zero so far: put real data there. */"
    yield f"    if (tvmgen_{name}_run(&inputs, &outputs) != 0) {{"
    yield "        return 1;"
    yield "    }"


def _c_type(tensor: TensorInfo) -> str:
    return _C_TYPES.get(tensor.dtype, f"{tensor.dtype}_t")
