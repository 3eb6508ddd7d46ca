"""Read the header of the C interface, ``tvmgen_<module>.h``: structs and size macros (TVM's ``interface_c.cc``)."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import islice

from mlfbuild.archive.interface.signature import Signature, named, small_text
from mlfbuild.c_analysis import read_c_file, tokens
from mlfbuild.library import CodegenFile, Module, Pool, header_names, macro_prefix, struct_prefix

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
