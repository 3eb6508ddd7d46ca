"""Prints what lets firmware come between operators (the option ``hook``).

The hooked run asks before each operator. It has no static data of its own, and where nobody asks it costs a comparison
an operator. A chain of operators that are executed row by row is one operator here: it cannot be left in the middle.
"""

from __future__ import annotations

from collections.abc import Iterator

from mlfbuild.cgen import comment_text
from mlfbuild.compilers.native.printing.program import LinkedModel, ModelStep, operator_label
from mlfbuild.library import HookedOperator, brief, print_hook_type, print_operators, print_static_hooked_run


def print_ask(step: ModelStep) -> Iterator[str]:
    """Yield the lines that ask before ``step`` whether to go on."""
    yield "    if (hook != NULL) {"
    yield f"        const int32_t code = hook(context, {step.index});"
    yield "        if (code != 0) {"
    yield "            return code;"
    yield "        }"
    yield "    }"


def print_operator_table(program: LinkedModel) -> str:
    """Return the definition of the table of operators; empty where there are none."""
    return print_operators(
        program.name,
        [HookedOperator(comment_text(step.node.name), operator_label(step.node)) for step in program.steps],
    )


def print_hook_declarations(program: LinkedModel) -> Iterator[str]:
    """Yield the parts of the header."""
    name = program.name
    yield from print_hook_type(name, len(program.steps))
    yield "\n".join(
        [
            brief(
                f"runs the module as mlf_{name}_run does, and calls a hook before each operator",
                *_when_cancelled(program, f"call mlf_{name}_reset, or restore a copy"),
                r"\param hook function to call before each operator, or NULL",
                r"\param context passed to it",
                r"\return also the value with which the hook cancelled the run",
            ),
            f"int32_t mlf_{name}_run_hooked(",
            f"  const struct tvmgen_{name}_inputs* inputs,",
            f"  const struct tvmgen_{name}_outputs* outputs,",
            "  void* workspace,",
            *(["  void* kept,"] if program.resets else []),
            f"  mlf_{name}_hook* hook,",
            "  void* context",
            ");",
        ]
    )
    yield print_static_hooked_run(name, *_when_cancelled(program, f"call tvmgen_{name}_reset"))


def _when_cancelled(program: LinkedModel, remedy: str) -> Iterator[str]:
    if program.resets:
        yield "After a cancelled run the outputs are undefined, and the state is partly updated:"
        yield f"{remedy}."
    else:
        yield "After a cancelled run the outputs are undefined."
