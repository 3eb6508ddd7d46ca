"""Print the variants of the run function: one with all options of the model, and those with fewer.

The options ``hook`` (a function is called before each operator, and may cancel the run) and ``trace`` (a function gets
each tensor after it was written) change the parameters of the run function. Each is an option of the build, so that
firmware without it pays nothing. But firmware that was written for one of them should still compile when the other is
added, and firmware that was written for neither as well.

The rules:

1. One function does the work. It has the parameters of all options of the model, and its body is printed once.
2. For each smaller set of options there is a function that calls it with NULL for what is missing. It costs one call,
   and no second copy of the calls of all operators.
3. NULL for a hook or a callback means none: a comparison before or after each operator.
4. ``context`` is one parameter for both callbacks, the last one.
5. The names are fixed, so that no model has another order of words.

For example, the model ``kws`` compiled with both options has these functions, the first of which does the work::

    mlf_kws_run_hooked_and_traced(inputs, outputs, workspace, hook, trace, context)
    mlf_kws_run_hooked(inputs, outputs, workspace, hook, context)      calls it with trace = NULL
    mlf_kws_run_traced(inputs, outputs, workspace, trace, context)     calls it with hook = NULL
    mlf_kws_run(inputs, outputs, workspace)                            calls it with NULL for all three

With ``hook`` alone there are two functions, and ``mlf_kws_run_hooked`` does the work; without options there is one. A
model with a state has the parameter ``kept`` after ``workspace`` in all of them, and one with ``io: arena`` has neither
``inputs`` nor ``outputs``.

The static entries (``tvmgen_kws_run`` and, with a hook, ``tvmgen_kws_run_hooked``) are not variants in this sense: they
add the static workspace and state, and are in ``workspace``.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from mlfbuild.library import brief
from mlfbuild.native.printing.functions import print_definition
from mlfbuild.native.printing.program import LinkedModel, reentrant_lines


@dataclass(frozen=True)
class Variant:
    """A run function with or without a hook and a trace."""

    model: str
    hook: bool
    trace: bool

    @property
    def name(self) -> str:
        """The function's name."""
        # In a fixed order, so that the name does not depend on the order of the options.
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
    """Return the definition of ``variant``, which has ``signature``.

    It passes NULL for each parameter that it lacks to the function that does the work (``whole``).
    """
    # A state is passed on to the function that does the work, as every variant has it.
    kept = ["kept"] if program.resets else []
    own = variant.parameters
    handed = [name if name in own else "NULL" for name in whole(program).parameters]
    arguments = ", ".join([*program.tensor_structs, *(each.parameter for each in program.workspaces), *kept, *handed])
    return print_definition(signature, [f"    return {whole(program).name}({arguments});"])


def print_unused(program: LinkedModel) -> Iterator[str]:
    """Yield the lines that mark parameters as unused in a network without operators."""
    if not program.steps:
        for at, name in enumerate(whole(program).parameters):
            # Without operators no parameter is read, and compilers would warn.
            yield f"    (void){name};" + ("" if at else " /* nothing is computed */")


_ABOUT = {
    "hook": r"\param hook function to call before each operator, or NULL",
    "trace": r"\param trace function to call with each output of each operator, or NULL",
}


def print_declaration(program: LinkedModel, variant: Variant, *about: str) -> str:
    """Return the declaration of the run function ``variant``, which ``about`` describes, in the style of the header.

    The parameters of a variant and the result of a hook are described here.
    """
    own = variant.parameters
    described = [_ABOUT[name] for name in own if name in _ABOUT]
    context = [rf"\param context passed to {'both' if len(described) > 1 else 'it'}"] if own else []
    result = [r"\return also the value with which the hook cancelled the run"] if variant.hook else []
    declared = [*reentrant_lines(program), *(f"  {text.replace(' *', '* ')}," for text in own.values())]
    # The last parameter has no comma, and the lines end with one each.
    parameters = "\n".join(declared).removesuffix(",")
    return f"{brief(*about, *described, *context, *result)}\nint32_t {variant.name}(\n{parameters}\n);"
