"""Check that a firmware build compiles models for the target's CPU.

CMake writes its compiler commands to a file. mlfbuild runs the compiler with the flags of these commands and reads its
predefined macros, which show the CPU it compiles for. With wrong flags, native code silently falls back to portable C.
"""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Iterator, Sequence
from pathlib import Path

from mlfbuild.core import (
    InputFileError,
    MlfError,
    ProcessFailedError,
    UsageError,
    holds,
    read_bytes,
    real_place,
    run,
    sha256,
    write_atomic,
)
from mlfbuild.jobs.model_job import FirmwareJob
from mlfbuild.targets import MacroRule, cmake_folder, macro_rules

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
