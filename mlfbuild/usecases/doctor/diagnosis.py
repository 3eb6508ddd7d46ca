"""Find out which programs are installed, which targets can be built, and how to install what is missing."""

from __future__ import annotations

import os
import platform
import re
import shutil
import subprocess
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from mlfbuild.core import (
    HOST_COMPILER,
    ToolNotFoundError,
    find_tool,
    how_to_install,
    installed_version,
    require_extra,
    tool_variable,
)
from mlfbuild.jobs import chosen_names, project_mistakes, toolchain_of
from mlfbuild.project import Project, RunnerKeys, TargetSpec, load_project, mcu_of, run_budgets
from mlfbuild.runners import needed_for
from mlfbuild.targets import (
    BOARDS,
    CPUS,
    GCC,
    HOST_COMPILERS,
    Board,
    Cpu,
    compiler_program,
    cpu_of_toolchain,
    emulated_board,
    has_c_library,
    require_compiler,
    toolchain_file,
)
from mlfbuild.usecases.check.before_building import Foreseen, foreseen
from mlfbuild.usecases.doctor import needs
from mlfbuild.usecases.init import outdated_lines

_PROGRAMS = (
    HOST_COMPILER, "cmake", "ninja", "arm-none-eabi-gcc", "clang", "riscv64-unknown-elf-gcc", "gdb-multiarch",
    *dict.fromkeys(board.emulator for board in BOARDS.values()),
)  # fmt: skip
_VERSION = re.compile(r"\d+\.\d+(?:\.\d+)*")
_OLDEST_CMAKE = (3, 22)
"""Version that the CMake files of mlfbuild require."""
# Limit of a program that prints its version.
_SECONDS = 20


@dataclass(frozen=True)
class InstalledProgram:
    """A program that builds use; ``path`` is ``None`` if it is not installed."""

    name: str
    path: Path | None
    version: str = ""
    chosen_by: str = ""
    """The environment variable that selects it, with its value (``CC=clang``); empty if none does."""


@dataclass(frozen=True)
class TargetState:
    """Whether a target can be built and verified on this machine."""

    name: str
    cpu: str
    board: str | None
    """The board that QEMU emulates, or the way to its device: ``gdb localhost:3333``."""
    missing: tuple[str, ...]
    """Why it cannot be built; empty if it can."""
    unverified: str = ""
    """Why it cannot be verified; empty if it can."""

    @property
    def builds(self) -> bool:
        """Whether firmware for it can be built."""
        return not self.missing


@dataclass(frozen=True)
class Diagnosis:
    """The state of this machine and of a project's targets."""

    versions: dict[str, str]
    """Versions of mlfbuild, Python, SCons and the system, by name."""
    programs: tuple[InstalledProgram, ...]
    targets: tuple[TargetState, ...]
    project: Path | None
    """The project file of the targets; ``None`` if they are the rows of the table of CPUs."""
    install: tuple[str, ...]
    """Commands and advice that install what is missing for the targets."""
    dependencies: tuple[needs.ProviderState, ...] = ()
    """Requirements of the project."""
    outdated: tuple[str, ...] = ()
    """A line for each file in the repository that another version of mlfbuild wrote."""
    conflicts: tuple[str, ...] = ()
    """A line for each conflict between Python packages, with the command that ends it."""

    @property
    def healthy(self) -> bool:
        """Whether every target of the project can be built."""
        return self.project is None or all(target.builds for target in self.targets)


def diagnose(project: Path | None, targets: Sequence[str] = ()) -> Diagnosis:
    """Check this machine for the project file ``project``, or for every CPU of the table if it is ``None``.

    Raises ``ProjectFileError``, and ``UsageError`` for one of ``targets`` that the project does not have.
    """
    needed: list[str] = []
    compiling: list[needs.ModelProgram] = []
    dependencies: list[needs.ProviderState] = []
    if project is None:
        states = [
            _state(cpu.name, cpu, emulated_board(cpu), toolchain_file(cpu), False, None, needed)
            for cpu in CPUS.values()
        ]
    else:
        known = load_project(project)
        states = [_state_of(known, name, needed) for name in chosen_names("target", targets, known.targets)]
        names = {state.name for state in states}
        compiling += needs.model_programs(model for model in known.models.values() if names & {*model.targets})
        states = [_with_models(state, known, compiling) for state in states]
        velas = {name: needs.vela_program(known.targets[name], known.root) for name in names}
        compiling += [vela for vela in velas.values() if vela is not None]
        states = [_with_vela(state, velas[state.name]) for state in states]
        found = foreseen(known)
        found = replace(found, mistakes=(*project_mistakes(known), *found.mistakes))
        states = [_with_mistakes(state, known, found) for state in states]
        dependencies += needs.dependency_states(known)
        states = [
            replace(state, missing=(*state.missing, *needs.needed_on(known, state.name, dependencies)))
            for state in states
        ]
        if _found("git") is None and any(each.kind == "git" and each.missing for each in dependencies):
            needed.append("git")
    advised = [(each.missing, each.advice) for each in compiling]
    advised += [(each.missing, each.advice) for each in dependencies]
    remedies = [*_remedies(needed), *(f"{missing}: {advice}" for missing, advice in advised if missing)]
    return Diagnosis(
        versions={name: installed_version(name) or "not installed" for name in ("mlfbuild", "scons")}
        | {"python": platform.python_version(), "system": platform.platform(terse=True)},
        programs=(
            *(_program(name) for name in _PROGRAMS),
            *(InstalledProgram(each.name, each.path, each.version) for each in compiling),
        ),
        targets=tuple(states),
        project=project,
        install=tuple(remedies) if project else (),
        dependencies=tuple(dependencies),
        outdated=tuple(outdated_lines(project)) if project else (),
        conflicts=tuple(needs.conflicting_packages()),
    )


def _remedies(needed: Sequence[str]) -> Iterator[str]:
    # Installing a program does not help if a variable selects another one.
    wrong = {name: _chosen_by(name) for name in needed if _chosen_by(name)}
    yield from how_to_install([name for name in needed if name not in wrong])
    yield from (f"correct or unset the variable {chosen}" for chosen in wrong.values())


def _with_models(state: TargetState, project: Project, programs: Sequence[needs.ModelProgram]) -> TargetState:
    """Return ``state`` with the missing programs of the target's models."""
    models = {model.name for model in project.models_on(state.name)}
    return replace(state, missing=(*state.missing, *(p.missing for p in programs if p.missing and p.model in models)))


def _with_vela(state: TargetState, vela: needs.ModelProgram | None) -> TargetState:
    """Return ``state`` for a target whose NPU needs ``vela``, and which QEMU does not emulate."""
    if vela is None:
        return state
    missing = (*state.missing, *([vela.missing] if vela.missing else []))
    unverified = "QEMU does not emulate its NPU" if state.board in BOARDS else state.unverified
    return replace(state, missing=missing, unverified=unverified)


def _with_mistakes(state: TargetState, project: Project, found: Foreseen) -> TargetState:
    """Return ``state`` with the mistakes of the project that builds for the target, or runs on it, would refuse."""
    missing, unverified = [*state.missing], state.unverified
    for path, mistake in (*found.mistakes, *found.warnings):
        section, name = (*map(str, path[:2]), "", "")[:2]
        if (section, name, *path[2:3]) == ("targets", state.name, "npu"):
            missing.append(f"npu: {mistake.reason}")
        elif (section, name) == ("targets", state.name):
            unverified = unverified or mistake.reason
        elif section == "models" and state.name in project.models[name].targets:
            if path[2:3] == ("vectors",):
                unverified = unverified or mistake.reason
            else:
                missing.append(f"model {name}: {mistake.reason}")
        elif section == "firmware":
            targets = project.firmware[name].targets
            # A mistake at an item of ``targets`` concerns this one only.
            if state.name in ([targets[int(path[3])]] if path[2:3] == ("targets",) else targets):
                missing.append(f"firmware {name}: {mistake.reason}")
    return replace(state, missing=tuple(missing), unverified=unverified)


def _state_of(project: Project, name: str, needed: list[str]) -> TargetState:
    target = project.targets[name]
    cpu = CPUS[target.cpu]
    board = BOARDS[target.board] if target.board else emulated_board(cpu) if target.mcu or mcu_of(target) else None
    return _state(name, cpu, board, toolchain_of(target), _counts(project, target), target.runner, needed)


def _counts(project: Project, target: TargetSpec) -> bool:
    """Return whether a firmware for ``target``, or a model in it, has a budget that a run on it checks."""
    checked = run_budgets(board=target.board is not None, mcu=mcu_of(target) is not None)
    budgets = (
        budget
        for spec in project.firmware.values()
        if target.name in spec.targets
        for budget in (spec.budget, *(model.budget for model in project.models_on(target.name, spec.name)))
    )
    return any(key in checked for budget in budgets for key in budget.of_runs)


def _state(
    name: str,
    cpu: Cpu,
    board: Board | None,
    toolchain: Path | None,
    counts: bool,
    runner: RunnerKeys | None,
    needed: list[str],
) -> TargetState:
    # The plugin of the emulator that counts is compiled for this machine.
    counting = (board.emulator, HOST_COMPILER) if board and counts else ()
    why = " (required to check budgets of runs)"
    missing = (*_missing(cpu, toolchain, needed), *_absent(counting, needed, why))
    if runner is not None:
        return TargetState(name, cpu.name, f"{runner.transport} {runner.address}", missing, _unreached(runner, needed))
    unverified = ""
    if board is not None and _found(board.emulator) is None:
        needed.append(board.emulator)
        unverified = f"{board.emulator} is missing"
    elif board is None and toolchain is not None:
        unverified = "no board that QEMU emulates"
    return TargetState(name, cpu.name, board.name if board else None, missing, unverified)


def _unreached(runner: RunnerKeys, needed: list[str]) -> str:
    """Return what is missing to verify on the device of ``runner``, empty if nothing is."""
    programs, extras = needed_for(runner)
    missing = [name for name in programs if _found(name) is None]
    needed.extend(name for name in missing if name in _PROGRAMS)
    packages = [hint for extra in extras if (hint := _lacking(extra))]
    access = ["a command gives no access to the memory of its device"] if runner.run else []
    return ", ".join([*(f"{name} is missing" for name in missing), *packages, *access])


def _lacking(extra: str) -> str:
    """Return the command that installs the packages of ``extra``, empty if they are installed."""
    try:
        require_extra(extra, "", "")
    except ToolNotFoundError as error:
        return error.hint
    return ""


def _missing(cpu: Cpu, toolchain: Path | None, needed: list[str]) -> Iterator[str]:
    """Yield why firmware for ``cpu`` cannot be built, and append the missing programs to ``needed``."""
    yield from _absent(("cmake", "ninja"), needed)
    cmake = _found("cmake")
    if cmake is not None and _older(_version(cmake), _OLDEST_CMAKE):
        needed.append("cmake")
        yield f"CMake {_version(cmake)} is older than {'.'.join(map(str, _OLDEST_CMAKE))}"
    try:
        require_compiler(toolchain)
    except ToolNotFoundError as error:
        needed.extend(_compilers(cpu, toolchain))
        reason = error.reason.partition("; ")[0]  # texts without fields have the hint in their reason
        yield f"{error.place}: {reason}" if error.place else reason
        return
    own = toolchain is not None and cpu_of_toolchain(toolchain) is not None  # others may need no C library
    gcc = _found(compiler_program(cpu, GCC)) if own else None
    # The compiler and its C library are separate packages on Debian, and a compiler without it fails only at the link.
    if gcc is not None and not has_c_library(gcc, cpu.link_flags or cpu.flags):
        needed.append(compiler_program(cpu, GCC))
        yield f"{gcc} has no C library for {cpu.name}"


def _absent(programs: Iterable[str], needed: list[str], why: str = "") -> Iterator[str]:
    """Yield which of ``programs`` are missing, and append them to ``needed``."""
    for name in programs:
        if _found(name) is None:
            needed.append(name)
            yield f"{name} is missing{why}"


def _compilers(cpu: Cpu, toolchain: Path | None) -> Iterator[str]:
    if toolchain is None:
        yield HOST_COMPILER
        return
    names = [compiler_program(cpu, family) for family in cpu.compilers if toolchain.name == cpu.toolchain_with(family)]
    yield from (name for name in (*names, compiler_program(cpu, GCC)) if _found(name) is None)


def _older(version: str, least: tuple[int, ...]) -> bool:
    # A program whose version is unknown is not refused.
    return bool(version) and tuple(int(part) for part in version.split(".")[: len(least)]) < least


def _program(name: str) -> InstalledProgram:
    path = _found(name)
    return InstalledProgram(name, path, _version(path) if path else "", _chosen_by(name))


def _chosen_by(name: str) -> str:
    variable = tool_variable(name)
    return f"{variable}={os.environ[variable]}" if os.environ.get(variable) else ""


def _found(name: str) -> Path | None:
    if name == HOST_COMPILER:
        paths = (shutil.which(candidate) for candidate in (os.environ.get("CC", "").partition(" ")[0], *HOST_COMPILERS))
        return next((Path(path) for path in paths if path), None)
    try:
        return find_tool(name)
    except ToolNotFoundError:
        return None


def _version(path: Path) -> str:
    """Return the version that ``path --version`` prints, or an empty string."""
    try:
        done = subprocess.run(
            [str(path), "--version"], stdin=subprocess.DEVNULL, capture_output=True, text=True, errors="replace",
            timeout=_SECONDS, check=False,
        )  # fmt: skip
    except (OSError, subprocess.TimeoutExpired):
        return ""
    # Distributions put their own version in brackets before the program's: gcc (Debian 12.2.0-14) 12.2.0.
    found = _VERSION.search(re.sub(r"\([^()]*\)", "", done.stdout.partition("\n")[0]))
    return found[0] if found else ""
