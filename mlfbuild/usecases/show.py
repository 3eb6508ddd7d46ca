"""Show the program of an archive: its text, its graph, and the C functions of their operators."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from mlfbuild.archive import program
from mlfbuild.core import UsageError, counted, listed, quoted, suggestion
from mlfbuild.jobs import chosen_modules, open_model
from mlfbuild.library import Content, Module, plan_json


@dataclass(frozen=True)
class ProgramPart:
    """One text of a module."""

    module: Module
    part: str
    """``relay``, ``tir``, ``graph`` or ``plan``."""
    content: Content
    _known: program.KnownFiles = field(repr=False)

    @property
    def operators(self) -> tuple[program.ProgramOperator, ...]:
        """The operators, each with its C functions; raises ``InputFileError`` if the graph is not valid."""
        return program.program_operators(self.module, self.part, program.code_functions(self.module, self._known))


@dataclass(frozen=True)
class FunctionText:
    """A C function of a module, as the archive has it."""

    module: str
    function: program.CodeFunction
    text: bytes


def program_parts(path: Path, part: str | None = None, modules: Collection[str] = ()) -> list[ProgramPart]:
    """Return the texts of the archive ``path``, limited to one ``part`` and to ``modules`` if they are named.

    Without ``part``, they are those of the program: the plan of its kernels is not among them. Raises as
    ``open_model``, and ``UsageError`` if a module does not exist or no module has the part.
    """
    library = chosen_modules(open_model(path), modules, path)
    # Shared files are parsed once for all modules.
    known: program.KnownFiles = {}
    found = [each for module in library.modules for each in _parts(module, known)]
    # A plan has the reasons of the compiler, and is only shown if it was asked for.
    chosen = [
        each for each in found if part in {None, each.part} and (each.part != program.PLAN or part == program.PLAN)
    ]
    if not chosen:
        others = list(dict.fromkeys(each.part for each in found))
        reason = f"the archive has no {part or 'program text and no graph'}"
        hint = f"choose one of {listed(others)}" if others else "run `mlfbuild inspect` to list its modules"
        raise UsageError("no-such-program-part", place=path, reason=reason, hint=hint)
    return chosen


def _parts(module: Module, known: program.KnownFiles) -> Iterator[ProgramPart]:
    if len(module.source_text):
        yield ProgramPart(module, program.RELAY, module.source_text, known)
    for _, text in module.tir:
        yield ProgramPart(module, program.TIR, text, known)
    if module.graph_json is not None:
        yield ProgramPart(module, program.GRAPH, module.graph_json, known)
    plan = plan_json((module,))
    if plan is not None:
        yield ProgramPart(module, program.PLAN, plan, known)


def function_called(path: Path, name: str, modules: Collection[str] = ()) -> FunctionText:
    """Return the C function ``name`` of the archive ``path``, or of its ``modules`` if they are named.

    Raises as ``open_model``, and ``UsageError`` if no module or several define the function, or only an object does.
    """
    library = chosen_modules(open_model(path), modules, path)
    files: program.KnownFiles = {}
    functions = {module.name: program.code_functions(module, files) for module in library.modules}
    owners = {module.name: module for module in library.modules if name in functions[module.name]}
    # A function in a file that several modules share is one function, so no module needs to be chosen.
    places = {functions[owner][name] for owner in owners}
    if not places:
        known = [function for each in functions.values() for function in each]
        reason = f"no code of the archive defines {quoted(name)}{suggestion(name, known)}"
        raise UsageError("no-such-function", place=path, reason=reason, hint="correct --function")
    if len(places) > 1:
        reason = f"{counted(len(places), 'module')} define {quoted(name)}: {listed(list(owners))}"
        raise UsageError("function-not-chosen", place=path, reason=reason, hint="choose one with --model")
    (place,) = places
    # Any of the owners will do, because the file and line are the same.
    owner = next(iter(owners.values()))
    text = program.function_text(owner, place)
    if text is None:
        reason = f"{name} is in a compiled object, so the archive does not contain its source"
        hint = "disassemble the object"
        raise UsageError("function-without-source", place=f"{path}: {place.file}", reason=reason, hint=hint)
    return FunctionText(owner.name, place, text)
