"""The program of a module: its text before code generation, its graph, and the C functions of their operators.

``operators`` finds where each C function is defined. It lists the operators of a graph and of the compiler's
plan, which name their functions, and the calls in Relay text, which do not: they are found by TVM's names, which
consist of the names of the operators that were fused::

    functions = code_functions(module, {})
    for operator in program_operators(module, RELAY, functions):
        print(operator.name, [f"{each.file}:{each.line}" for each in operator.functions])
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from mlfbuild.core import lazy_attributes

if TYPE_CHECKING:
    # fmt: off
    from mlfbuild.archive.program.operators import (
        GRAPH, PLAN, RELAY, TIR, CodeFunction, KnownFiles, ProgramOperator, code_functions, function_text,
        program_operators,
    )
else:
    __getattr__ = lazy_attributes(__name__)
