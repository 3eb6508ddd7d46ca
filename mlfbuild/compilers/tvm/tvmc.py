"""The command line of ``tvmc compile``, for each version of TVM that writes Model Library Format.

Source: ``python/tvm/driver/tvmc`` of TVM's releases. tvmc derives its arguments from registries of TVM:

    0.8          executor and runtime are attributes of the target: --target-c-executor=aot --target-c-runtime=c;
                 all modules are called "default", and CMSIS-NN has no option for the CPU
    0.9 to 0.18  --executor=aot --executor-aot-interface-api=c --runtime=crt --runtime-crt-system-lib=1
                 --module-name=<model> --target-cmsis-nn-mcpu=<cpu>

Options that are not given keep TVM's defaults, except those that its C needs to work in firmware: executor AOT with
the C interface, which needs unpacked arguments, and no vector types in C.

Find the Python that runs TVM, and read the version of TVM.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from mlfbuild.compilers.external.run import find_program, run_program
from mlfbuild.compilers.hook_support import HOOK
from mlfbuild.compilers.tvm.options import words
from mlfbuild.core import ProcessFailedError, ToolNotFoundError, UsageError, shown

if TYPE_CHECKING:
    from mlfbuild.library import CompileRequest, CompilerProgram, OptionValue


Version = tuple[int, int]

_WITH_REGISTRIES: Version = (0, 9)
"""The first version whose tvmc has arguments for executors and runtimes."""
_OF_EXECUTOR = {
    "aot": ("interface-api", "unpacked-api", "link-params", "workspace-byte-alignment", "constant-byte-alignment"),
    "graph": ("link-params",),
}
_OLD_RUNTIMES = {"crt": "c", "cpp": "c++"}
_NOT_IN_0_8 = ("constant-byte-alignment", "opt-level")
# TVM's C code generator has vector types in its output, which no header of the C runtime declares.
_NO_VECTORS = "tir.disable_vectorize=1"
_KNOWS_CPU = ("c", "cmsis-nn")
"""Targets with an attribute ``mcpu``, which is the name of a core."""
# Commas inside quotes belong to an attribute: `c -keys="arm_cpu,cpu"` is one target.
_TARGET = re.compile(r"""(?:[^,"']|"[^"]*"|'[^']*')+""")


def tvmc_arguments(request: CompileRequest, version: Version, source: str, output: Path) -> list[str]:
    """Return the arguments of ``tvmc compile`` of TVM ``version`` that make ``output`` from ``source``.

    Raises ``UsageError`` for options that the executor or ``version`` does not have.
    """
    executor = request.executor or "aot"
    options = _with_defaults(request.options, executor)
    _check(request, executor, version)
    targets = _targets(str(options["target"]))
    make = _arguments if version >= _WITH_REGISTRIES else _arguments_0_8
    return [
        f"--target={options['target']}",
        *_cpu(targets, request, version),
        # The last target is the one that compiles what the others, such as cmsis-nn, leave over; in TVM 0.8 it has the
        # attributes for executor and runtime.
        *make(options, executor, request.name, next(reversed(targets))),
        *_pass_config(options, targets),
        "--output-format=mlf",
        f"--output={output}",
        *words(options.get("arguments", "")),
        source,
    ]


def _with_defaults(options: Mapping[str, OptionValue], executor: str) -> dict[str, OptionValue]:
    defaults: dict[str, OptionValue] = {"target": "c", "runtime": "crt"}
    if executor == "aot":
        # TVM has the C interface for its C runtime only.
        interface = options.get("interface-api", "c" if options.get("runtime", "crt") == "crt" else "packed")
        defaults |= {"interface-api": interface, "unpacked-api": interface == "c"}
    return {**defaults, **options}


def _check(request: CompileRequest, executor: str, version: Version) -> None:
    # Options of the other executor only: those that no executor has were refused when the project file was read.
    known = {option for options in _OF_EXECUTOR.values() for option in options} - {*_OF_EXECUTOR[executor]}
    for key in request.options:
        where = f"{request.name}: options.{key}"
        if key in known:
            other = next(name for name, options in _OF_EXECUTOR.items() if key in options)
            reason = f"is an option of executor {other}, not of {executor}"
            raise UsageError("option-of-other-executor", place=where, reason=reason, hint="remove it")
        if key == HOOK and request.options[key] and executor != "graph":
            reason = "TVM's AOT executor calls all operators in one function"
            raise UsageError(
                "hook-of-aot-executor", place=where, reason=reason, hint="remove it, or use executor graph"
            )
        if version < _WITH_REGISTRIES and key in _NOT_IN_0_8:
            reason = "TVM 0.8 does not have this option"
            raise UsageError("option-newer-than-tvm", place=where, reason=reason, hint="remove it, or use a later TVM")


def _targets(text: str) -> dict[str, str]:
    """Split targets such as ``cmsis-nn,c -mcpu=cortex-m4`` as tvmc does: name -> text."""
    parts = (part.strip() for part in _TARGET.findall(text))
    return {part.split(maxsplit=1)[0]: part for part in parts if part} or {text: text}


def _cpu(targets: Mapping[str, str], request: CompileRequest, version: Version) -> Iterator[str]:
    """Yield the arguments that name the core, unless the target in the project file names it."""
    for name, text in targets.items():
        named = "-mcpu" in text or f"--target-{name}-mcpu" in str(request.options.get("arguments", ""))
        knows = name in _KNOWS_CPU and (name == "c" or version >= _WITH_REGISTRIES)
        if request.cpu.is_arm and knows and not named:
            yield f"--target-{name}-mcpu={request.cpu.name}"


def _arguments(options: Mapping[str, OptionValue], executor: str, model: str, _target: str) -> Iterator[str]:
    runtime = options["runtime"]
    yield f"--executor={executor}"
    yield from _set(f"--executor-{executor}-", options, _OF_EXECUTOR[executor])
    yield f"--runtime={runtime}"
    yield from _set(f"--runtime-{runtime}-", options, ("system-lib",))
    yield from _set("--", options, ("opt-level",))
    yield f"--module-name={model}"


def _arguments_0_8(options: Mapping[str, OptionValue], executor: str, _model: str, target: str) -> Iterator[str]:
    yield f"--target-{target}-executor={executor}"
    yield f"--target-{target}-runtime={_OLD_RUNTIMES[str(options['runtime'])]}"
    yield from _set(f"--target-{target}-", options, (*_OF_EXECUTOR[executor], "system-lib"))


def _set(prefix: str, options: Mapping[str, OptionValue], names: tuple[str, ...]) -> Iterator[str]:
    for name in names:
        if name in options:
            value = options[name]
            yield f"{prefix}{name}={int(value) if isinstance(value, bool) else value}"


def _pass_config(options: Mapping[str, OptionValue], targets: Mapping[str, str]) -> Iterator[str]:
    given = words(options.get("pass-config", ""))
    name = _NO_VECTORS.partition("=")[0]
    if "c" in targets and not any(word.startswith(f"{name}=") for word in given):
        given.insert(0, _NO_VECTORS)
    yield from (f"--pass-config={word}" for word in given)


DEFAULT = "python3"
OLDEST, NEWEST = (0, 8), (0, 18)
"""The oldest and the newest release of TVM whose tvmc writes Model Library Format."""

# On a separate line, because imports may print warnings.
_ASK = "import tvm; print('\\ntvm', tvm.__version__)"
_ANSWER = re.compile(r"^tvm (([0-9]+)\.([0-9]+)\S*)$", re.MULTILINE)
_ADVICE = "install TVM 0.8 to 0.18 for it, or name another interpreter (python: in the project file)"


def find_interpreter(program: CompilerProgram | None, model: str) -> str:
    """Return the path of the Python that ``program`` names, by default of ``python3`` in PATH.

    Raises ``ToolNotFoundError``, which names ``model``.
    """
    # A relative path in the project file is relative to that file, wherever the command was started.
    folder = program.folder if program else Path()
    return find_program((program.interpreter if program else None) or DEFAULT, folder, f"{model}: TVM's interpreter")


@functools.cache
def tvm_version(python: str) -> tuple[tuple[int, int], str]:
    """Return the version of TVM that the interpreter ``python`` imports, as numbers and as text.

    Raises ``ToolNotFoundError`` if it cannot import TVM, or if that version has no Model Library Format.
    """
    try:
        printed = run_program([python, "-c", _ASK], python, folder=Path())
    except ProcessFailedError as error:
        # The last line of a Python traceback has the exception, such as `ModuleNotFoundError: No module named 'tvm'`.
        why = next((line for line in reversed(error.output.splitlines()) if line.strip()), error.message)
        reason = f"cannot import tvm ({shown(why.strip())})"
        raise ToolNotFoundError("tvm-not-importable", place=python, reason=reason, hint=_ADVICE) from None
    answer = _ANSWER.search(printed)
    if answer is None:
        reason = "the package tvm has no version"
        raise ToolNotFoundError("tvm-without-version", place=python, reason=reason, hint=_ADVICE)
    version = int(answer[2]), int(answer[3])
    if not OLDEST <= version <= NEWEST:
        reason = f"TVM {answer[1]} does not have Model Library Format"
        raise ToolNotFoundError("tvm-version-unsupported", place=python, reason=reason, hint=_ADVICE)
    return version, answer[1]
