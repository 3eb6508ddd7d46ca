"""Print the C code that hooked runs share, regardless of the executor (the option ``hook``).

A hooked run calls a function of the firmware before each operator. The function can feed a watchdog, yield to other
tasks, or cancel the run with a code. The codes of a run itself are 0 or negative, so firmware should use positive ones.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from mlfbuild.library.c_interface import brief, droppable_table, run_parameters


@dataclass(frozen=True)
class HookedOperator:
    """A row of the table of operators; both texts need no escapes in a C string."""

    name: str
    """The name in the model or, if unknown, in the graph."""
    operator: str
    """The kind, such as ``CONV_2D``, or the function that a graph calls."""


def print_hook_type(module: str, count: int) -> Iterator[str]:
    """Yield the parts of a header that declare the hook of ``module`` and the table of its ``count`` operators.

    ``module`` is the module's name in C.
    """
    macro = f"MLF_{module.upper()}_OPERATORS"
    yield brief("Number of operators: the number of hook calls in a run that is not cancelled") + (
        f"\n#define {macro} {count}"
    )
    if count:
        yield "\n".join(
            [
                brief("The operators, by index; the table is in the image only if the firmware uses it"),
                f"struct mlf_{module}_operator {{",
                "  const char* name;          /* in the model or graph; _ replaces other than plain text */",
                "  const char* operator_name; /* such as CONV_2D; in TVM's graphs the function called */",
                "};",
                f"extern const {_table(module)};",
            ]
        )
    yield "\n".join(
        [
            brief(
                "is called before each operator",
                r"\param context the argument of the hooked run",
                rf"\param operator_index of the next operator, from 0 to {macro} - 1, in ascending order",
                r"\return 0 to continue; any other value cancels the run, which then returns it: use positive",
                "        values, because the results of a run itself are 0 or negative",
            ),
            f"typedef int32_t mlf_{module}_hook(void* context, uint32_t operator_index);",
        ]
    )


def print_operators(module: str, operators: Sequence[HookedOperator]) -> str:
    """Return the definition of the table of ``operators``; empty if there are none."""
    if not operators:
        return ""
    macro, section = f"TVMGEN_{module.upper()}_OPERATORS_TABLE", f".rodata.mlf_{module}_operators"
    rows = (f'    {{"{each.name}", "{each.operator}"}},' for each in operators)
    return droppable_table(macro, section, _table(module), rows)


def _table(module: str) -> str:
    return f"struct mlf_{module}_operator mlf_{module}_operators[MLF_{module.upper()}_OPERATORS]"


def print_static_hooked_run(module: str, *about: str, workspace_io: bool = False) -> str:
    """Return the declaration of ``tvmgen_<module>_run_hooked``; ``about`` are further lines of its comment.

    With ``workspace_io``, inputs and outputs are in the pools that it takes.
    """
    return "\n".join(
        [
            brief(
                f"runs the module as tvmgen_{module}_run does, and calls a hook before each operator",
                *about,
                r"\param hook function to call before each operator, or NULL",
                r"\param context passed to it",
                r"\return also the value with which the hook cancelled the run",
            ),
            f"int32_t tvmgen_{module}_run_hooked(",
            *(f"  {each}," for each in run_parameters(f"tvmgen_{module}", workspace_io=workspace_io)),
            f"  mlf_{module}_hook* hook,",
            "  void* context",
            ");",
        ]
    )
