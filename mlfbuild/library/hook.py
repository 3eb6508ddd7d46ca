"""Prints what every hooked run has in common, whoever executes the network (the option ``hook``).

A hooked run asks a function of the firmware before each operator whether to go on. That feeds a watchdog, lets others
run, or ends the run with a code of the firmware's own. What a run returns by itself is 0 or negative, so that a
positive code is never mistaken for that.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from mlfbuild.library.c_interface import brief, droppable_table


@dataclass(frozen=True)
class HookedOperator:
    """What the table tells of an operator; both texts may stand in a C string as they are."""

    name: str
    """In the model, or else in the graph."""
    operator: str
    """What it is, as ``CONV_2D``, or else the function that a graph calls."""


def print_hook_type(module: str, count: int) -> Iterator[str]:
    """Yield the parts of a header that say what a hook of ``module`` is, and what its ``count`` operators are.

    ``module`` is the name as it stands in C.
    """
    macro = f"MLF_{module.upper()}_OPERATORS"
    yield brief("Number of operators: so often is a hook called in a run that it does not cancel") + (
        f"\n#define {macro} {count}"
    )
    if count:
        yield "\n".join(
            [
                brief("The operators, by their index; only who names this table has it in the image"),
                f"struct mlf_{module}_operator {{",
                "  const char* name;          /* in the model or graph; what is not plain text there is _ */",
                "  const char* operator_name; /* what it is, as CONV_2D; in TVM's graphs the function called */",
                "};",
                f"extern const {_table(module)};",
            ]
        )
    yield "\n".join(
        [
            brief(
                "is called before each operator",
                r"\param context what the hooked run got",
                rf"\param operator_index of the operator that is next, from 0 to {macro} - 1, in rising order",
                r"\return 0 to go on; anything else cancels the run, which returns it: use numbers above 0, as",
                "        what a run returns by itself is 0 or negative",
            ),
            f"typedef int32_t mlf_{module}_hook(void* context, uint32_t operator_index);",
        ]
    )


def print_operators(module: str, operators: Sequence[HookedOperator]) -> str:
    """Return the definition of the table of ``operators``; empty where there are none."""
    if not operators:
        return ""
    macro, section = f"TVMGEN_{module.upper()}_OPERATORS_TABLE", f".rodata.mlf_{module}_operators"
    rows = (f'    {{"{each.name}", "{each.operator}"}},' for each in operators)
    return droppable_table(macro, section, _table(module), rows)


def _table(module: str) -> str:
    return f"struct mlf_{module}_operator mlf_{module}_operators[MLF_{module.upper()}_OPERATORS]"


def print_static_hooked_run(module: str, *about: str) -> str:
    """Return the declaration of ``tvmgen_<module>_run_hooked``; ``about`` are further lines of its comment."""
    return "\n".join(
        [
            brief(
                f"is tvmgen_{module}_run, with the same arguments and results, that asks before each operator",
                *about,
                r"\param hook is called before each operator; NULL for nobody",
                r"\param context for it",
                r"\return what the hook cancelled with, too",
            ),
            f"int32_t tvmgen_{module}_run_hooked(",
            f"  struct tvmgen_{module}_inputs* inputs,",
            f"  struct tvmgen_{module}_outputs* outputs,",
            f"  mlf_{module}_hook* hook,",
            "  void* context",
            ");",
        ]
    )
