"""Find the Python that runs TVM, and read the version of TVM."""

from __future__ import annotations

import functools
import re
from pathlib import Path
from typing import TYPE_CHECKING

from mlfbuild.compilers.external.find import find_program
from mlfbuild.compilers.external.run import run_program
from mlfbuild.core import ProcessFailedError, ToolNotFoundError, shown

if TYPE_CHECKING:
    from mlfbuild.library import CompilerProgram

DEFAULT = "python3"
OLDEST, NEWEST = (0, 8), (0, 18)
"""The oldest and the newest release of TVM whose tvmc writes Model Library Format."""

_ASK = "import tvm; print('\\ntvm', tvm.__version__)"
_ANSWER = re.compile(r"^tvm (([0-9]+)\.([0-9]+)\S*)$", re.MULTILINE)
_ADVICE = "install TVM 0.8 to 0.18 for it, or name another interpreter (python: in the project file)"


def find_interpreter(program: CompilerProgram | None, model: str) -> str:
    """Return the path of the Python that ``program`` names, by default of ``python3`` in PATH.

    Raises ``ToolNotFoundError``, which names ``model``.
    """
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
