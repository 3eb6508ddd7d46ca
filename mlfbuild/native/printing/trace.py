"""Print the code that passes every tensor that an operator writes to a callback (the option ``trace``).

After each operator, the traced run calls the callback once for each tensor that was written, with the tensor's number
and address. The data is valid only during the call, because the arena is reused. A constant table describes the
tensors. There is no static data, so a traced run is reentrant.
"""

from __future__ import annotations

from collections.abc import Iterator

from mlfbuild.library import TensorInfo, TracedTensor, brief, droppable_table
from mlfbuild.library.cgen import comment_text
from mlfbuild.native.graph import Node, Tensor
from mlfbuild.native.printing.program import LinkedModel, ModelStep, Written
from mlfbuild.native.printing.variants import Variant, print_declaration


def traced_tensors(program: LinkedModel) -> tuple[TracedTensor, ...]:
    """Return the tensors that the traced run passes to the callback, in this order; empty without ``trace``."""
    return tuple(
        traced_tensor(written.tensor, step.node, "" if step.function is None else step.function.name)
        for step, written in _written(program)
    )


def traced_tensor(tensor: Tensor, node: Node, function: str) -> TracedTensor:
    """Return the archive's description of ``tensor``, which ``node`` writes in the C ``function``.

    For both executors: ``function`` is that of the operator in this executor's C code, empty if the node needs no code.
    """
    info = TensorInfo(tensor.name, tensor.dtype.value, tensor.size, tensor.shape)
    return TracedTensor(info, node.operator.name, function)


def _written(program: LinkedModel) -> Iterator[tuple[ModelStep, Written]]:
    yield from ((step, written) for step in program.steps for written in step.written)


def print_hand_out(step: ModelStep) -> Iterator[str]:
    """Yield the lines that pass the tensors that ``step`` has written to the callback."""
    if step.written:
        yield "    if (trace != NULL) {"
        # After the operator and before its successor: a later operator may overwrite the tensor.
        yield from (f"        trace(context, {written.number}, {written.pointer});" for written in step.written)
        yield "    }"


def print_table(program: LinkedModel) -> str:
    """Return the definition of the table of tensors; empty if there are none."""
    rows = [
        f'    {{"{comment_text(written.tensor.name)}",\n     "{step.node.operator.name}", '
        f'"{written.tensor.dtype.value}", {written.tensor.elements}, {written.tensor.size}}},'
        for step, written in _written(program)
    ]
    if not rows:
        return ""
    # In a section of its own, so that the linker drops the table if the firmware does not use it.
    section = f".rodata.mlf_{program.name}_traced_tensors"
    return droppable_table(f"{program.prefix.upper()}_TABLE", section, _table(program), rows)


def _table(program: LinkedModel) -> str:
    upper = f"MLF_{program.name.upper()}"
    return f"struct mlf_{program.name}_traced_tensor mlf_{program.name}_traced_tensors[{upper}_TRACED_TENSORS]"


def print_declarations(program: LinkedModel) -> Iterator[str]:
    """Yield the parts of the header about the trace."""
    name, upper = program.name, f"MLF_{program.name.upper()}"
    count = sum(len(step.written) for step in program.steps)
    yield (brief("Number of tensors that a traced run passes on") + f"\n#define {upper}_TRACED_TENSORS {count}")
    if count:
        yield "\n".join(
            [
                brief("The tensors of a traced run, by number; the table is in the image only if the firmware uses it"),
                f"struct mlf_{name}_traced_tensor {{",
                "  const char* name;          /* in the model; _ replaces other than plain text */",
                "  const char* operator_name; /* the operator that wrote it, such as CONV_2D */",
                "  const char* dtype;         /* of an element, such as int8 */",
                "  uint32_t elements;",
                "  uint32_t size;             /* bytes */",
                "};",
                f"extern const {_table(program)};",
            ]
        )
    yield "\n".join(
        [
            brief(
                "is called with each tensor after its operator has written it",
                r"\param context the argument of the traced run",
                rf"\param tensor its number, from 0 to {upper}_TRACED_TENSORS - 1, in ascending order",
                r"\param data its elements, dense and in the model's order of axes; valid during this call only",
            ),
            f"typedef void mlf_{name}_trace(void* context, uint32_t tensor, const void* data);",
        ]
    )
    about = f"runs the module as mlf_{name}_run does, and passes every tensor to a callback"
    yield print_declaration(program, Variant(name, hook=False, trace=True), about)
