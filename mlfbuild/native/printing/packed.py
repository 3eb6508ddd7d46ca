"""Print the functions through which TVM calls a network (``interface-api: packed`` and ``layout: single-file``).

``tvmgen_<model>___tvm_main__`` takes pointers to the inputs, then to the outputs, as with TVM's ``unpacked-api``; the
programs that TVM's project templates make call it. ``tvmgen_<model>_run`` is the packed function that TVM's AOT
executor finds by its name. It takes a ``DLTensor`` for each of them, which the executor makes from ``TVMMetadata``.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from mlfbuild.library import CODE_NAMES, parse_dtype
from mlfbuild.library.cgen import braces, in_own_section, registry_source, text, wrapped
from mlfbuild.native.printing.checks import ARGUMENTS_RESULT
from mlfbuild.native.printing.functions import print_definition
from mlfbuild.native.printing.interface import Port, runtime_dtype, runtime_shape
from mlfbuild.native.printing.notices import source_notice
from mlfbuild.native.printing.program import LinkedModel

COUNT_BYTES = 2
"""Size of the registry's count since TVM 0.9."""
PACKED_ARGUMENTS = (
    "TVMValue *args",
    "int *type_code",
    "int num_args",
    "TVMValue *out_value",
    "int *out_type_code",
    "void *resource_handle",
)
"""The parameters of a packed function as the registry declares it."""
_CODES = {name: code for code, name in CODE_NAMES.items()}


def print_main(program: LinkedModel, body: Iterable[str]) -> str:
    """Return the main function; ``body`` runs the network with the pointers ``inputs`` and ``outputs`` to structs."""
    prefix, ports = program.prefix, program.interface
    section = [f"{prefix.upper()}_ENTRY"] if program.form.packed else in_own_section(f"{prefix}_main")
    lines = [
        f"    struct {prefix}_inputs inputs[1];",
        f"    struct {prefix}_outputs outputs[1];",
        "",
        *(_assignments("input", ports.inputs) or ["    inputs->unused = NULL;"]),
        *_assignments("output", ports.outputs),
        *body,
    ]
    return print_definition(_main_declaration(program), lines, section)


def _main_declaration(program: LinkedModel) -> str:
    """Return the declaration of the main function, without a semicolon."""
    pointers = [f"void *{kind}{at}" for kind, ports in _sides(program) for at in range(len(ports))]
    return wrapped(f"int32_t {program.prefix}___tvm_main__(", pointers, ")", 0)


def _sides(program: LinkedModel) -> tuple[tuple[str, Sequence[Port]], ...]:
    return (("input", program.interface.inputs), ("output", program.interface.outputs))


def _assignments(kind: str, ports: Sequence[Port]) -> list[str]:
    return [f"    {kind}s->{port.member} = {kind}{at};" for at, port in enumerate(ports)]


def print_entry(program: LinkedModel, source: str, model_id: str) -> str:
    """Return the text of ``<model>_lib0.c``: the registry of packed functions, and the one that runs the network."""
    # TVM's AOT executor looks for these two names in the registry.
    functions = [f"{program.prefix}_run", f"{program.prefix}_get_c_metadata"]
    registry = registry_source([(name, name) for name in functions], COUNT_BYTES, [program.name])
    count = len(program.interface.ports)
    data = [f"((const DLTensor *)args[{at}].v_handle)->data" for at in range(count)]
    entry = [
        f"{_main_declaration(program)};",
        "",
        "/* Run the network. The arguments are DLTensors: the inputs, then the outputs. */",
        wrapped(f"int32_t {program.prefix}_run(", PACKED_ARGUMENTS, ")", 0),
        "{",
        # All parameters are named in the registry's declaration, but only the arguments are used.
        "    (void)type_code, (void)out_value, (void)out_type_code, (void)resource_handle;",
        f"    if (num_args != {count}) {{",
        f"        return {ARGUMENTS_RESULT}",
        "    }",
        f"    return {wrapped(f'{program.prefix}___tvm_main__(', data, ')', 8)};",
        "}",
    ]
    return f"{source_notice(source, model_id)}\n\n{registry}\n{chr(10).join(entry)}\n"


def print_tvm_metadata(program: LinkedModel, source: str, model_id: str) -> str:
    """Return the text of ``<model>_lib1.c``: names, shapes and types of inputs and outputs for TVM's AOT executor.

    Outputs are called ``output0`` and so on, as in TVM's code.

    The version, pools and types are those of TVM's ``metadata_types.h``.
    """
    names = {
        "inputs": [port.member for port in program.interface.inputs],
        "outputs": [f"output{at}" for at in range(len(program.interface.outputs))],
    }
    lines = [
        source_notice(source, model_id),
        "",
        "#include <inttypes.h>",
        "#include <stddef.h>",
        "#include <tvm/runtime/metadata_types.h>",
        "#include <tvm/runtime/c_runtime_api.h>",
        "",
        *_tensors("inputs", names["inputs"], program.interface.inputs),
        *_tensors("outputs", names["outputs"], program.interface.outputs),
        "static const struct TVMMetadata kTvmgenMetadata[1] = {{",
        "    1, /* version */",
        *(
            line
            for kind in names
            for line in (f"    {f'kTvmgenMetadata_{kind}' if names[kind] else 'NULL'},", f"    {len(names[kind])},")
        ),
        "    NULL, /* workspace pools */",
        "    0,",
        "    NULL, /* constant pools */",
        "    0,",
        f'    "{program.prefix}",',
        "}};",
        "",
        "#ifdef __cplusplus",
        'extern "C"',
        "#endif",
        wrapped(f"TVM_DLL int32_t {program.prefix}_get_c_metadata(", PACKED_ARGUMENTS, ")", 0),
        "{",
        "    (void)args, (void)type_code, (void)num_args, (void)resource_handle;",
        "    out_value[0].v_handle = (void *)(uintptr_t)kTvmgenMetadata;",
        "    out_type_code[0] = kTVMOpaqueHandle;",
        "    return 0;",
        "}",
    ]
    return "\n".join(lines) + "\n"


def _tensors(kind: str, names: Sequence[str], ports: Sequence[Port]) -> Iterator[str]:
    # C has no arrays without elements.
    if not ports:
        return
    for at, port in enumerate(ports):
        shape = runtime_shape(port.tensor)
        yield f"static const int64_t kTvmgenMetadata_{kind}_{at}_shape[{len(shape)}] = {braces(shape)};"
    yield f"static const struct TVMTensorInfo kTvmgenMetadata_{kind}[{len(ports)}] = {{"
    for at, (name, port) in enumerate(zip(names, ports, strict=True)):
        dtype = parse_dtype(runtime_dtype(port.tensor.dtype))
        assert dtype is not None, "every type of the compiler has a name in TVM"
        kinds = f"{{{_CODES[dtype.code]}, {dtype.bits}, {dtype.lanes}}}"
        rank = len(runtime_shape(port.tensor))
        yield f"    {{{text(name)}, kTvmgenMetadata_{kind}_{at}_shape, {rank}, {kinds}}},"
    yield "};"
