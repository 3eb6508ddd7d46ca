"""Find what compiles models: the Python with TVM, the programs of ``compiler: command``, and the package onnx."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from mlfbuild.compilers.external import find_program
from mlfbuild.compilers.tvm import find_interpreter, tvm_version
from mlfbuild.core import ToolNotFoundError, require_extra
from mlfbuild.project import ModelSpec, asked_for, filled


@dataclass(frozen=True)
class ModelProgram:
    """The program that compiles a model."""

    model: str
    name: str
    path: Path | None
    """``None`` if it was not found or does not work."""
    version: str = ""
    missing: str = ""
    """Why the model cannot be compiled; empty if it can."""
    advice: str = ""


def model_programs(models: Iterable[ModelSpec]) -> Iterator[ModelProgram]:
    """Yield the program of each of ``models`` that has one; runs the interpreters of ``compiler: tvm`` to find TVM."""
    for model in models:
        try:
            found = _found(model)
        except ToolNotFoundError as error:
            reason, _, advice = error.message.rpartition("; ")  # hints have no semicolons
            reason = f"model {model.name}: {reason.removeprefix(f'{model.name}: ')}"
            found = ModelProgram(model.name, _name(model), None, missing=reason, advice=advice)
        if found is not None:
            yield found


def _found(model: ModelSpec) -> ModelProgram | None:
    """Return the program of ``model``; ``None`` if it has none, or if its name depends on the file to compile."""
    if model.compiler == "tvm":
        python = find_interpreter(model.program, model.name)
        return ModelProgram(model.name, _name(model), Path(python), tvm_version(python)[1])
    if model.compiler == "command" and model.program is not None and not asked_for(model.program.command[:1]):
        # Placeholders in other words do not matter here, because only the program has to exist.
        path = find_program(next(filled(model.program.command[:1], {})), model.program.folder, model.name)
        return ModelProgram(model.name, _name(model), Path(path))
    if model.compiler == "native" and model.source.suffix.lower() == ".onnx":
        require_extra("onnx", model.source, "reading an .onnx file")
    return None


def _name(model: ModelSpec) -> str:
    if model.compiler == "native":
        return f"onnx of {model.name}"
    return f"{'TVM' if model.compiler == 'tvm' else 'command'} of {model.name}"
