"""Print the variants of the run function: one with all options of the model, and those with fewer.

A model that is compiled with ``hook`` and ``trace`` has ``mlf_<model>_run_hooked_and_traced``, which does the work.
``_run_hooked``, ``_run_traced`` and ``_run`` call it with NULL for the missing arguments. So code that was written for
one option still compiles if the other one is added.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from mlfbuild.compilers.native.printing.program import LinkedModel, reentrant_lines
from mlfbuild.library import brief


@dataclass(frozen=True)
class Variant:
    """A run function with or without a hook and a trace."""

    model: str
    hook: bool
    trace: bool

    @property
    def name(self) -> str:
        """The function's name."""
        words = [word for word, there in (("hooked", self.hook), ("traced", self.trace)) if there]
        return "_".join([f"mlf_{self.model}_run", "_and_".join(words)]) if words else f"mlf_{self.model}_run"

    @property
    def parameters(self) -> dict[str, str]:
        """The parameters after those of ``mlf_<model>_run``: name -> declaration."""
        found = {}
        if self.hook:
            found["hook"] = f"mlf_{self.model}_hook *hook"
        if self.trace:
            found["trace"] = f"mlf_{self.model}_trace *trace"
        return found | ({"context": "void *context"} if found else {})


def whole(program: LinkedModel) -> Variant:
    """Return the run function that does the work."""
    return Variant(program.name, program.hook, program.trace)


def lesser(program: LinkedModel) -> Iterator[Variant]:
    """Yield the run functions that call the one that does the work."""
    if program.hook and program.trace:
        yield Variant(program.name, hook=True, trace=False)
        yield Variant(program.name, hook=False, trace=True)
    if program.hook or program.trace:
        yield Variant(program.name, hook=False, trace=False)


def print_lesser(program: LinkedModel, variant: Variant, signature: str) -> str:
    """Return the definition of ``variant``, which has ``signature``."""
    kept = ["kept"] if program.resets else []
    own = variant.parameters
    handed = [name if name in own else "NULL" for name in whole(program).parameters]
    arguments = ", ".join([*program.tensor_structs, "workspace", *kept, *handed])
    return "\n".join([signature, "{", f"    return {whole(program).name}({arguments});", "}"])


def print_unused(program: LinkedModel) -> Iterator[str]:
    """Yield the lines that mark parameters as unused in a network without operators."""
    if not program.steps:
        for at, name in enumerate(whole(program).parameters):
            yield f"    (void){name};" + ("" if at else " /* nothing is computed */")


def print_whole_declaration(program: LinkedModel) -> str:
    """Return the declaration of the run function of a model with both ``hook`` and ``trace``."""
    name = program.name
    return "\n".join(
        [
            brief(
                f"runs the module as mlf_{name}_run_hooked and mlf_{name}_run_traced together",
                r"\param hook function to call before each operator, or NULL",
                r"\param trace function to call with each output of each operator, or NULL",
                r"\param context passed to both",
                r"\return also the value with which the hook cancelled the run",
            ),
            f"int32_t {whole(program).name}(",
            *reentrant_lines(program),
            f"  mlf_{name}_hook* hook,",
            f"  mlf_{name}_trace* trace,",
            "  void* context",
            ");",
        ]
    )
