"""Print what a model with ``parameters: replaceable`` has in addition: its blob, and the functions that replace it.

The code (``<model>_lib0.c``, the header) is the same for all networks of one structure. ``<model>_lib1.c`` has what
belongs to one network: its blob, which is used until the firmware sets another one, and the id of the model.

A run reads the pointer to the blob once, at its beginning, and passes it to every operator. So it ends with the blob
that it began with, and a blob can be set at any time, by an interrupt or another thread too: storing a pointer is one
instruction. The blob before must stay in memory until the runs that use it have ended.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from mlfbuild import __version__
from mlfbuild.library import BLOB_HEADER, Identity, brief
from mlfbuild.library.cgen import PARAMS_SECTION, aligned, hexadecimal_lines, notice, wrapped
from mlfbuild.library.keys import Placement
from mlfbuild.native.printing.blob_layout import scaled_ports
from mlfbuild.native.printing.file_plan import header_path
from mlfbuild.native.printing.functions import print_definition
from mlfbuild.native.printing.notices import source_notice
from mlfbuild.native.printing.program import LinkedModel
from mlfbuild.native.printing.variants import Variant, whole

_RESULTS = {
    "NULL": (-1, "the pointer is NULL"),
    "MISALIGNED": (-3, "the blob is not aligned to 16 bytes"),
    "SHORT": (-5, "there are fewer bytes than the blob has"),
    "FORMAT": (-6, "it is no blob of parameters"),
    "LAYOUT": (-7, "it has another version of the layout"),
    "STRUCTURE": (-8, "it is for a network of another structure"),
    "SIZE": (-9, "its size is wrong for the structure"),
    "CHECKSUM": (-10, "its CRC-32 is wrong"),
    "REFUSED": (-11, "mlf_<model>_check_parameters did not return 0"),
    "TEST": (-12, "the outputs for a test vector are wrong"),
}
"""Results of the functions; those before ``REFUSED`` are in ``kernels/portable/parameters/parameters.h``."""


def run_with(program: LinkedModel) -> str:
    """Return the name of the function that runs the model with a blob."""
    return f"{program.prefix}_run_with"


def used(program: LinkedModel) -> str:
    """Return the name of the pointer to the blob that is used."""
    return f"{program.prefix}_parameters_used"


def print_blob_state(program: LinkedModel) -> str:
    """Return the definition of the pointer to the blob; empty without a blob."""
    if program.blob is None:
        return ""
    pointer = f"static const uint8_t *volatile {used(program)} = (const uint8_t *)mlf_{program.name}_parameters;"
    return f"/* Read once in a run, and written as a whole. */\n{pointer}"


def print_run(program: LinkedModel, signature: str, variant: Variant) -> str:
    """Return the run function ``signature``, which runs the model with the blob that is used."""
    arguments = [*program.tensor_structs, *_memories(program), *variant.parameters, used(program)]
    return print_definition(signature, [f"    return {wrapped(f'{run_with(program)}(', arguments, ')', 11)};"])


def _memories(program: LinkedModel) -> list[str]:
    """Return the parameters for memory of the caller."""
    return [*(each.parameter for each in program.workspaces), *(["kept"] if program.resets else [])]


def print_blob_functions(program: LinkedModel) -> Iterator[str]:
    """Yield the functions that set and describe the blob; nothing without one."""
    if program.blob is None:
        return
    name = program.name
    check = f"mlf_parameters_check(blob, size, mlf_{name}_parameters, {program.blob.vector})"
    body = [
        f"    int32_t result = {check};",
        "",
        f"    if (result == 0 && mlf_{name}_check_parameters(blob, (size_t)((const uint32_t *)blob)[2]) != 0) {{",
        f"        result = {_result(name, 'REFUSED')};",
        "    }",
        "    if (result == 0) {",
        f"        {used(program)} = (const uint8_t *)blob;",
        "    }",
        "    return result;",
    ]
    yield print_definition(f"int32_t mlf_{name}_use_parameters(const void *blob, size_t size)", body)
    head = f"uint32_t mlf_{name}_parameters_version(void)"
    version = f"    return ((const uint32_t *)(const void *){used(program)})[20];"
    yield print_definition(head, [version])
    if scaled_ports(program.interface):
        kind = f"const struct mlf_{name}_quantization *"
        place = f"    return ({kind})(const void *)&{used(program)}[{BLOB_HEADER}];"
        yield print_definition(f"{kind}mlf_{name}_quantization(void)", [place])
    yield _test(program, check)


def _test(program: LinkedModel, check: str) -> str:
    assert program.blob is not None
    name, prefix, ports = program.name, program.prefix, program.interface
    sizes = [aligned(port.tensor.size) for port in ports.ports]
    starts = [sum(sizes[:at]) for at in range(len(sizes))]
    first = sum(sizes[: len(ports.inputs)])
    inputs = zip(ports.inputs, starts, strict=False)
    outputs = list(zip(ports.outputs, starts[len(ports.inputs) :], strict=True))
    nulls = ["NULL" for _ in whole(program).parameters]
    arguments = ["&inputs", "&outputs", *_memories(program), *nulls, "(const uint8_t *)blob"]
    call = wrapped(f"{run_with(program)}(", arguments, ")", 8)
    body = [
        f"    struct {prefix}_inputs inputs;",
        f"    struct {prefix}_outputs outputs;",
        f"    int32_t result = {check};",
        "    const uint8_t *vector;",
        "    uint32_t left;",
        "",
        "    if (result != 0) {",
        "        return result;",
        "    }",
        "    if (results == NULL) {",
        f"        return {_result(name, 'NULL')};",
        "    }",
        f"    vector = (const uint8_t *)blob + {program.blob.size};",
        "    left = ((const uint32_t *)blob)[21];",
        *([f"    result = {prefix}_reset_with((const uint8_t *)blob, kept);"] if program.resets else []),
        f"    for (; left > 0u && result == 0; left--, vector += {program.blob.vector}) {{",
        *(f"        inputs.{port.member} = (void *)(uintptr_t)&vector[{at}];" for port, at in inputs),
        *([] if ports.inputs else ["        inputs.unused = NULL;"]),
        *(f"        outputs.{port.member} = (uint8_t *)results + {at - first};" for port, at in outputs),
        f"        result = {call};",
        *(
            line
            for port, at in outputs
            for line in (
                f"        if (result == 0 && memcmp(outputs.{port.member}, &vector[{at}], {port.tensor.size}) != 0) {{",
                f"            result = {_result(name, 'TEST')};",
                "        }",
            )
        ),
        "    }",
        "    return result;",
    ]
    arenas = (f"void *{memory}" for memory in _memories(program))
    parameters = ["const void *blob", "size_t size", *arenas, "void *results"]
    return print_definition(wrapped(f"int32_t mlf_{name}_test_parameters(", parameters, ")", 0), body)


def _result(name: str, cause: str) -> str:
    return f"MLF_{name.upper()}_BLOB_{cause}"


def print_blob_declarations(program: LinkedModel) -> Iterator[str]:
    """Yield the parts of the header about the blob; nothing without one."""
    if program.blob is None:
        return
    name, upper = program.name, f"MLF_{program.name.upper()}"
    yield brief("Size in bytes of a blob of parameters without test vectors") + (
        f"\n#define {upper}_PARAMETERS_SIZE {program.blob.size}"
    )
    results = sum(aligned(port.tensor.size) for port in program.interface.outputs)
    memories = _memories(program)
    yield brief("Size in bytes of the memory that a test of parameters needs for outputs") + (
        f"\n#define {upper}_PARAMETERS_RESULTS_SIZE {results}"
    )
    about = (f"/* {text.replace('<model>', name)} */" for _, text in _RESULTS.values())
    macros = (f"#define {_result(name, cause)} ({value})" for cause, (value, _) in _RESULTS.items())
    yield "\n".join(f"{macro} {text}" for macro, text in zip(macros, about, strict=True))
    yield brief("the blob of parameters in the image, which is used until another one is set") + (
        f"\nextern const uint32_t mlf_{name}_parameters[{upper}_PARAMETERS_SIZE / 4];"
    )
    yield (
        brief(
            f'uses other trained values in module "{name}" from the next run on, after all checks have passed',
            "Runs that have begun end with the values before. The blob must not change while it is used.",
            *(["Reset each state afterwards: it was computed with the values before."] if program.resets else []),
            r"\param blob the blob, aligned to 16 bytes",
            r"\param size the number of bytes that may be read",
            rf"\return 0, or one of {upper}_BLOB_*; the values before stay in use then",
        )
        + f"\nint32_t mlf_{name}_use_parameters(const void* blob, size_t size);"
    )
    yield (
        brief(
            "decides about a blob whose structure and CRC-32 are right: define it to check a hash or a signature",
            "The image has a weak function that returns 0 (GNU C and ELF only), which also wins over one",
            "in a static library: compile yours as a source of the image.",
            r"\param blob the whole blob",
            r"\param size its size in bytes",
            r"\return 0 if it may be used",
        )
        + f"\nint32_t mlf_{name}_check_parameters(const void* blob, size_t size);"
    )
    yield brief(
        "runs a blob that is not used yet with the test vectors in it, and compares all outputs",
        *(
            rf"\param {memory} as for mlf_{name}_run{', but of the test alone' * (memory == 'kept')}"
            for memory in memories
        ),
        rf"\param results {upper}_PARAMETERS_RESULTS_SIZE bytes, aligned to 16, for outputs",
        rf"\return 0 (also without vectors), or one of {upper}_BLOB_*, or the result of the run",
    ) + (
        f"\nint32_t mlf_{name}_test_parameters(\n  const void* blob,\n  size_t size,\n"
        + "".join(f"  void* {memory},\n" for memory in memories)
        + "  void* results\n);"
    )
    yield brief("returns the version of the parameters in use, a number of the user's") + (
        f"\nuint32_t mlf_{name}_parameters_version(void);"
    )
    if scaled_ports(program.interface):
        yield brief("scale and zero point of an input or output; a stored value is real / scale + zero_point") + (
            f"\nstruct mlf_{name}_quantization {{\n  float scale;\n  int32_t zero_point;\n}};"
        )
        yield brief("returns those of the parameters in use, in the order of the header") + (
            f"\nconst struct mlf_{name}_quantization* mlf_{name}_quantization(void);"
        )


def print_blob_source(program: LinkedModel, source: str, model_id: str, placement: Placement) -> Iterator[str]:
    """Yield the text of ``<model>_lib1.c``: the blob, the id of the model and the weak check."""
    name, upper = program.name, program.prefix.upper()
    section = placement.params or PARAMS_SECTION
    assert program.blob is not None
    words = np.frombuffer(program.blob.data(model_id), "<i4")
    yield "\n".join(
        [
            source_notice(source, model_id),
            "",
            f'#include "{header_path(name).name}"',
            "",
            "#include <stddef.h>",
            "#include <stdint.h>",
            "",
            '#include "mlfbuild/compiler.h"',
            "",
            "#if defined(__GNUC__) && defined(__ELF__)",
            f'#define {upper}_PARAMS __attribute__((section("{section}"))) MLF_ALIGNED(16)',
            "#else",
            f"#define {upper}_PARAMS MLF_ALIGNED(16)",
            "#endif",
            "",
            f"{upper}_PARAMS const char mlf_{name}_model_id[] =",
            f'    "{Identity(name, model_id, __version__)}";',
            "",
            f"{upper}_PARAMS const uint32_t mlf_{name}_parameters[{program.blob.size} / 4] = {{",
            "",
        ]
    )
    for lines in hexadecimal_lines(words):
        yield f"{lines}\n"
    yield "};\n"
    check = f"int32_t mlf_{name}_check_parameters(const void *blob, size_t size)"
    hook = print_definition(check, ["    (void)blob;", "    (void)size;", "    return 0;"], ["__attribute__((weak))"])
    yield f"\n#if defined(__GNUC__) && defined(__ELF__)\n{hook}\n#endif\n"


def structure_notice(kernels: str) -> str:
    """Return the first comment of code that is the same for all networks of one structure."""
    lines = [f"Generated by mlfbuild {__version__} for networks of one structure. Do not edit."]
    return notice(*lines, *([f"Kernel headers SHA-256: {kernels}"] if kernels else []))
