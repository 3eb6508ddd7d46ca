"""Print the C files of a network for the graph executor: packed functions, and the registry that finds them."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from mlfbuild import __version__
from mlfbuild.library import Identity
from mlfbuild.library.cgen import ALIGNMENT, PARAMS_SECTION, comment_text, registry_source, wrapped
from mlfbuild.library.keys import Placement
from mlfbuild.native.graph_executor.nodes import GraphProgram, PackedFunction
from mlfbuild.native.kernels import include_lines
from mlfbuild.native.printing import (
    COUNT_BYTES,
    PACKED_ARGUMENTS,
    cpu_check,
    declarator,
    node_comment,
    print_definition,
    print_function,
    source_notice,
)
from mlfbuild.targets import Cpu

_PARAMETERS = (
    "void *args",
    "int32_t *arg_type_ids",
    "int32_t num_args",
    "void *out_ret_value",
    "int32_t *out_ret_tcode",
    "void *resource_handle",
)
_NAME = re.compile(r"\w+")
_EMPTY_REGISTRY = """\
#include <tvm/runtime/crt/module.h>

/* The network returns its inputs and calls no function; C has no empty arrays. */
static TVMBackendPackedCFunc _tvm_func_array[1];
static const TVMFuncRegistry _tvm_func_registry = {"\\000\\000", _tvm_func_array};
static const TVMModule _tvm_system_lib = {&_tvm_func_registry};

const TVMModule *TVMSystemLibEntryPoint(void)
{
    return &_tvm_system_lib;
}
"""


def print_registry(program: GraphProgram, source: str, model_id: str) -> str:
    """Return the text of ``<model>_lib0.c``: the table of packed functions, as TVM writes it for ``system-lib``."""
    functions = [(packed.name, packed.name) for packed in program.functions]
    table = registry_source(functions, COUNT_BYTES, [program.name]) if functions else _EMPTY_REGISTRY
    return f"{source_notice(source, model_id)}\n\n{table}"


def print_functions(
    program: GraphProgram, source: str, model_id: str, placement: Placement, cpu: Cpu, *, single: bool = False
) -> str:
    """Return the text of ``<model>_lib1.c`` for ``cpu``: single structs, operator functions and packed functions.

    If it is ``single``, the registry is in the same file, so the functions must have the types that it declares.
    """
    # The registry declares other types than TVM's own operators have; in one file, C compares them.
    arguments = PACKED_ARGUMENTS if single else _PARAMETERS
    parts = [
        source_notice(source, model_id, program.headers),
        cpu_check(cpu) + _includes(program),
        _section(program, placement),
        *_constants(program, model_id),
        _data(program) if program.functions else "",
        *(print_function(program.graph, function) for function in program.operators),
        *(_packed(program, packed, arguments, first=packed is program.functions[0]) for packed in program.functions),
    ]
    return "\n\n".join(part for part in parts if part) + "\n"


def _includes(program: GraphProgram) -> str:
    return "\n".join(
        [
            "#include <stddef.h>",
            "#include <stdint.h>",
            "#include <string.h>",
            "",
            "#include <tvm/runtime/c_runtime_api.h>",
            "#include <tvm/runtime/c_backend_api.h>",
            "",
            *include_lines(program.headers),
        ]
    )


def _section(program: GraphProgram, placement: Placement) -> str:
    macro, aligned = f"{program.prefix.upper()}_PARAMS", f"MLF_ALIGNED({ALIGNMENT})"
    return "\n".join(
        [
            "#if defined(__GNUC__) && defined(__ELF__)",
            # Another attribute syntax than GNU's is not known here: such compilers place the array with other
            # constants.
            f'#define {macro} __attribute__((section("{placement.params or PARAMS_SECTION}"))) {aligned}',
            "#else",
            f"#define {macro} {aligned}",
            "#endif",
        ]
    )


def _constants(program: GraphProgram, model_id: str) -> Iterator[str]:
    section = f"{program.prefix.upper()}_PARAMS"
    identity = Identity(program.name, model_id, __version__)
    yield f'{section} const char mlf_{program.name}_model_id[] =\n    "{identity}";'
    for constant in program.constants:
        assert isinstance(constant.initializer, str)  # arrays are parameters
        yield f"{section} static const {declarator(constant)} = {constant.initializer};"


def _data(program: GraphProgram) -> str:
    about = "/* Return the data of the DLTensor that is the argument at `index`. */"
    head = f"static inline void *{program.prefix}_data(const void *args, int32_t index)"
    return print_definition(
        head, ["    return ((const DLTensor *)((const TVMValue *)args)[index].v_handle)->data;"], [about]
    )


def _packed(program: GraphProgram, packed: PackedFunction, arguments: Sequence[str], *, first: bool) -> str:
    node = packed.function.node
    about = (f"/* {comment_text(node.name)}", f"   {node_comment(program.graph, node)} */")
    body = (f"    {line}" for line in _body(program, packed, arguments, first=first))
    return print_definition(wrapped(f"TVM_DLL int32_t {packed.name}(", arguments, ")", 0), body, about)


def _body(program: GraphProgram, packed: PackedFunction, arguments: Sequence[str], *, first: bool) -> Iterator[str]:
    # TVM's allocator is a stack: the memory is taken first and returned last.
    if packed.scratch:
        yield f"void *const scratch = TVMBackendAllocWorkspace(kDLCPU, 0, (uint64_t){packed.scratch}, kDLUInt, 8);"
    yield f"{', '.join(f'(void){_NAME.findall(argument)[-1]}' for argument in arguments[1:])};"
    if first:
        yield "/* Read the id, so that the linker keeps it if the model is used. */"
        yield f"(void)*(const volatile char *)mlf_{program.name}_model_id;"
    if packed.scratch:
        yield "if (scratch == NULL) {"
        yield "    return -1;"
        yield "}"
    yield f"{wrapped(f'{packed.function.name}(', packed.arguments, ')', 4)};"
    yield "return TVMBackendFreeWorkspace(kDLCPU, 0, scratch) == 0 ? 0 : -1;" if packed.scratch else "return 0;"
