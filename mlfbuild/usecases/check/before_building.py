"""Mistakes that `mlfbuild build` and `mlfbuild verify` would find later, and tools that they would miss.

Each check reads no more than headers, and calls the function that refuses the mistake later, so that both agree::

    folder of the project  characters that break CMake              path_problem
    firmware app for m4    sources without start-up code              start_up_problem
    runner of a target     no memory, no uart, a file that is missing device_of
                           an unknown kind of GDB server              gdb_server
    options of a model     values that exclude each other             Compiler.outline
    test set of a model    a file or folder that is missing           missing_test_data
    explore of a model     values that the key cannot have            explore_mistakes
    interface of a model   a wrong count or unknown names             interface_problems
    source of a model      an archive that trust refuses              check_signed
    npu of a target        names of unknown operators                 unknown_operators
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, replace

from mlfbuild import compilers, native, runners, verify
from mlfbuild.core import (
    CheckFailedError,
    InputFileError,
    Mistake,
    MlfError,
    ToolNotFoundError,
    UsageError,
    check_signed,
    read_bytes,
)
from mlfbuild.ethos_u import unknown_operators
from mlfbuild.jobs import TargetJob, explore_mistakes, path_problem, start_up_problem, target_jobs, toolchain_of
from mlfbuild.library import CompileRequest
from mlfbuild.project import KeyPath, Project, TargetSpec
from mlfbuild.targets import CPUS, require_compiler
from mlfbuild.usecases.evaluate import missing_test_data

_ONLY_VERIFY = frozenset({"runner-cannot", "device-core-unsupported"})
"""Reasons why a device is never verified. It can still run firmware, so that they are not mistakes."""
_LINK_FLAGS = ("LDFLAGS", "CFLAGS")
"""Variables from which CMake takes flags, which may name a linker script."""


@dataclass(frozen=True)
class Foreseen:
    """The findings before anything is compiled."""

    mistakes: tuple[tuple[KeyPath, Mistake], ...]
    """Mistakes that a build, or the check of a model that has vectors, refuses."""
    warnings: tuple[tuple[KeyPath, Mistake], ...]
    """Devices that cannot verify or profile models, but no model of theirs has vectors, or they never can."""


def foreseen(project: Project) -> Foreseen:
    """Return the mistakes of ``project`` that do not show in its file alone; files that cannot be read are skipped.

    Nothing is compiled: headers of model files, paths, options and runners are checked with the functions that refuse
    them in a build. Missing programs are those of ``missing_tools``.
    """
    try:
        # Without providers, whose mistakes `requirements` reports with better places.
        jobs = target_jobs(replace(project, dependencies={}))
        mistakes = [*_options(jobs).items()]
    except UsageError as error:
        jobs, mistakes = [], [((), Mistake(error.code, reason=f"{error.place}: {error.reason}", hint=error.hint))]
    mistakes += [*_folder(project), *_start_up(project), *_interfaces(project), *missing_test_data(project)]
    mistakes += [*explore_mistakes(project), *_unsigned(project), *_npus(project)]
    warnings: list[tuple[KeyPath, Mistake]] = []
    for job in jobs:
        mistakes += _gdb_server(job)
        if (found := _device(job)) is not None:
            needed = any(model.vectors for model in project.models_on(job.name)) and found[1].code not in _ONLY_VERIFY
            # A device that no model is verified on may stay as it is, apart from keys and files that are missing.
            (mistakes if needed or found[1].code.endswith("-missing") else warnings).append(found)
    return Foreseen(tuple(mistakes), tuple(warnings))


def missing_tools(project: Project) -> dict[str, list[str]]:
    """Return what is missing on this machine to compile for each target of ``project``, by target; none if nothing is.

    The interpreters of ``compiler: tvm`` are not run; `mlfbuild doctor` does that.
    """
    from mlfbuild.usecases.doctor.needs import model_programs, vela_program  # runs find_program only

    own = [model for model in project.models.values() if model.compiler != "tvm"]
    programs = [program for program in model_programs(own) if program.missing]
    found: dict[str, list[str]] = {}
    for name, target in project.targets.items():
        on_target = {model.name for model in project.models_on(name)}
        # The compiler for the CPU first, because all models of the target need it.
        lacking = [*_compiler(target)]
        vela = vela_program(target, project.root)
        lacking += [f"{vela.missing}; {vela.advice}"] if vela is not None and vela.missing else []
        lacking += [f"{each.missing}; {each.advice}" for each in programs if each.model in on_target]
        if lacking:
            found[name] = lacking
    return found


def _compiler(target: TargetSpec) -> Iterator[str]:
    try:
        require_compiler(toolchain_of(target))
    except ToolNotFoundError as error:
        yield error.message


def _unsigned(project: Project) -> Iterator[tuple[KeyPath, Mistake]]:
    """Yield the archives that no allowed signer has signed."""
    for model in project.models.values():
        if model.trust is None or not model.trust.signers.is_file():  # which is a mistake of the key
            continue
        try:
            check_signed(model.source, read_bytes(model.source, "archive"), model.trust)
        except (CheckFailedError, InputFileError) as error:
            mistake = Mistake(error.code, reason=f"{error.place}: {error.reason}", hint=error.hint)
            yield ("models", model.name, "source"), mistake
        except ToolNotFoundError:  # `missing_tools` lists it
            return


def _npus(project: Project) -> Iterator[tuple[KeyPath, Mistake]]:
    for target in project.targets.values():
        for index, mistake in unknown_operators(target.npu) if target.npu is not None else ():
            yield ("targets", target.name, "npu", "keep-on-core", index), mistake


def _folder(project: Project) -> Iterator[tuple[KeyPath, Mistake]]:
    """Yield why CMake cannot build in the project's folder, if there is firmware or a model to verify."""
    problem = path_problem(project.root.resolve())
    if problem is not None and (project.firmware or any(model.vectors for model in project.models.values())):
        yield (), problem


def _start_up(project: Project) -> Iterator[tuple[KeyPath, Mistake]]:
    """Yield firmware without start-up code; a toolchain file of the user may name a linker script, so it is trusted."""
    # Flags from the environment may name a linker script, which brings its own start-up code.
    if any("-T" in os.environ.get(name, "") or "specs=" in os.environ.get(name, "") for name in _LINK_FLAGS):
        return
    for firmware in project.firmware.values():
        for index, name in enumerate(firmware.targets if firmware.sources else ()):
            target = project.targets[name]
            # With a board or a toolchain file of the user, start-up code may come from there.
            own = target.board is None and target.toolchain is None and toolchain_of(target) is not None
            whole = own and all(path.is_file() for path in firmware.sources)
            problem = start_up_problem(firmware.sources, CPUS[target.cpu]) if whole else None
            if problem is not None:
                mistake = Mistake(problem.code, reason=f"for {name}: {problem.reason}", hint=problem.hint)
                yield ("firmware", firmware.name, "targets", index), mistake


def _options(jobs: list[TargetJob]) -> dict[KeyPath, Mistake]:
    """Return the options of models that the native compiler refuses together, or with what a target has."""
    requests = [(job.model, job.request) for target in jobs for job in target.models if job.compiler == "native"]
    found: dict[KeyPath, Mistake] = {}
    for name, request in requests:
        refusal = _refusal(request)
        if refusal is not None:
            # The place of the error ends with the path of the key, such as `options.io`.
            keys = refusal.place.rpartition(": ")[2].split(".")
            mistake = Mistake(refusal.code, reason=refusal.reason, hint=refusal.hint)
            found.setdefault(("models", name, *keys), mistake)
    return found


def _refusal(request: CompileRequest) -> UsageError | None:
    try:
        compilers.compiler_called("native").outline(request)
    except UsageError as error:
        return error
    return None


def _interfaces(project: Project) -> Iterator[tuple[KeyPath, Mistake]]:
    """Yield the names of inputs and outputs that do not fit the model file."""
    for model in project.models.values():
        given = model.interface.given() if model.compiler == "native" else {}
        if not given:
            continue
        choices = native.Choices(model.dims, model.state, model.signature, model.constants)
        with suppress(MlfError):  # compiling the model reports it, `missing_tools` a package that is missing
            for key, problem in native.interface_problems(model.source, choices, given):
                yield ("models", model.name, "interface", key), problem


def _gdb_server(job: TargetJob) -> Iterator[tuple[KeyPath, Mistake]]:
    """Yield why no command can connect to the GDB server of ``job``."""
    keys = job.runner
    if keys is not None and keys.gdb is not None:
        try:
            runners.gdb_server(keys.server, keys.start, keys.gdb, "")
        except UsageError as error:
            yield ("targets", job.name, "runner"), Mistake(error.code, reason=error.reason, hint=error.hint)


def _device(job: TargetJob) -> tuple[KeyPath, Mistake] | None:
    """Return why test firmware cannot run on the device of ``job``, if it has one."""
    if job.runner is None:
        return None
    try:
        verify.device_of(job, "")
    except MlfError as error:
        # No place was passed, so that of the error is only the path of the key below `runner`.
        keys = [key for key in error.place.split(".") if key]
        return ("targets", job.name, "runner", *keys), Mistake(error.code, reason=error.reason, hint=error.hint)
    return None
