"""Print the C source and header of a model, with the additions of the options ``hook`` and ``trace``.

    KernelCalls + Plan + Interface -> linking.link_calls -> LinkedModel -> source, header, packed, hook, trace -> files

``program`` links the calls of all nodes with the addresses of the memory plan to a ``LinkedModel``, in which every
argument is a C expression; the other modules only print it. ``file_plan`` has the names of the files, which are known
without compiling.

The rules of the text:

1. The order of a C file is fixed: includes, macros of sections, constants, workspace, state, operators, entries.
2. Nodes whose calls have the same word, parameters and body share one function, and equal constants of one class are
   stored once. Functions are named by operator and shapes (``functions``), constants by their first user,
   ``tvmgen_<model>_<operator>_<index of the node>_<constant>``.
3. Names in a model file are untrusted. They are in comments and string literals, and made harmless there; as
   identifiers, only for the members of the structs of inputs and outputs (``member_name``). All others are made of the
   project's name of the model, words of operators and kernels, and numbers.
4. There are no dates, paths or command lines. The sources contain the hashes of the model file and of the kernel
   headers and change with them. The header contains neither hash. So new weights compile no firmware source that
   includes it, unless they change a scale or zero point of an input or output, or the size of the workspace.
5. Constants, the workspace and the entry function are in sections of their own, so that a linker script can place them
   and --gc-sections can drop them.
6. Large arrays are printed in pieces, when they are written to a file: their text is several times their size.
7. All pointers of the caller are checked before the first operator, for NULL and for the alignment of their type.
   Operators cannot fail.

For example, a network LOGISTIC, FULLY_CONNECTED, LOGISTIC of 64 int8 elements, called kws, for the Cortex-M4::

    tvmgen_kws_logistic_64(table, input, output)          used by the nodes 0 and 2, with one table of 256 bytes
    tvmgen_kws_fully_connected_64(input, filter, output)  used by node 1
    mlf_kws_run(inputs, outputs, workspace)               reentrant; three calls with offsets, such as &arena[64]
    tvmgen_kws_run(inputs, outputs)                       TVM's interface, calls mlf_kws_run with the static workspace

The header of this model declares the last two, and has the shapes and scales of ``x`` and ``y``. If the image calls
``mlf_kws_run`` only, the linker drops ``tvmgen_kws_run`` and with it the static workspace of 128 bytes.

This package does not choose kernels or addresses. It does not print TVM's registry and metadata for the default
interface; ``packed`` and ``graph_executor`` do for the others.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from mlfbuild.core import lazy_attributes

if TYPE_CHECKING:
    # fmt: off
    from mlfbuild.native.printing.constant_sections import class_of
    from mlfbuild.native.printing.fast_weights import notes_of_weights
    from mlfbuild.native.printing.file_plan import facts_path, header_path, outline_library, source_path
    from mlfbuild.native.printing.files import codegen_files
    from mlfbuild.native.printing.functions import FunctionNames, NodeFunction, NodeFunctions, print_definition
    from mlfbuild.native.printing.header import print_facts, print_header
    from mlfbuild.native.printing.interface import Interface, chosen_problem, interface_of, runtime_dtype, runtime_shape
    from mlfbuild.native.printing.linking import link_calls
    from mlfbuild.native.printing.notices import cpu_check, source_notice
    from mlfbuild.native.printing.packed import COUNT_BYTES, PACKED_ARGUMENTS, print_entry, print_tvm_metadata
    from mlfbuild.native.printing.parameters import print_blob_source
    from mlfbuild.native.printing.program import (
        LinkedModel, ModelStep, PrintedProgram, included_headers, node_comment, tensor_lives,
    )
    from mlfbuild.native.printing.source import declarator, print_function, print_source
    from mlfbuild.native.printing.text import graph_text
    from mlfbuild.native.printing.trace import traced_tensor, traced_tensors
else:
    __getattr__ = lazy_attributes(__name__)
