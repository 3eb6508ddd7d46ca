"""Faces of rooms that load what they show when it is asked for (PEP 562).

A room's ``__init__`` names what other rooms may use and imports none of it, so that a door costs nothing::

    if TYPE_CHECKING:
        from mlfbuild.core.files import read_bytes as read_bytes
    else:
        __getattr__ = lazy_attributes(__name__, {"files": ["read_bytes"]})

Type checkers read the first branch, Python the second; ``tests/test_layers.py`` holds both to the same names.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import Any


def lazy_attributes(package: str, modules: Mapping[str, Sequence[str]]) -> Callable[[str], Any]:
    """Return a module ``__getattr__`` for ``package`` that finds each name in the module listed with it.

    ``modules`` maps the name of a module in the package to the names that it defines. What was found becomes an
    attribute of the package, so that it is looked up once. Raises ``AttributeError`` for any other name.
    """
    homes = {name: f"{package}.{module}" for module, names in modules.items() for name in names}

    def find(name: str) -> Any:
        if name not in homes:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        value = getattr(importlib.import_module(homes[name]), name)
        setattr(sys.modules[package], name, value)
        return value

    return find
