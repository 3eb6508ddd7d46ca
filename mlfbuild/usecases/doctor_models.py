"""What models need of a machine: the Python that has TVM, and the programs that a project compiles with."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from mlfbuild.compilers.external import find_program
from mlfbuild.compilers.tvm import find_interpreter, tvm_version
from mlfbuild.core import ToolNotFoundError
from mlfbuild.project import ModelSpec, asked_for, filled


@dataclass(frozen=True)
class ModelProgram:
    """The program that compiles a model."""

    model: str
    name: str
    path: Path | None
    """``None`` where there is none, or none that does."""
    version: str = ""
    missing: str = ""
    """Why the model cannot be compiled; empty where it can."""
    advice: str = ""


def model_programs(models: Iterable[ModelSpec]) -> Iterator[ModelProgram]:
    """Yield the program of each of ``models`` that has one; asks the Pythons of ``compiler: tvm`` for their TVM."""
    for model in models:
        try:
            found = _found(model)
        except ToolNotFoundError as error:
            reason, _, advice = error.message.rpartition("; ")
            reason = f"model {model.name}: {reason.removeprefix(f'{model.name}: ')}"
            found = ModelProgram(model.name, _name(model), None, missing=reason, advice=advice)
        if found is not None:
            yield found


def _found(model: ModelSpec) -> ModelProgram | None:
    """Return the program of ``model``; ``None`` where it has none, or where its name depends on what is compiled."""
    if model.compiler == "tvm":
        python = find_interpreter(model.program, model.name)
        return ModelProgram(model.name, _name(model), Path(python), tvm_version(python)[1])
    if model.compiler == "command" and model.program is not None and not asked_for(model.program.command[:1]):
        path = find_program(next(filled(model.program.command[:1], {})), model.program.folder, model.name)
        return ModelProgram(model.name, _name(model), Path(path))
    return None


def _name(model: ModelSpec) -> str:
    return f"{'TVM' if model.compiler == 'tvm' else 'command'} of {model.name}"
