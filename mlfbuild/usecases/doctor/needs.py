"""Find what a project needs besides its toolchains: programs that compile models, libraries, and sound Python packages.

Programs are the Python with TVM, those of ``compiler: command``, and the package onnx. Libraries are the providers of
the project: whether their files are on this machine, and in which version.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from mlfbuild.compilers.external import find_program
from mlfbuild.compilers.tvm import find_interpreter, tvm_version
from mlfbuild.core import (
    Diagnostic,
    InputFileError,
    MlfError,
    ProjectFileError,
    ToolNotFoundError,
    find_tool,
    installed_version,
    require_extra,
)
from mlfbuild.jobs import npu_of
from mlfbuild.project import ModelSpec, Project, Provider, TargetSpec, asked_for, filled
from mlfbuild.quantization import engine_of
from mlfbuild.usecases.check.requirements import known_requirements


@dataclass(frozen=True)
class ModelProgram:
    """The program that compiles a model, or checks the signature of an archive."""

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


def vela_program(target: TargetSpec, root: Path) -> ModelProgram | None:
    """Return the Vela of ``target``, which belongs to a project in ``root``; ``None`` if the target has no NPU."""
    npu = npu_of(target, root)
    if npu is None:
        return None
    from mlfbuild.ethos_u import vela_version  # few targets have an NPU

    name = f"Vela for {target.name}"
    try:
        return ModelProgram("", name, Path(npu.python or sys.executable), vela_version(npu.python))
    except ToolNotFoundError as error:
        return ModelProgram("", name, None, missing=f"{error.place}: {error.reason}", advice=error.hint)


def _found(model: ModelSpec) -> ModelProgram | None:
    """Return the program of ``model``; ``None`` if it has none, or if its name depends on the file to compile."""
    engine = engine_of(model.source) if model.quantize else None
    if engine is not None:
        require_extra(engine, model.source, "quantising it")
    if model.compiler == "tvm":
        python = find_interpreter(model.program, model.name)
        return ModelProgram(model.name, _name(model), Path(python), tvm_version(python)[1])
    if model.compiler == "command" and model.program is not None and not asked_for(model.program.command[:1]):
        # Placeholders in other words do not matter here, because only the program has to exist.
        path = find_program(next(filled(model.program.command[:1], {})), model.program.folder, model.name)
        return ModelProgram(model.name, _name(model), Path(path))
    if model.compiler == "native" and model.source.suffix.lower() == ".onnx":
        require_extra("onnx", model.source, "reading an .onnx file")
    if model.trust is not None:
        return ModelProgram(model.name, _name(model), find_tool("ssh-keygen"))
    return None


def _name(model: ModelSpec) -> str:
    if model.trust is not None:
        return f"signature of {model.name}"
    if model.quantize:
        return f"quantisation of {model.name}"
    if model.compiler == "native":
        return f"onnx of {model.name}"
    return f"{'TVM' if model.compiler == 'tvm' else 'command'} of {model.name}"


@dataclass(frozen=True)
class ProviderState:
    """A provider of the project, as it is on this machine."""

    name: str
    kind: str
    """``git``, ``path``, ``url`` or ``package``."""
    place: str
    """As the project file has it."""
    version: str
    """As the project states it; empty if it does not."""
    commit: str = ""
    """The commit of a repository, if it was fetched."""
    missing: str = ""
    """Why it cannot be built; empty if it can, and for packages, which the firmware's own build has."""
    advice: str = ""


def dependency_states(project: Project) -> Iterator[ProviderState]:
    """Yield the states of all providers of ``project`` in file order, as a build would use them; files are hashed."""
    for provider in _as_built(project).dependencies.values():
        state = ProviderState(provider.name, provider.kind, provider.place, provider.version)
        yield state if provider.kind == "package" else _examined(provider, state)


def needed_on(project: Project, target: str, missing: Iterable[ProviderState]) -> tuple[str, ...]:
    """Return why models of ``target`` cannot be built, for those of ``missing`` that they are known to require."""
    required = {one.name for model in project.models_on(target) for one in known_requirements(model, project) or ()}
    return tuple(state.missing for state in missing if state.missing and state.name in required)


def _as_built(project: Project) -> Project:
    """Return ``project`` with its repositories at the locked commits; a damaged lock file is reported for each."""
    if not project.dependencies:
        return project
    from mlfbuild.jobs import pinned, with_pins  # imported late, because few projects need it

    try:
        return pinned(project)
    except InputFileError as error:
        return with_pins(
            project, {}, dict.fromkeys(project.dependencies, ": ".join(filter(None, (error.place, error.reason))))
        )


def _examined(provider: Provider, state: ProviderState) -> ProviderState:
    from mlfbuild.requirements import provided_library  # imported late, because few projects need it

    try:
        library = provided_library(provider)
    except MlfError as error:
        problems = error.problems if isinstance(error, ProjectFileError) else ()
        # The first problem is enough, as the row of a table has room for one.
        found = next((each for each in problems if isinstance(each, Diagnostic)), None) or error
        # The row already names the provider.
        place = found.place.removeprefix(provider.where).strip(": ")
        reason = f"{place}: {found.reason}" if place else found.reason
        return replace(state, missing=f"dependency {state.name}: {reason}", advice=found.hint)
    return replace(state, commit=library.commit)


def conflicting_packages() -> list[str]:
    """Return a line for each conflict, with the command that ends it.

    labgrid brings a fork of pyserial as ``pyserial-labgrid``. Both install the package ``serial`` in the same folder:
    whichever came last has overwritten files of the other, and removing one of them removes files of both.
    """
    if not (installed_version("pyserial") and installed_version("pyserial-labgrid")):
        return []
    # labgrid needs its own fork, so that one stays if labgrid is installed.
    remove, keep = (
        ("pyserial", "pyserial-labgrid") if installed_version("labgrid") else ("pyserial-labgrid", "pyserial")
    )
    repair = f"pip uninstall --yes {remove} && pip install --force-reinstall --no-deps {keep}"
    return [f"pyserial and pyserial-labgrid overwrite each other: {repair}"]
