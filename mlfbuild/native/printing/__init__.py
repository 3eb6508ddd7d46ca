"""Print the C source and header of a model, with the additions of the options ``hook`` and ``trace``.

``program`` links the calls of all nodes with the addresses of the memory plan to a ``LinkedModel``; the other modules
print it. ``file_plan`` has the names of the files, which are known without compiling.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from mlfbuild.core import lazy_attributes

if TYPE_CHECKING:
    # fmt: off
    from mlfbuild.native.printing.file_plan import facts_path, header_path, outline_library, source_path
    from mlfbuild.native.printing.files import codegen_files
    from mlfbuild.native.printing.header import print_facts, print_header
    from mlfbuild.native.printing.interface import Interface, chosen_problem, interface_of, runtime_dtype, runtime_shape
    from mlfbuild.native.printing.notices import cpu_check, source_notice
    from mlfbuild.native.printing.packed import COUNT_BYTES, PACKED_ARGUMENTS, print_entry, print_tvm_metadata
    from mlfbuild.native.printing.program import (
        LinkedModel, ModelStep, NodeFunction, included_headers, link_calls, node_comment, operator_label,
    )
    from mlfbuild.native.printing.source import declarator, print_function, print_source
    from mlfbuild.native.printing.text import graph_text
    from mlfbuild.native.printing.trace import traced_tensor, traced_tensors
else:
    __getattr__ = lazy_attributes(__name__)
