"""Print the C file of a model: includes, constants, workspace, state, operators, entries; always in that order."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from types import ModuleType

from mlfbuild import __version__
from mlfbuild.library import KERNEL_FOLDER, Identity
from mlfbuild.library.cgen import ALIGNMENT, PARAMS_SECTION, STATE_ALIGNMENT, comment_text, wrapped
from mlfbuild.library.keys import CONSTANT_CLASSES, Npu, Placement
from mlfbuild.native.graph import Graph
from mlfbuild.native.kernels import include_lines, kernels_sha256
from mlfbuild.native.lowering import Constant
from mlfbuild.native.memory import StorageKind
from mlfbuild.native.printing.arenas import arena_at
from mlfbuild.native.printing.checks import (
    Pointer,
    failed_result,
    print_checks,
    print_null_check,
    print_result_macros,
)
from mlfbuild.native.printing.fast_weights import print_copied_weights, print_loading, print_weights_attributes
from mlfbuild.native.printing.file_plan import header_path
from mlfbuild.native.printing.functions import NodeFunction, print_definition
from mlfbuild.native.printing.header import print_structs
from mlfbuild.native.printing.hook import print_ask, print_operator_table
from mlfbuild.native.printing.notices import cpu_check, source_notice
from mlfbuild.native.printing.packed import print_main
from mlfbuild.native.printing.program import LinkedModel, ModelStep, node_comment, tensor_lives
from mlfbuild.native.printing.state import (
    print_reset,
    print_state,
    print_state_attributes,
    print_static_reset,
)
from mlfbuild.native.printing.trace import print_hand_out, print_table
from mlfbuild.native.printing.variants import Variant, lesser, print_lesser, print_unused, whole
from mlfbuild.native.printing.workspace import (
    print_attributes,
    print_memory_types,
    print_npu_memory,
    print_pool_functions,
    print_static_call,
    print_workspace,
)
from mlfbuild.targets import Cpu


def print_source(
    program: LinkedModel, source: str, model_id: str, placement: Placement, cpu: Cpu, npu: Npu | None = None
) -> Iterator[str]:
    """Yield the text of ``<model>_lib0.c`` for ``cpu``, large constants in pieces.

    The model is in the file named ``source``, which has the SHA-256 ``model_id``. ``npu`` places the memory of an NPU.
    """
    first = source_notice(source, model_id, program.headers)
    if program.blob is not None:
        first = _blob_printing().structure_notice(kernels_sha256(program.headers))
    yield f"{first}\n\n{cpu_check(cpu)}{_includes(program, placement)}\n\n{_sections(program, placement)}"
    yield from _constants(program, model_id, placement)
    parts = [
        *([print_structs(program), *_undeclared(program)] if program.form.packed else []),
        "" if program.blob is None else _blob_printing().print_blob_state(program),
        print_operator_table(program) if program.hook else "",
        print_table(program) if program.trace else "",
        print_workspace(program, placement),
        print_state(program, placement),
        print_npu_memory(program, npu),
        *print_copied_weights(program),
        *(print_function(program.graph, function) for function in program.functions),
        print_reset(program, "" if program.blob is None else _blob_printing().used(program)),
        *_reentrant_entries(program),
        *(() if program.blob is None else _blob_printing().print_blob_functions(program)),
        print_static_reset(program, placement),
        *_static_entries(program, placement),
    ]
    yield from (f"\n\n{part}" for part in parts if part)
    yield "\n"


def _blob_printing() -> ModuleType:
    """Return the module that prints blobs; few models have one, and each import costs time."""
    from mlfbuild.native.printing import parameters

    return parameters


def _undeclared(program: LinkedModel) -> Iterator[str]:
    """Yield what the header of TVM's C interface declares, for a packed function, which has no header."""
    yield from print_result_macros(program.name, may_fail=program.may_fail)
    yield from print_memory_types(program)


def _includes(program: LinkedModel, placement: Placement) -> str:
    return "\n".join(
        [
            *([] if placement.code is None else [f'#define MLF_CODE_SECTION "{placement.code}"']),
            *([f'#include "{header_path(program.name).name}"', ""] if program.form.has_c_interface else []),
            "#include <stddef.h>",
            "#include <stdint.h>",
            "#include <string.h>",
            "",
            *include_lines(program.headers),
        ]
    )


def _sections(program: LinkedModel, placement: Placement) -> str:
    upper = program.prefix.upper()
    params = {"params": placement.params or PARAMS_SECTION, **_own_sections(program, placement)}
    macros = {f"{upper}_{name.upper()}": section for name, section in params.items()}
    return "\n".join(
        [
            # Names of sections are those of ELF: Mach-O and PE, for tests on a host, have rules of their own.
            "#if defined(__GNUC__) && defined(__ELF__)",
            *(
                f'#define {macro} __attribute__((section("{section}"))) MLF_ALIGNED({ALIGNMENT})'
                for macro, section in macros.items()
            ),
            *print_attributes(program, placement, elf=True),
            *print_state_attributes(program, placement, elf=True),
            *print_weights_attributes(program, elf=True),
            "/* In a section of its own: --gc-sections drops the static workspace if this function is not called. */",
            f'#define {upper}_ENTRY __attribute__((section(".text.{program.prefix}_run")))',
            "#else",
            *(f"#define {macro} MLF_ALIGNED({ALIGNMENT})" for macro in macros),
            *print_attributes(program, placement, elf=False),
            *print_state_attributes(program, placement, elf=False),
            *print_weights_attributes(program, elf=False),
            f"#define {upper}_ENTRY",
            "#endif",
        ]
    )


def _own_sections(program: LinkedModel, placement: Placement) -> dict[str, str]:
    """Return class -> section for the classes that have a separate section and occur in the model."""
    own = {name: getattr(placement, name) for name in CONSTANT_CLASSES if name in program.classes.values()}
    return {name: section for name, section in own.items() if section is not None}


def _constants(program: LinkedModel, model_id: str, placement: Placement) -> Iterator[str]:
    upper, own = program.prefix.upper(), _own_sections(program, placement)
    # A constant in the image, so that a tool can tell which model and compiler the firmware has.
    identity = Identity(program.name, model_id, __version__)
    if program.blob is None:
        yield f'\n\n{upper}_PARAMS const char mlf_{program.name}_model_id[] =\n    "{identity}";'
    for constant in program.constants:
        kind = program.classes[constant.name]
        macro = f"{upper}_{kind.upper() if kind in own else 'PARAMS'}"
        about = f"/* {constant.about} */\n" if constant.about else ""
        yield f"\n\n{about}{macro} static const {declarator(constant)} = "
        yield from [constant.initializer] if isinstance(constant.initializer, str) else constant.initializer.pieces()
        yield ";"


def declarator(constant: Constant) -> str:
    """Return the declarator of ``constant``, without storage class."""
    length = "" if constant.length is None else f"[{constant.length}]"
    return f"{constant.c_type} {constant.name}{length}"


def print_function(graph: Graph, function: NodeFunction) -> str:
    """Return the definition of an operator function of ``graph``.

    Nodes with equal parameters and bodies share the function; its comment describes the first of them.
    """
    parameters = [f"{parameter.c_type}{parameter.name}" for parameter in function.call.parameters]
    about = (
        f"/* {node_comment(graph, function.node)}",
        f"   The kernel and its structs are in {KERNEL_FOLDER}/{function.call.header}. */",
    )
    result = "int32_t" if function.call.may_fail else "void"
    head = wrapped(f"MLF_NOINLINE static {result} {function.name}(", parameters, ")", 0)
    return print_definition(head, (f"    {line}" for line in function.call.body), about)


def _reentrant_entries(program: LinkedModel) -> Iterator[str]:
    # The run function with all parameters is first, because the lesser ones call it.
    yield "\n".join(
        [*_arena_table(program), _run(program, _signature(program, whole(program), with_blob=program.blob is not None))]
    )
    if program.blob is not None:
        yield _blob_printing().print_run(program, _signature(program, whole(program)), whole(program))
    yield from (print_lesser(program, variant, _signature(program, variant)) for variant in lesser(program))


def _arena_table(program: LinkedModel) -> Iterator[str]:
    """Yield a comment with what the arenas hold at which offset, from the first to the last operator that needs it."""
    locations, scratch = program.plan.locations, program.plan.scratch
    rows = [
        (locations[name].position, program.graph.tensor(name).size, first, last, name)
        for name, (first, last) in tensor_lives(program).items()
        if locations[name].area is StorageKind.ARENA
    ]
    rows += [
        (scratch[step.index], size, step.index, step.index, f"scratch of {step.node.name}")
        for step in program.steps
        if step.function is not None and (size := step.function.call.scratch)
    ]
    if not rows:
        return
    if program.blob is not None:  # names belong to one network
        rows = [(*row[:4], row[4].partition(" ")[0] if row[4].startswith("scratch of ") else "") for row in rows]
    yield "/*"
    several = len(program.workspaces) > 1
    if several:
        sizes = ", ".join(f"{each.size} bytes of {each.memory}" for each in program.workspaces)
        yield f" * The arenas: {sizes}. Rows with the same bytes belong to other operators, or"
    else:
        size = program.plan.arena_size
        yield f" * The arena of {size} bytes. Rows with the same bytes belong to other operators, or one"
    yield f" * {'one ' * several}operator writes its result over its input, or the result is a view of it."
    yield " *"
    yield f" *    offset     bytes  operators  {'memory  ' * several}tensor"
    for position, size, first, last, name in sorted(rows, key=lambda row: (row[2], row[0])):
        arena = arena_at(program.workspaces, position)
        memory = f"{arena.memory:6}  " if several else ""
        offset = position - arena.base
        yield f" * {offset:9} {size:9}  {f'{first}-{last}':>9}  {memory}{comment_text(name, 70)}"
    yield " */"


def _signature(program: LinkedModel, variant: Variant, *, with_blob: bool = False) -> str:
    """Return the head of a run function; ``with_blob``: of the one that does the work with any blob."""
    parameters = [
        *(f"const struct {program.prefix}_{kind} *{kind}" for kind in program.tensor_structs),
        *(f"void *{each.parameter}" for each in program.workspaces),
        *(["void *kept"] if program.graph.states else []),
        *variant.parameters.values(),
        # Last, so that the function that passes the blob leaves the other arguments in their registers.
        *(["const uint8_t *blob"] if with_blob else []),
    ]
    storage = "static " if program.form.packed or with_blob else ""
    return wrapped(
        f"{storage}int32_t {_blob_printing().run_with(program) if with_blob else variant.name}(", parameters, ")", 0
    )


def _run(program: LinkedModel, signature: str) -> str:
    arena = program.plan.arena_size > 0
    steps = [line for step in program.steps for line in _step(step, program)]
    copies = [f"    memcpy({to}, {source}, {size});" for to, source, size in program.copies]
    # Of several arenas, one may have only tensors that no operator reads.
    text = "\n".join([*steps, *copies])
    used = [each for each in program.workspaces if arena and (not each.memory or f"&{each.pointer}[" in text)]
    declarations = [
        *(f"    uint8_t *const {each.pointer} = (uint8_t *){each.parameter};" for each in used),
        *(["    uint8_t *const state = (uint8_t *)kept;"] if program.graph.states else []),
    ]
    body = [
        *declarations,
        *([""] if declarations else []),
        "    /* Read the id, so that the linker keeps it if the model is used. */",
        f"    (void)*(const volatile char *)mlf_{program.name}_model_id;",
        *_checks(program, arena=arena),
        *(["    (void)blob; /* not used: no operator has values */"] if program.blob and "blob[" not in text else []),
        *print_unused(program),
        *print_loading(program),
        *steps,
        "",
        *copies,
        "    return 0;",
    ]
    return print_definition(signature, body)


def _checks(program: LinkedModel, *, arena: bool) -> Iterator[str]:
    """Yield the lines that reject missing and misaligned pointers."""
    pointers: list[Pointer] = []
    if not program.form.arena_io:
        yield from print_null_check(program.name, ["inputs", "outputs"])
        sides = (("inputs", program.interface.inputs), ("outputs", program.interface.outputs))
        ports = [(f"{kind}->{port.member}", port.tensor) for kind, ports in sides for port in ports]
        pointers += [Pointer(place, tensor.dtype.size) for place, tensor in ports if tensor.elements]
    if arena:
        pointers += [Pointer(each.parameter, ALIGNMENT) for each in program.workspaces]
    else:
        yield "    (void)workspace; /* not used: the model has no intermediate tensors */"
    if program.graph.states:
        pointers.append(Pointer("kept", STATE_ALIGNMENT))
    yield from print_checks(program.name, pointers)


def _step(step: ModelStep, program: LinkedModel) -> Iterator[str]:
    yield ""
    if program.blob is None:
        yield f"    /* {step.index}: {comment_text(step.node.name)}"
        yield f"       {node_comment(program.graph, step.node)} */"
    else:
        yield f"    /* {step.index}: {node_comment(program.graph, step.node)} */"
    if program.hook:
        yield from print_ask(step)
    yield from (f"    {line}" for line in step.before)
    if step.function is not None and step.function.call.may_fail:
        yield f"    if ({wrapped(f'{step.function.name}(', step.arguments, ') != 0', 8)}) {{"
        yield f"        return {failed_result(program.name)};"
        yield "    }"
    elif step.function is not None:
        yield f"    {wrapped(f'{step.function.name}(', step.arguments, ')', 4)};"
    else:
        yield "    /* nothing to do: input and output are the same bytes */"
    yield from print_hand_out(step)


def _static_entries(program: LinkedModel, placement: Placement) -> Iterator[str]:
    name, run = program.name, f"tvmgen_{program.name}_run"
    if program.form.arena_io:
        yield from print_pool_functions(program)
    arguments = ["workspace_pools"] if program.form.arena_io else ["inputs", "outputs"]
    pointers = [f"struct {program.prefix}_{kind} *{kind}" for kind in arguments]
    body = list(print_static_call(program, placement))
    if program.form.packed:
        yield print_main(program, body)
        return
    if program.hook:
        hook = Variant(name, hook=True, trace=False).parameters
        yield _entry(program, wrapped(f"int32_t {run}_hooked(", [*pointers, *hook.values()], ")", 0), body)
        body = [f"    return {run}_hooked({', '.join([*arguments, 'NULL', 'NULL'])});"]
    yield _entry(program, f"int32_t {run}({', '.join(pointers)})", body)
    if program.form.single_file and not program.form.arena_io:
        yield print_main(program, [f"    return {run}(inputs, outputs);"])


def _entry(program: LinkedModel, signature: str, body: Sequence[str]) -> str:
    return print_definition(signature, body, [f"{program.prefix.upper()}_ENTRY"])
