"""Functions that a project file names: ``module:function``, of a module in the folder of the project."""

from __future__ import annotations

import contextlib
import importlib
import importlib.util
import sys
import traceback
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

from mlfbuild.core import InputFileError, MlfError, UsageError, printable


def function_file(source: Path) -> Path:
    """Return the file of the module in ``source``, such as ``tools/cases.py`` for ``tools/cases:calibration``."""
    return source.parent / f"{source.name.partition(':')[0].replace('.', '/')}.py"


def user_function(name: str, folder: Path) -> Callable[..., Any]:
    """Return the function ``name``, such as ``metrics:score``, of a module in ``folder`` or an installed one.

    An error in the function, or in what it yields, is raised as ``InputFileError`` with file and line. Raises
    ``UsageError`` if there is no such module or function, or if the module cannot be imported.
    """
    module, _, attribute = name.partition(":")
    file = function_file(folder / name)
    with _importable(folder):
        try:
            found = getattr(_imported(module, file), attribute, None)
        except Exception as error:  # noqa: BLE001 - the code of the user may raise anything
            hint = f"correct {file}" if file.exists() else f"write it in {file}"
            raise UsageError("function-not-imported", place=name, reason=_reason(error), hint=hint) from None
    if not callable(found):
        hint = f"define it in {module}, or correct the name"
        raise UsageError("no-such-function", place=name, reason=f"{module} has no such function", hint=hint)

    def call(*arguments: Any) -> Any:
        with _failing(name, folder):
            result = found(*arguments)
        return _yielded(result, name, folder) if isinstance(result, Iterator) else result

    return call


def _imported(module: str, file: Path) -> ModuleType:
    """Import ``file`` anew, because a process may build twice, and projects may have modules of one name."""
    if not file.exists():
        return importlib.import_module(module)
    spec = importlib.util.spec_from_file_location(f"_mlfbuild_user.{module}", file)
    if spec is None or spec.loader is None:
        raise ImportError(f"{file} is no module of Python")
    found = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = found  # dataclasses look their module up while it runs
    spec.loader.exec_module(found)
    return found


@contextlib.contextmanager
def _importable(folder: Path) -> Iterator[None]:
    """Let modules of ``folder`` be imported before others for the block."""
    path = str(folder.resolve())
    sys.path.insert(0, path)
    try:
        yield
    finally:
        sys.path.remove(path)


@contextlib.contextmanager
def _failing(name: str, folder: Path) -> Iterator[None]:
    with _importable(folder):
        try:
            yield
        except MlfError:
            raise
        except Exception as error:  # noqa: BLE001 - as above
            frame = traceback.extract_tb(error.__traceback__)[-1]
            place = f"{frame.filename}:{frame.lineno}"
            raise InputFileError("function-failed", place=place, reason=f"{name}: {_reason(error)}") from None


def _yielded(items: Iterator[Any], name: str, folder: Path) -> Iterator[Any]:
    while True:
        with _failing(name, folder):
            try:
                item = next(items)
            except StopIteration:
                return
        yield item


def _reason(error: Exception) -> str:
    return printable(" ".join(f"{type(error).__name__}: {error}".split()))
