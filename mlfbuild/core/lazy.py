"""Faces of rooms: a room's ``__init__`` lists what other rooms may use, and imports a name when it is first used.

The list is a block for type checkers, and the only declaration. Add a name anywhere in it: ``make generate`` sorts the
list and fills its lines::

    if TYPE_CHECKING:
        # fmt: off
        from mlfbuild.core.files import read_bytes
    else:
        __getattr__ = lazy_attributes(__name__)

Type checkers read the first branch. Python runs the second: its function (PEP 562) finds ``read_bytes`` in the list and
imports ``mlfbuild.core.files`` when a module runs ``from mlfbuild.core import read_bytes``. A room with a hundred names
costs no more to enter than one with three. ``attach_stub`` of lazy_loader does the same with stub files.

A face must not list a name that is also a module of its package: Python sets the module as an attribute of the package
when it imports it. ``tests/test_layers.py`` checks that.
"""

from __future__ import annotations

import functools
import importlib
import re
import sys
from collections.abc import Callable, Mapping
from types import ModuleType
from typing import Any

_IMPORT = re.compile(r"^    from (\S+) import (\([^)]*\)|.*)$", re.MULTILINE)
_NAME = re.compile(r"\w+")


def lazy_attributes(package: str) -> Callable[[str], Any]:
    """Return a module-level ``__getattr__`` for ``package`` that imports the names of its ``TYPE_CHECKING`` block.

    A name becomes an attribute of the package when it is found, so that each is looked up once. The returned function
    raises ``AttributeError`` for names that are not in the block.
    """

    def find(name: str) -> Any:
        module = _listed(package).get(name)
        if module is None:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        value = getattr(importlib.import_module(module), name)
        setattr(sys.modules[package], name, value)
        return value

    return find


def lazy_module(name: str) -> Any:
    """Return the module ``name``, which is imported when one of its attributes is used first.

    For large libraries in modules that most commands load and few of them run: a build that finds everything up to date
    saves the time of numpy. Type checkers read the branch with the usual ``import``::

        if TYPE_CHECKING:
            import numpy as np
        else:
            np = lazy_module("numpy")
    """
    return _LazyModule(name)


class _LazyModule(ModuleType):
    def __getattr__(self, name: str) -> Any:
        value = getattr(importlib.import_module(self.__name__), name)
        setattr(self, name, value)
        return value


@functools.cache
def _listed(package: str) -> Mapping[str, str]:
    """Return the names in the ``TYPE_CHECKING`` block of ``package``, each with the module that defines it.

    Only its form "from module import X, Y" is read: a parser of Python needs most of the time of a short command.
    """
    spec = sys.modules[package].__spec__
    assert spec is not None and spec.loader is not None
    source = spec.loader.get_source(package)  # type: ignore[attr-defined]  # loaders of files and zip files have it
    imports = _IMPORT.findall(source.partition("\nif TYPE_CHECKING:\n")[2])
    return {name: module for module, names in imports for name in _NAME.findall(names)}
