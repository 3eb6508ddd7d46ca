"""Print the code that calls a hook of the firmware before each operator (the option ``hook``).

The hooked run function has no static data. If the hook is ``NULL``, it costs one comparison per operator. A chain of
operators that run row by row counts as one operator, because it cannot be interrupted.
"""

from __future__ import annotations

from collections.abc import Iterator

from mlfbuild.library import HookedOperator, print_hook_type, print_operators, print_static_hooked_run
from mlfbuild.library.cgen import comment_text
from mlfbuild.native.printing.program import LinkedModel, ModelStep
from mlfbuild.native.printing.variants import Variant, print_declaration


def print_ask(step: ModelStep) -> Iterator[str]:
    """Yield the lines that call the hook before ``step`` and return if it cancels the run."""
    yield "    if (hook != NULL) {"
    yield f"        const int32_t code = hook(context, {step.index});"
    yield "        if (code != 0) {"
    yield "            return code;"
    yield "        }"
    yield "    }"


def print_operator_table(program: LinkedModel) -> str:
    """Return the definition of the table of operators; empty if there are none."""
    return print_operators(
        program.name,
        [HookedOperator(comment_text(step.node.name), step.node.operator.label) for step in program.steps],
    )


def print_hook_declarations(program: LinkedModel) -> Iterator[str]:
    """Yield the parts of the header about the hook."""
    name = program.name
    yield from print_hook_type(name, len(program.steps))
    yield print_declaration(
        program,
        Variant(name, hook=True, trace=False),
        f"runs the module as mlf_{name}_run does, and calls a hook before each operator",
        *_when_cancelled(program, f"call mlf_{name}_reset, or restore a copy"),
    )
    about = _when_cancelled(program, f"call tvmgen_{name}_reset")
    yield print_static_hooked_run(name, *about, workspace_io=program.form.arena_io)


def _when_cancelled(program: LinkedModel, remedy: str) -> Iterator[str]:
    if program.resets:
        yield "After a cancelled run the outputs are undefined, and the state is partly updated:"
        yield f"{remedy}."
    else:
        yield "After a cancelled run the outputs are undefined."
