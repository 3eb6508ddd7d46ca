"""The inputs and outputs of a module as recorded in one place of an archive."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, replace

from mlfbuild.c_analysis import MAX_TEXT, SOURCE_SUFFIXES
from mlfbuild.library import CodegenFile, Content, Module, tensor_size, text_of

_MAX_DIMS = 64
_LARGEST = 2**63 - 1
_LIBRARY = re.compile(r"(?:.*_)?lib(\d{1,9})", re.ASCII)


@dataclass(frozen=True)
class Argument:
    """An input or output; the default values mean that the place has only its name."""

    name: str
    dtype: str = ""
    shape: tuple[int, ...] | None = None
    dims: tuple[int | None, ...] | None = None
    """The shape with unknown extents, if it is only known in part."""
    recorded: int | None = None
    """Bytes, if they are recorded without a shape."""

    @property
    def size(self) -> int | None:
        """Bytes; ``None`` if type or shape is unknown or not valid for a tensor."""
        if self.shape is None:
            return self.recorded if self.dtype else None
        if len(self.shape) > _MAX_DIMS or not self.dtype:
            return None
        size = tensor_size(self.dtype, self.shape)
        return None if size is None or size > _LARGEST else size

    def of_size(self, size: int) -> Argument:
        """Return the argument with ``size`` bytes, from which one unknown extent of its shape follows.

        For example, an int8 argument with the ``dims`` ``(1, None)`` and 64 bytes gets the shape ``(1, 64)``. If no
        shape follows, the result has the size in ``recorded``.
        """
        if self.shape is not None:
            return self
        known = [extent for extent in self.dims or () if extent is not None]
        # With two unknown extents, the size has several explanations.
        if self.dims is not None and len(known) == len(self.dims) - 1 <= _MAX_DIMS:
            one = tensor_size(self.dtype, tuple(known))
            if one and size % one == 0:
                shape = tuple(size // one if extent is None else extent for extent in self.dims)
                return Argument(self.name, self.dtype, shape)
        return replace(self, recorded=size)


@dataclass(frozen=True)
class Signature:
    """Inputs and outputs of one place, in call order."""

    inputs: tuple[Argument, ...] | None
    """``None`` if unknown; the names may be sanitised."""
    outputs: tuple[Argument, ...] | None
    """``None`` if unknown; the names may be sanitised."""
    count: int | None = None
    """The number of inputs and outputs together, if only that is known."""


def named(names: Iterable[str]) -> tuple[Argument, ...]:
    """Return arguments with only names."""
    return tuple(Argument(name) for name in names)


def small_text(content: Content) -> str:
    """Return ``content`` as text; empty if it is larger than ``MAX_TEXT``."""
    return text_of(content) if len(content) <= MAX_TEXT else ""


def sources(module: Module) -> list[CodegenFile]:
    """Return the module's C and C++ files, ``<module>_lib0.c`` first.

    Files are sorted by the number at the end of their names, then by path. Headers and objects are left out.
    """
    files = [file for file in module.codegen if file.path.suffix in SOURCE_SUFFIXES]
    return sorted(files, key=lambda file: (_number(file), str(file.path)))


def _number(file: CodegenFile) -> int:
    found = _LIBRARY.fullmatch(file.path.stem)
    # Files without a number come last.
    return int(found[1]) if found else 10**9
