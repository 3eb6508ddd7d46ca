"""C text of a linked model: its source and header, and what the options ``hook`` and ``trace`` add to them.

``program`` links the calls of all nodes with the addresses of the memory plan; everything else prints what it holds.
``outline`` has the names of the files, which are known without compiling.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from mlfbuild.compilers.native.printing.front_matter import header_notice, source_notice
    from mlfbuild.compilers.native.printing.header import fact_parts, print_header
    from mlfbuild.compilers.native.printing.interface import Interface, interface_of
    from mlfbuild.compilers.native.printing.outline import (
        facts_path,
        functions_path,
        header_path,
        outline_library,
        source_path,
    )
    from mlfbuild.compilers.native.printing.program import (
        Function,
        Program,
        Step,
        included_headers,
        link_calls,
        node_comment,
        operator_label,
    )
    from mlfbuild.compilers.native.printing.source import declarator, print_function, print_source
    from mlfbuild.compilers.native.printing.text import graph_text
    from mlfbuild.compilers.native.printing.trace import traced_tensor, traced_tensors

__all__ = [
    "Function",
    "Interface",
    "Program",
    "Step",
    "declarator",
    "fact_parts",
    "facts_path",
    "functions_path",
    "graph_text",
    "header_notice",
    "header_path",
    "included_headers",
    "interface_of",
    "link_calls",
    "node_comment",
    "operator_label",
    "outline_library",
    "print_function",
    "print_header",
    "print_source",
    "source_notice",
    "source_path",
    "traced_tensor",
    "traced_tensors",
]

_HOMES = {
    "front_matter": (
        "header_notice",
        "source_notice",
    ),
    "header": (
        "fact_parts",
        "print_header",
    ),
    "interface": (
        "Interface",
        "interface_of",
    ),
    "outline": (
        "facts_path",
        "functions_path",
        "header_path",
        "outline_library",
        "source_path",
    ),
    "program": (
        "Function",
        "Program",
        "Step",
        "included_headers",
        "link_calls",
        "node_comment",
        "operator_label",
    ),
    "source": (
        "declarator",
        "print_function",
        "print_source",
    ),
    "text": ("graph_text",),
    "trace": (
        "traced_tensor",
        "traced_tensors",
    ),
}

if not TYPE_CHECKING:  # or every name would be known to type checkers

    def __getattr__(name: str) -> object:
        """Import the module that has ``name`` when it is first asked for."""
        for home, names in _HOMES.items():
            if name in names:
                return getattr(importlib.import_module(f"{__name__}.{home}"), name)
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
