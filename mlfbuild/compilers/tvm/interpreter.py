"""The Python that has TVM, and which version that is."""

from __future__ import annotations

import functools
import re
from pathlib import Path
from typing import TYPE_CHECKING

from mlfbuild.compilers.external.find import find_program
from mlfbuild.compilers.external.run import run_program
from mlfbuild.core import ProcessFailedError, ToolNotFoundError, shown

if TYPE_CHECKING:
    from mlfbuild.project import CompilerProgram

DEFAULT = "python3"
OLDEST, NEWEST = (0, 8), (0, 18)
"""Versions of TVM whose releases write Model Library Format with tvmc."""

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
    """Return the version of TVM that the interpreter ``python`` has, as numbers and as it says.

    Raises ``ToolNotFoundError`` where it has none, or one that has no Model Library Format.
    """
    try:
        printed = run_program([python, "-c", _ASK], python, folder=Path())
    except ProcessFailedError as error:
        why = next((line for line in reversed(error.output.splitlines()) if line.strip()), error.message)
        raise ToolNotFoundError(f"{python}: cannot import tvm ({shown(why.strip())}); {_ADVICE}") from None
    answer = _ANSWER.search(printed)
    if answer is None:
        raise ToolNotFoundError(f"{python}: has a package tvm that tells no version; {_ADVICE}")
    version = int(answer[2]), int(answer[3])
    if not OLDEST <= version <= NEWEST:
        reason = "removed Model Library Format in 0.19" if version > NEWEST else "wrote no such archives before 0.8"
        raise ToolNotFoundError(f"{python}: has TVM {answer[1]}, and TVM {reason}; {_ADVICE}")
    return version, answer[1]
