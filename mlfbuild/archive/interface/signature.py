"""The inputs and outputs of a module as recorded in one place of an archive.

The first place is the header of the C interface, ``tvmgen_<module>.h``, with structs and size macros (TVM's
``interface_c.cc``).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from itertools import islice

from mlfbuild.c_analysis import MAX_TEXT, SOURCE_SUFFIXES, read_c_file, tokens
from mlfbuild.library import (
    CodegenFile,
    Content,
    Module,
    Pool,
    header_names,
    macro_prefix,
    struct_prefix,
    tensor_size,
    text_of,
)

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


_SIZE = re.compile(r"[0-9]{1,18}")
_MAX_TOKENS = 200_000  # headers from TVM have a few hundred


@dataclass(frozen=True)
class Header:
    """The declarations of the header; names are sanitised."""

    structs: Mapping[str, tuple[str, ...]]
    """Members of ``struct tvmgen_<module>_<key>``: ``inputs``, ``outputs``, ``workspace_pools``, ``devices``."""
    sizes: Mapping[str, int]
    """Macros with integer values: ``TVMGEN_KWS_WORKSPACE_SIZE``, ``TVMGEN_KWS_X_SIZE``, ..."""
    prefix: str
    """``TVMGEN_KWS``."""
    workspace_io: bool = False
    """Whether inputs and outputs are in the pools (``tir.usmp.use_workspace_io`` of TVM's memory planner)."""

    @property
    def signature(self) -> Signature:
        """Inputs and outputs by name. In TVM 0.8 a module without inputs has no struct for them."""
        inputs, outputs = self.structs.get("inputs"), self.structs.get("outputs")
        return Signature(
            None if inputs is None else named(inputs),
            None if outputs is None else named(outputs),
        )

    @property
    def pools(self) -> tuple[Pool, ...]:
        """Pools that the caller passes, in the order of the struct."""
        return tuple(self._pool(name) for name in self.structs.get("workspace_pools", ()))

    def _pool(self, name: str) -> Pool:
        # Only the name of the macro shows the kind of the pool.
        for kind in ("constant", "workspace"):
            size = self.sizes.get(f"{self.prefix}_{name.upper()}_{kind.upper()}_POOL_SIZE")
            if size is not None:
                return Pool(name, kind, size, external=True)
        return Pool(name, "workspace", None, external=True)


def header_file(module: Module) -> CodegenFile | None:
    """Return the header of the module's C interface, or ``None``.

    Names are compared in lower case, because TVM changes the case of the module's name in them.
    """
    names = header_names(module.name)
    return next((file for file in module.codegen if file.path.name.lower() in names), None)


def read_header(module: Module) -> Header | None:
    """Return the declarations of the module's header, or ``None`` if it has no header.

    ``structs`` are by the part of their name after the module's prefix, and ``sizes`` has only macros with a whole
    number. Only the first ``_MAX_TOKENS`` tokens are read.
    """
    file = header_file(module)
    if file is None:
        return None
    text, prefix = small_text(file.content), struct_prefix(module.name)
    facts = read_c_file(f"codegen/{file.path}", islice(tokens(text), _MAX_TOKENS))
    structs = {
        name.lower().removeprefix(f"{prefix}_"): members
        for name, members in facts.structs.items()
        if name.lower().startswith(f"{prefix}_")
    }
    # Other macros, such as the include guard, have no value that is a number.
    sizes = {name: int(value) for name, value in facts.macros if _SIZE.fullmatch(value)}
    return Header(structs, sizes, macro_prefix(module.name), workspace_io=f"{prefix}_map_inputs" in text)
