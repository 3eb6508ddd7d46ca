"""Print the C source and header of a model, with the additions of the options ``hook`` and ``trace``.

``program`` links the calls of all nodes with the addresses of the memory plan to a ``LinkedModel``; the other modules
print it. ``file_plan`` has the names of the files, which are known without compiling.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from mlfbuild.core import lazy_attributes

if TYPE_CHECKING:
    from mlfbuild.native.printing.file_plan import (
        facts_path as facts_path,
        header_path as header_path,
        outline_library as outline_library,
        source_path as source_path,
    )
    from mlfbuild.native.printing.files import codegen_files as codegen_files
    from mlfbuild.native.printing.header import (
        print_facts as print_facts,
        print_header as print_header,
    )
    from mlfbuild.native.printing.interface import (
        Interface as Interface,
        chosen_problem as chosen_problem,
        interface_of as interface_of,
        runtime_dtype as runtime_dtype,
        runtime_shape as runtime_shape,
    )
    from mlfbuild.native.printing.notices import (
        cpu_check as cpu_check,
        source_notice as source_notice,
    )
    from mlfbuild.native.printing.packed import (
        COUNT_BYTES as COUNT_BYTES,
        PACKED_ARGUMENTS as PACKED_ARGUMENTS,
        print_entry as print_entry,
        print_tvm_metadata as print_tvm_metadata,
    )
    from mlfbuild.native.printing.program import (
        LinkedModel as LinkedModel,
        ModelStep as ModelStep,
        NodeFunction as NodeFunction,
        included_headers as included_headers,
        link_calls as link_calls,
        node_comment as node_comment,
        operator_label as operator_label,
    )
    from mlfbuild.native.printing.source import (
        declarator as declarator,
        print_function as print_function,
        print_source as print_source,
    )
    from mlfbuild.native.printing.text import graph_text as graph_text
    from mlfbuild.native.printing.trace import (
        traced_tensor as traced_tensor,
        traced_tensors as traced_tensors,
    )
else:
    __getattr__ = lazy_attributes(__name__)
