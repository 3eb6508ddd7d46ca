"""Functions that a project file names: ``module:function``, of a module in the folder of the project."""

from __future__ import annotations

import contextlib
import importlib
import sys
import traceback
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from mlfbuild.core import UsageError, printable


def user_function(name: str, folder: Path) -> Callable[..., Any]:
    """Return the function ``name``, such as ``metrics:score``, of a module in ``folder`` or an installed one.

    An error in the function is raised as ``UsageError`` with file and line. Raises ``UsageError`` if there is no
    such module or function, or if the module cannot be imported.
    """
    module, _, attribute = name.partition(":")
    with _importable(folder):
        try:
            found = getattr(importlib.import_module(module), attribute, None)
        except Exception as error:  # noqa: BLE001 - the code of the user may raise anything
            hint = f"write it in {folder / (module.replace('.', '/') + '.py')}"
            raise UsageError("function-not-imported", place=name, reason=_reason(error), hint=hint) from None
    if not callable(found):
        hint = f"define it in {module}, or correct the name"
        raise UsageError("no-such-function", place=name, reason=f"{module} has no such function", hint=hint)

    def call(*arguments: Any) -> Any:
        try:
            return found(*arguments)
        except Exception as error:  # noqa: BLE001 - as above
            frame = traceback.extract_tb(error.__traceback__)[-1]
            place = f"{frame.filename}:{frame.lineno}"
            raise UsageError("function-failed", place=place, reason=f"{name}: {_reason(error)}") from None

    return call


@contextlib.contextmanager
def _importable(folder: Path) -> Iterator[None]:
    """Let modules of ``folder`` be imported before others for the block."""
    path = str(folder.resolve())
    sys.path.insert(0, path)
    try:
        yield
    finally:
        sys.path.remove(path)


def _reason(error: Exception) -> str:
    return printable(" ".join(f"{type(error).__name__}: {error}".split()))
