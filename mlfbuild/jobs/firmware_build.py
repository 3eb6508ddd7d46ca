"""Run the cross build: CMake configures, Ninja builds, and both decide themselves what is out of date.

If the project file lists the sources of a firmware, a ``CMakeLists.txt`` is generated. After each build, compiler
flags, symbols that two models share, and memory regions are checked. ``usecases.build`` checks budgets.

CMake writes its compiler commands to a file. mlfbuild runs the compiler with the flags of these commands and reads its
predefined macros, which show the CPU it compiles for. With wrong flags, native code silently falls back to portable C.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import shlex
import time
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from mlfbuild.core import (
    InputFileError,
    Mistake,
    MlfError,
    OnProgress,
    ProcessFailedError,
    UsageError,
    find_tool,
    holds,
    make_folder,
    no_progress,
    printable,
    read_bytes,
    real_place,
    run,
    run_ninja,
    sha256,
    write_atomic,
    write_if_changed,
    writing_to,
)
from mlfbuild.jobs.conflicts import check_image, check_libraries
from mlfbuild.jobs.devices import require_device_compilers
from mlfbuild.jobs.links import has_record, link_record, record_link
from mlfbuild.jobs.model_job import FirmwareJob
from mlfbuild.jobs.placement import check_placed, write_params_binary
from mlfbuild.targets import Cpu, MacroRule, cmake_folder, emulated_board, macro_rules, require_compiler

_WITH_A_WORD = {"-o", "-MF", "-MT", "-MQ", "-isystem"}
_NO_MATTER = ("-I", "-D", "-MD", "-MMD", "-c")
_SECONDS = 60


def check_flags(job: FirmwareJob) -> None:
    """Raise ``UsageError`` if models are compiled for another CPU than the target's, as the build is configured.

    A compiler without GCC's options is not checked. The compiler runs only if the commands changed since the last
    successful check. Raises ``ProcessFailedError`` if CMake could not write the commands completely.
    """
    database = job.build / "compile_commands.json"
    try:
        content = read_bytes(database, "compilation database")
    except InputFileError:
        return
    stamp, state = job.build / ".mlfbuild-flags", f"{job.target.cpu.name} {sha256(content)}\n".encode()
    if holds(stamp, state):
        return
    place = f"{job.name}: target {job.target.name} ({job.target.cpu.name})"
    origin = f" ({job.target.toolchain})" if job.target.toolchain else ""
    try:
        # Each different command once: the compiler is started for each.
        commands = dict.fromkeys(_commands(content, real_place(job.target.tree)))
    except ValueError as error:
        reason, hint = f"CMake wrote no compilation database: {error}", "delete the folder and build again"
        raise ProcessFailedError("compile-commands-damaged", place=database, reason=reason, hint=hint) from None
    for command, folder in commands:
        check_compiler(macro_rules(job.target.cpu), command, Path(folder), place, origin)
    write_atomic(stamp, state)


def _commands(content: bytes, tree: Path) -> Iterator[tuple[tuple[str, ...], str]]:
    """Yield compiler and flags of each C source in ``tree``, and the folder in which the compiler runs."""
    for entry in json.loads(content):
        file = real_place(Path(entry["directory"]) / entry["file"])
        if file.suffix == ".c" and file.is_relative_to(tree):
            yield tuple(_flags(shlex.split(entry["command"]), entry["file"])), entry["directory"]


def _flags(words: Sequence[str], source: str) -> Iterator[str]:
    """Yield the words that can change predefined macros, without file names and flags that differ between models."""
    left = iter(words)
    for word in left:
        # Words with paths differ from source to source; without them, all sources of a model usually have one command.
        if word in _WITH_A_WORD:
            next(left, None)
        elif word != source and not word.startswith(_NO_MATTER):
            yield word


def check_compiler(
    rules: Sequence[MacroRule], command: Sequence[str], folder: Path, place: str, origin: str = ""
) -> None:
    """Raise ``UsageError`` if the macros of ``command``, a compiler with its flags, break one of ``rules`` for a CPU.

    It runs in ``folder``; one without GCC's options is not checked. ``origin`` says in the hint where its flags are.
    """
    question: list[str | Path] = [*command, "-dM", "-E", "-x", "c", cmake_folder() / "toolchains" / "empty.c"]
    try:
        macros = run(question, cwd=folder, timeout=_SECONDS)
    # A compiler without GCC's options, such as IAR's: nothing can be said about its CPU.
    except MlfError:
        return
    for rule in rules:
        if bool(re.search(rule.pattern, macros)) != rule.wanted:
            raise UsageError(
                "flags-for-another-cpu",
                place=place,
                reason=f"{command[0]} {rule.otherwise}",
                hint=f"correct its flags{origin}, or the target's cpu",
            )


_STAMP = ".mlfbuild-configured"
"""The file with the arguments of CMake for which the build folder was configured."""
_DAMAGED_CACHE = "Parse error in cache file"
"""CMake's message; it writes the cache in place, so that a full disk or a kill leaves a part of it."""
_LINKER_SCRIPT = re.compile(r"^  LINK_FLAGS = .*(-T|--script|-?-specs=)", re.MULTILINE)
"""Flags of a link that select a linker script, or a library with one."""
_START_UP = re.compile(
    rb"\b(Reset_Handler|_start|_exit|\w*isr_vector\w*|__Vectors|vector_table|_?vectors)\b", re.IGNORECASE
)
"""Names in start-up code: of CMSIS, of vendors, and what a C library expects."""
_NOT_IN_PATHS = re.compile(r"""["'$;>\\|\n]""")
"""Characters for which CMake 3.25 writes commands that Ninja or the shell read in another way, or its own lists break.

Each fails in a build of a project whose folder is called ``a<character>b``; all others of ASCII were tried and work.
"""

_GENERATED = """\
# Generated by mlfbuild from the project file. Do not edit.
cmake_minimum_required(VERSION 3.22)
project({name} LANGUAGES {languages})
link_libraries(m) # code of other compilers may call it
include("${{MLF_TREE}}/mlf.cmake")
add_executable({name}{sources})
target_include_directories({name} PRIVATE{include_dirs})
target_link_libraries(
  {name} PRIVATE{models} $<TARGET_NAME_IF_EXISTS:mlf::board> $<TARGET_NAME_IF_EXISTS:mlf::placement>)
"""


def cross_build(
    job: FirmwareJob, definitions: Sequence[str] = (), jobs: int | None = None, on_progress: OnProgress = no_progress
) -> str:
    """Configure the firmware if needed, build it, and return what CMake and Ninja printed.

    ``definitions`` are further ``NAME=VALUE`` cache entries, ``jobs`` the number of compilers at a time (Ninja's choice
    if ``None``); ``on_progress`` is called with the progress. Raises ``ToolNotFoundError``, ``ProcessFailedError`` with
    the output of the tool that failed, ``UsageError`` if the compiler's flags are for another CPU or if the program
    cannot start, and ``CheckFailedError`` if two models in the image share a global symbol or a section is outside its
    region.
    """
    _check_paths(job)
    with writing_to(job.build):
        return _cross_build(job, definitions, jobs, on_progress)


def _cross_build(job: FirmwareJob, definitions: Sequence[str], jobs: int | None, on_progress: OnProgress) -> str:
    begin = time.monotonic()
    made = link_record(job)
    if made is not None and made.worker:
        job.elf.unlink(missing_ok=True)  # Ninja does not know what a worker linked it from
    configured = _configure(job, definitions, on_progress)
    if job.sources and job.target.board is None and job.target.toolchain is not None:
        _check_start_up(job)
    command: list[str | Path] = [find_tool("cmake"), "--build", job.build, *(["-j", str(jobs)] if jobs else [])]
    try:
        built = _built(job, command, on_progress)
    except ProcessFailedError as error:
        # The cache can be made again from the arguments, so a build that follows a full disk or a kill repairs itself.
        if _DAMAGED_CACHE not in error.output:
            raise
        (job.build / _STAMP).unlink(missing_ok=True)
        configured += _configure(job, definitions, on_progress)
        built = _built(job, command, on_progress)
    if not job.elf.is_file() or not _builds_image(job):
        raise ProcessFailedError(
            "cmake-image-missing",
            built,
            place=job.name,
            reason=f"CMake built no {job.elf.name} in {job.build}",
            hint=f"add add_executable({job.name} ...) to its CMakeLists.txt",
        )
    if did_something(built) or not has_record(job):
        record_link(job, round(time.monotonic() - begin, 3))
    check_image(job)
    check_placed(job)
    if job.params_section is not None:
        write_params_binary(job.elf, job.params_section, job.params_binary)
    return configured + built


def _check_start_up(job: FirmwareJob) -> None:
    """Raise ``UsageError`` if nothing in the job's sources and flags can start the program on the target.

    A board would bring start-up code and a linker script. Without both, the link fails for reasons that do not lead to
    them, such as an undefined ``_exit``.
    """
    commands = (job.build / "build.ninja").read_text(errors="replace")
    problem = None if _LINKER_SCRIPT.search(commands) else start_up_problem(job.sources, job.target.cpu)
    if problem is not None:
        raise problem.error(f"firmware {job.name!r} for target {job.target.name!r}")


def start_up_problem(sources: Iterable[Path], cpu: Cpu) -> Mistake | None:
    """Return why ``sources`` cannot start on a device with ``cpu`` if no flag names a linker script, else ``None``."""
    if any(_START_UP.search(read_bytes(path, "source")) for path in sources):
        return None
    board = emulated_board(cpu)
    return Mistake(
        "start-up-code-missing",
        reason="the target has no board, so start-up code is missing: the sources define no Reset_Handler, and the "
        "flags name no linker script",
        hint="add start-up code to sources and -T<script> to a toolchain file of your own, or build with cmake and "
        "your CMakeLists.txt" + (f", or run it in QEMU with board: {board.name}" if board else ""),
    )


def path_problem(path: Path) -> Mistake | None:
    """Return why CMake and Ninja cannot build what is in or at ``path``, else ``None``.

    Asked before a build, because each failure looks different and none names the path: a command that the shell reads
    in another way, or a list of CMake with one element too many.
    """
    text = path.as_posix()
    unsuited = sorted({*_NOT_IN_PATHS.findall(text), *("[]" if text.count("[") != text.count("]") else "")})
    if not unsuited:
        return None
    named = " and ".join(repr(character) for character in unsuited)
    return Mistake(
        "path-unsuited",
        reason=f"CMake cannot build in a path with {named}: {printable(text)}",
        hint="rename the folder",
    )


def _check_paths(job: FirmwareJob) -> None:
    paths = [job.root.resolve(), _real(job, job.build), _real(job, job.target.tree), *job.sources, *job.include_dirs]
    for path in paths:
        problem = path_problem(path)
        if problem is not None:
            raise problem.error(f"firmware {job.name!r} for target {job.target.name!r}")


def _builds_image(job: FirmwareJob) -> bool:
    """Return whether Ninja has a rule for the image: the image of a target that was removed stays in the folder."""
    image = re.escape(job.elf.relative_to(job.build).as_posix())
    rule = re.compile(rf"^build [^:\n]*(?<![^ ]){image}(?![^ :])", re.MULTILINE)
    return rule.search((job.build / "build.ninja").read_text(errors="replace")) is not None


def did_something(output: str) -> bool:
    """Return whether a build that printed ``output`` had anything to do."""
    return output.strip() != "ninja: no work to do."


def _built(job: FirmwareJob, command: Sequence[str | Path], on_progress: OnProgress) -> str:
    try:
        built = run_ninja(command, on_progress)
    except ProcessFailedError:
        with contextlib.suppress(ProcessFailedError):
            # After the build has failed: if the flags are for another CPU, that explains the messages of the compiler.
            check_flags(job)
        with contextlib.suppress(ProcessFailedError, InputFileError):
            check_libraries(job)  # if two models clash, their names explain more than the linker's output
        raise
    check_flags(job)  # Ninja may have run CMake again
    return built


def _configure(job: FirmwareJob, definitions: Sequence[str], on_progress: OnProgress) -> str:
    source = _real(job, job.cmake if job.cmake is not None else _generate(job))
    make_folder(job.build)
    arguments = [
        "-DCMAKE_EXPORT_COMPILE_COMMANDS=ON",
        f"-DMLF_TREE={_real(job, job.target.tree)}",
        *(f"-D{text}" for text in definitions),
    ]
    if job.target.toolchain is not None:
        arguments.append(f"-DCMAKE_TOOLCHAIN_FILE={_real(job, job.target.toolchain)}")
        arguments += [f"-DMLFBUILD_SOURCE_ROOT={_real(job, job.root)}", "--no-warn-unused-cli"]
    # The fragment otherwise starts mlfbuild after each link, which would check the same budgets twice.
    if job.target.budgets:
        arguments.append("-DMLFBUILD_CHECKS_LINKS=ON")  # mlfbuild checks the image
    signature = "\n".join([str(source), *arguments, ""])
    stamp = job.build / _STAMP
    if holds(stamp, signature.encode()) and (job.build / "build.ninja").is_file():
        return ""  # Ninja re-runs CMake by itself when one of its inputs changed
    # Before CMake runs: a configuration that fails or is interrupted must not count as current.
    stamp.unlink(missing_ok=True)
    # CMake ignores a changed toolchain file in a folder that it has configured before.
    (job.build / "CMakeCache.txt").unlink(missing_ok=True)
    # CMake reports a missing compiler with many lines; this error names the package.
    require_compiler(job.target.toolchain, definitions)
    on_progress("configuring", 0, 0)
    cmake, ninja = find_tool("cmake"), find_tool("ninja")
    words: list[str | Path] = [cmake, "-S", source, "-B", _real(job, job.build), "-G", "Ninja"]
    try:
        output = run([*words, f"-DCMAKE_MAKE_PROGRAM={ninja}", *arguments])
    except ProcessFailedError:
        for model in job.target.models:
            if model.devices is not None:  # the project's CMake code may choose another compiler, so ask afterwards
                require_device_compilers(model.devices, model.tree)
        raise
    check_flags(job)
    write_atomic(stamp, signature.encode())
    return output


def _real(job: FirmwareJob, path: Path) -> Path:
    """Return the absolute path, the same one however the project was named: relative, absolute or by a link.

    CMake configures and compiles everything again if one of its paths is written in another way, and ``scons``,
    ``mlfbuild build`` and ``mlfbuild -f ../mlfbuild.yml build`` write them differently.
    """
    return job.root.resolve() / path.relative_to(job.root) if path.is_relative_to(job.root) else path.absolute()


def _generate(job: FirmwareJob) -> Path:
    """Write a CMakeLists.txt for a firmware that the project file lists by its sources; return its folder."""
    folder = job.build.with_name(f"{job.name}.cmake")
    text = _GENERATED.format(
        name=job.name,
        languages="C CXX ASM" if any(path.suffix in {".cc", ".cpp", ".cxx"} for path in job.sources) else "C ASM",
        sources=_words(f'"{_relative(path, folder)}"' for path in job.sources),
        include_dirs=_words(f'"{_relative(path, folder)}"' for path in job.include_dirs),
        models=_words(f"mlf::{name}" for name in job.models),
    )
    write_if_changed(folder / "CMakeLists.txt", text.encode())
    return folder


def _words(words: Iterable[str]) -> str:
    return "".join(f"\n  {word}" for word in words)


def _relative(path: Path, folder: Path) -> str:
    return f"${{CMAKE_CURRENT_LIST_DIR}}/{Path(os.path.relpath(path, folder)).as_posix()}"
