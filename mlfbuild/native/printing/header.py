"""Print the header of a model: TVM's C interface, then the additions of mlfbuild."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from mlfbuild.library import (
    CInterface,
    Member,
    brief,
    guarded,
    interface_parts,
    interface_structs,
    macro_words,
    print_static_pools_declaration,
)
from mlfbuild.library.cgen import STATE_ALIGNMENT, braces, busy_name, floating, joined, print_busy, text
from mlfbuild.library.keys import Placement
from mlfbuild.native.graph import DType
from mlfbuild.native.printing.checks import failed_result, print_result_macros, results_comment
from mlfbuild.native.printing.fast_weights import print_weights_declarations
from mlfbuild.native.printing.functions import print_definition
from mlfbuild.native.printing.hook import print_hook_declarations
from mlfbuild.native.printing.interface import Interface, Port
from mlfbuild.native.printing.notices import header_notice
from mlfbuild.native.printing.program import LinkedModel
from mlfbuild.native.printing.trace import print_declarations
from mlfbuild.native.printing.variants import Variant, print_declaration, whole
from mlfbuild.native.printing.workspace import print_memory_types, shares_workspace

MISRA_DEVIATIONS = (
    "2.3", "2.4", "2.5", "8.7", "8.9", "8.11", "9.2", "9.3", "10.1", "10.3", "10.4", "10.6",
    "10.7", "10.8", "11.5", "11.6", "12.1", "12.3", "13.3", "14.2", "15.5", "17.7", "17.8", "18.4",
    "19.2", "20.7", "20.10",
)  # fmt: skip
"""Rules that Cppcheck finds broken in generated C; docs/c-interface.md has a reason for each."""
_STATIC = ("The intermediate tensors are in a static workspace: one call at a time.",)
_SHARED = (
    "The intermediate tensors are in a static workspace, {}, which other",
    "modules of the firmware use too: one call of any of them at a time.",
)
_POOLS = (
    "All tensors are in the workspace, inputs and outputs too: a run may overwrite its inputs.",
    "Calls with different workspaces may run at the same time.",
)


def print_header(program: LinkedModel, source: str, placement: Placement) -> str:
    """Return the text of ``tvmgen_<model>.h`` for the model in the file named ``source``.

    ``source`` is the name of the file only, so that the header has no path of the machine.
    """
    shares = shares_workspace(program, placement)
    shared = placement.shared_workspace if shares else ""
    # A call that finds the shared workspace busy returns a value of its own.
    results = results_comment(program.name, *([busy_name(program.name)] if shares else []), *_failure(program))
    parts = [
        *interface_parts(_interface(program), _about_run(program, shared), results),
        *_static_reset(program),
        *_own_part(program, shares=shares),
    ]
    about = header_notice(source)
    if program.blob is not None:
        from mlfbuild.native.printing.parameters import structure_notice  # few models need it

        about = structure_notice("")
    return guarded(f"{program.prefix.upper()}_H_", f"{about}\n{_deviations()}", parts, sizes=program.blob is not None)


def _deviations() -> str:
    lines = joined(MISRA_DEVIATIONS, ",", 3, 3).splitlines()
    return "\n".join(
        [
            "/*",
            " * MISRA C:2012 deviations of this module; docs/c-interface.md of mlfbuild has a reason for each:",
            *(f" * {line.strip()}" for line in lines),
            " */",
        ]
    )


def print_facts(name: str, interface: Interface, source: str, kind: str) -> str:
    """Return the text of ``mlf_<model>.h``, which the header of the static executor includes.

    ``kind`` is a word for the code that calls the network.
    """
    return guarded(f"MLF_{name.upper()}_{kind.upper()}_H_", header_notice(source), _fact_parts(name, interface))


def print_structs(program: LinkedModel) -> str:
    """Return the definitions of the structs of inputs and outputs."""
    return "\n\n".join(interface_structs(_interface(program)))


def _interface(program: LinkedModel) -> CInterface:
    sides = [
        tuple(Member(port.member, port.tensor.size) for port in ports)
        for ports in (program.interface.inputs, program.interface.outputs)
    ]
    # Sizes only: the structs have pointers, whatever the types are.
    pools = tuple(Member(each.pool, each.size) for each in program.workspaces)
    return CInterface(program.name, sides[0], sides[1], program.plan.arena_size, program.form.arena_io, pools)


def _about_run(program: LinkedModel, shared: str) -> tuple[str, ...]:
    if program.form.arena_io:
        return _POOLS
    return tuple(line.format(shared) for line in _SHARED) if shared else _STATIC


def _failure(program: LinkedModel) -> list[str]:
    return [failed_result(program.name)] if program.may_fail else []


def _static_reset(program: LinkedModel) -> Iterator[str]:
    if program.resets:
        yield (
            brief(
                f'resets the state of TVM module "{program.name}": the next run behaves like the first one',
                "The data that it keeps between runs is in a static state.",
                r"\return 0",
            )
            + f"\nint32_t {program.prefix}_reset(void);"
        )


def _own_part(program: LinkedModel, *, shares: bool) -> Iterator[str]:
    name, upper = program.name, f"MLF_{program.name.upper()}"
    yield from print_result_macros(name, may_fail=program.may_fail)
    if shares:
        yield print_busy(name)
    yield from print_memory_types(program)
    if program.form.arena_io:
        yield print_static_pools_declaration(program.name, workspace_io=True)
    else:
        yield from _workspace_sizes(program)
    yield (brief("Alignment of a workspace in bytes") + f"\n#define {upper}_WORKSPACE_ALIGNMENT {program.alignment}")
    if program.resets:
        yield (brief("Size of the state in bytes") + f"\n#define {upper}_STATE_SIZE {program.plan.state_size}")
        yield brief("Alignment of a state in bytes") + f"\n#define {upper}_STATE_ALIGNMENT {STATE_ALIGNMENT}"
        yield (
            brief(
                f'initialises or resets a state of the caller for module "{name}"; call it before the first run',
                rf"\param kept {upper}_STATE_SIZE bytes, aligned to {upper}_STATE_ALIGNMENT",
                *results_comment(name),
            )
            + f"\nint32_t mlf_{name}_reset(void* kept);"
        )
    state = [rf"\param kept a state initialised by mlf_{name}_reset, one for each stream"] if program.resets else []
    yield print_declaration(
        program,
        Variant(name, hook=False, trace=False),
        f'runs module "{name}" in a workspace of the caller: reentrant, without static data',
        *(
            rf"\param {each.parameter} {each.size_macro} bytes, aligned to {upper}_WORKSPACE_ALIGNMENT"
            for each in program.workspaces
        ),
        *state,
        *results_comment(name, *_failure(program)),
    )
    if program.hook:
        yield from print_hook_declarations(program)
    if program.trace:
        yield from print_declarations(program)
    if program.hook and program.trace:
        about = f"runs the module as mlf_{name}_run_hooked and mlf_{name}_run_traced together"
        yield print_declaration(program, whole(program), about)
    places: list[str] = []
    if program.blob is not None:
        from mlfbuild.native.printing import parameters  # few models need it

        yield from parameters.print_blob_declarations(program)
        places = [port.member for port in parameters.scaled_ports(program.interface)]
    yield from print_weights_declarations(program)
    yield from _fact_parts(name, program.interface, places)


def _workspace_sizes(program: LinkedModel) -> Iterator[str]:
    """Yield the macros with the bytes of each of several workspaces, which have TVM's names for those of pools."""
    for each in program.workspaces:
        if each.memory:
            yield f"{brief(f'Size of the workspace in {each.memory} in bytes')}\n#define {each.size_macro} {each.size}"


def _fact_parts(name: str, interface: Interface, places: Sequence[str] = ()) -> Iterator[str]:
    """Yield the parts that do not depend on the executor: model id, shapes, scales, and conversions of int8 values."""
    # The constant is declared only: its value would change the header with every change of the weights.
    form = "mlf:<model>:<SHA-256 of the model file>:<version of mlfbuild>"
    yield f"{brief(form)}\nextern const char mlf_{name}_model_id[];"
    words = macro_words(port.member for port in interface.ports)
    macros = {member: f"MLF_{name.upper()}_{word}" for member, word in words.items()}
    for port in _distinct(interface):
        place = f"mlf_{name}_quantization()[{places.index(port.member)}]" if port.member in places else ""
        yield "\n".join(_facts(macros[port.member], port, place))
    for port in _distinct(interface):
        if port.tensor.dtype is DType.INT8 and port.info.scale is not None:
            yield _quantize(name, port, macros[port.member])
            yield _dequantize(name, port, macros[port.member])


def _distinct(interface: Interface) -> Iterable[Port]:
    """Return every port once, even if an input is also an output."""
    # The last entry of equal keys wins in a dict, and it should be the first port.
    return {port.member: port for port in reversed(interface.ports)}.values().__reversed__()


def _facts(prefix: str, port: Port, place: str = "") -> Iterator[str]:
    tensor, info = port.tensor, port.info
    yield f"/* {port.member}: {tensor.dtype.value}{list(tensor.shape)} */"
    yield f"#define {prefix}_RANK {len(tensor.shape)}"
    if tensor.shape:
        yield f"#define {prefix}_SHAPE {braces(tensor.shape)}"
    for axis, size in enumerate(tensor.shape):
        yield f"#define {prefix}_DIM{axis} {size}"
    # Macros are constant expressions in C, so that firmware can size static arrays with them.
    yield f"#define {prefix}_ELEMENTS {tensor.elements}"
    if place:
        yield f"#define {prefix}_SCALE ({place}.scale)"
        yield f"#define {prefix}_ZERO_POINT ({place}.zero_point)"
    elif info.scale is not None and info.zero_point is not None:
        yield f"#define {prefix}_SCALE {floating(info.scale)}"
        yield f"#define {prefix}_ZERO_POINT ({info.zero_point})"
    if tensor.labels:
        meaning = (
            "names of the columns" if tensor.dtype is DType.FLOAT32 else "labels, of which an element is a position"
        )
        yield f"/* {port.member}: {meaning} */"
        yield " \\\n".join([f"#define {prefix}_LABELS {{", *(f"    {text(label)}," for label in tensor.labels), "}"])


def _quantize(name: str, port: Port, facts: str) -> str:
    about = f"/*! \\brief Quantise a real number for {port.member}: to nearest, ties away from zero */"
    return print_definition(
        f"static inline int8_t mlf_{name}_quantize_{port.member}(float real)",
        [
            f"  const float value = real / {facts}_SCALE;",
            "  int32_t stored;",
            "  float rest;",
            # Not value <= -512: NaN must end here as well, because its conversion to an integer is undefined in C.
            "  if (!(value > -512.0f)) {",
            f"    return (int8_t)(value <= -512.0f ? -128 : {facts}_ZERO_POINT);",
            "  }",
            "  if (value > 512.0f) {",
            "    return 127;",
            "  }",
            "  stored = (int32_t)value;",
            "  rest = value - (float)stored;",
            f"  stored += {facts}_ZERO_POINT + (rest >= 0.5f ? 1 : 0) - (rest <= -0.5f ? 1 : 0);",
            "  return (int8_t)(stored < -128 ? -128 : stored > 127 ? 127 : stored);",
        ],
        [about],
    )


def _dequantize(name: str, port: Port, facts: str) -> str:
    about = f"/*! \\brief Dequantise a stored value of {port.member} */"
    head = f"static inline float mlf_{name}_dequantize_{port.member}(int8_t stored)"
    return print_definition(head, [f"  return (float)((int32_t)stored - {facts}_ZERO_POINT) * {facts}_SCALE;"], [about])
