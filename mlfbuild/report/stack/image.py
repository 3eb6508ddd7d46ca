"""The stack that the models of an image and its ``main`` need, also as text and as JSON."""

from __future__ import annotations

import functools
import itertools
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from mlfbuild.core import ProcessFailedError, ToolNotFoundError, printable, text_table
from mlfbuild.library import symbol_prefix
from mlfbuild.report.sizes.image import Image
from mlfbuild.report.sizes.images import ImageSizes
from mlfbuild.report.sizes.linker_map import InputSection
from mlfbuild.report.sizes.owners import module_of
from mlfbuild.report.stack.deepest_stack import CallGraph, StackDepth, StackFrame
from mlfbuild.report.stack.pointers import pointers_of, read_program

_ENTRIES = r"({prefix}|mlf_{module})_(run(_hooked|_traced|_hooked_and_traced)?|reset)"
"""Names of the functions of a module that firmware calls."""
MAIN = "main"


@dataclass(frozen=True)
class Stacks:
    """The worst-case stack of functions of an image."""

    models: Mapping[str, StackDepth]
    """By model: the deepest of the functions that firmware calls, without the hooks of firmware that these call."""
    main: StackDepth
    """The stack of ``main`` with everything that it calls."""

    @property
    def by_name(self) -> dict[str, StackDepth]:
        """The depths of the models, and that of ``main`` under the empty name."""
        return {**self.models, "": self.main}


def stacks(found: ImageSizes) -> Stacks:
    """Return the worst-case stack of each model with code in the image, and of ``main``.

    If objdump is missing or fails, all depths are unknown for that reason.
    """
    # Sizes are useful without stacks, so a missing objdump makes only the stacks unknown.
    try:
        return analysed_stacks(found)
    except (ToolNotFoundError, ProcessFailedError) as error:
        unknown = StackDepth(None, reason=error.message)
        return Stacks(dict.fromkeys(_models(found).values(), unknown), unknown)


@functools.lru_cache(maxsize=8)
def analysed_stacks(found: ImageSizes) -> Stacks:
    """Return what ``stacks`` does; raises as ``stacks_of`` if objdump is missing or fails.

    The last results are kept: the text, the JSON form, the budgets and the checks of one report ask for the same
    image.
    """
    return stacks_of(found.image, found.placed, _models(found))


def measured_stacks(found: ImageSizes) -> dict[str, int]:
    """Return the bytes of stack that runs of the image's models took, by model; empty without runs.

    The figure is the high-water mark that test firmware found below the caller of the model.
    """
    taken: dict[str, int] = {}
    for run in found.runs:
        # A model may have run several times; the bound is compared with the worst run.
        taken[run.model] = max(taken.get(run.model, 0), run.profile.stack)
    return taken


def _models(found: ImageSizes) -> dict[str, str]:
    """Return the name of the model by module, of those models that have flash in the image."""
    # The linker drops the code of a model that the firmware does not call, and then there is nothing to analyse.
    there = {owner.name for owner in found.sizes.models if owner.flash}
    return {module: model for module, model in found.modules.items() if model in there}


def stacks_of(image: Image, placed: Sequence[InputSection], models: Mapping[str, str]) -> Stacks:
    """Return the worst-case stack of the models of ``image``; ``placed`` is its linker map.

    ``models`` has the name of the model by the name of each of its modules. Raises as ``read_program``.
    """
    program = read_program(image.path)
    if program is None:
        unknown = StackDepth(None, reason="mlfbuild decodes only instructions of 32-bit Arm and RISC-V")
        return Stacks(dict.fromkeys(models.values(), unknown), unknown)
    pointers = [
        pointers_of(module, program, image, [part for part in placed if module_of(part) == module]) for module in models
    ]
    # Firmware adds its own hooks to a model, so the depth of a model leaves them out, and that of main is unknown if
    # they are called.
    inside, whole = (
        CallGraph(program.listing, program.decode, program.words, dict(itertools.chain.from_iterable(each)))
        for each in ([found.own.items() for found in pointers], [found.all.items() for found in pointers])
    )
    functions = {symbol.name: symbol.address for symbol in image.symbols if symbol.function}
    found: dict[str, list[StackDepth]] = {}
    for module, model in models.items():
        found.setdefault(model, []).append(_of_module(module, inside, functions))
    main = whole.depth(functions[MAIN]) if MAIN in functions else _missing(MAIN)
    return Stacks({model: _deepest(depths) for model, depths in found.items()}, main)


def _of_module(module: str, graph: CallGraph, functions: Mapping[str, int]) -> StackDepth:
    """Return the deepest of the functions of a module that firmware calls."""
    prefix = symbol_prefix(module)
    entries = re.compile(_ENTRIES.format(prefix=prefix, module=module))
    found = [graph.depth(address) for name, address in functions.items() if entries.fullmatch(name)]
    return _deepest(found) if found else _missing(f"{prefix}_run")


def _deepest(found: Sequence[StackDepth]) -> StackDepth:
    """Return the deepest of ``found``; an unknown one if there is one."""
    # An unknown depth may be the deepest.
    return next((depth for depth in found if depth.size is None), max(found, key=lambda depth: depth.size or 0))


def _missing(function: str) -> StackDepth:
    return StackDepth(None, reason=f"the image has no function {function}")


def stack_lines(
    stacks: Stacks, limits: Mapping[str, int], measured: Mapping[str, int], *, verbose: bool = False
) -> Iterator[str]:
    """Yield lines with the worst-case stack and the call chain of each model, and with ``verbose`` of ``main``.

    ``limits`` has budgets, ``measured`` the bytes that a run took, both by model.

    Sizes are in bytes. A model whose stack is unknown gets the reason instead of a chain.
    """
    for name, depth in stacks.by_name.items():
        title = f"model {name}, stack" if name else f"{MAIN}, stack"
        ran = f", {measured[name]:,} in a run" if name in measured else ""
        if depth.size is None:
            yield from (f"{title}: unknown{ran}", f"  {depth.reason}")
        else:
            yield f"{title}: {depth.size:,} bytes in the worst case{ran}{_of(depth.size, limits.get(name))}"
            chain = depth.path if name or verbose else ()
            # A frame of 0 bytes adds nothing: a tail call reuses the memory of its caller.
            rows = [(f"{part.size:,}", part.function) for part in chain if part.size]
            if rows:
                yield text_table(rows, align="r", indent=2)
        if name:
            yield ""


def stacks_in(image: Mapping[str, Any]) -> Stacks | None:
    """Return the stacks of an image from the JSON form of a report; ``None`` if it has none."""
    if "stack" not in image:
        return None
    # Reports may come from elsewhere, so names lose their control characters before they are printed.
    models = {printable(model["name"]): _depth(model["stack"]) for model in image["models"] if "stack" in model}
    return Stacks(models, _depth(image["stack"]))


def measured_in(image: Mapping[str, Any]) -> dict[str, int]:
    """Return the bytes of stack that runs took, by model, from the JSON form of a report."""
    taken = {printable(model["name"]): model.get("stack", {}).get("measured") for model in image["models"]}
    return {name: size for name, size in taken.items() if size is not None}


def _depth(stack: Mapping[str, Any]) -> StackDepth:
    path = (StackFrame(printable(name), size) for name, size in zip(stack["path"], stack["frames"], strict=False))
    return StackDepth(stack["worst_case"], tuple(path), printable(stack["reason"]))


def _of(size: int, limit: int | None) -> str:
    if limit is None:
        return ""
    # Rounded up, so that a stack one byte above its budget does not read 100 %.
    return f" ({-(-100 * size // limit)} % of its budget of {limit:,})" if limit else " (over its budget of 0)"


def stack_json(depth: StackDepth, measured: int | None = None) -> dict[str, Any]:
    """Return a stack as plain JSON values; ``measured`` are the bytes that a run took.

    ``stacks_in`` reads this form back. ``worst_case`` is null if the stack is unknown; ``path`` and ``frames``, in
    bytes, have the same length.
    """
    return {
        "worst_case": depth.size,
        "reason": depth.reason,
        "path": [part.function for part in depth.path],
        "frames": [part.size for part in depth.path],
        "measured": measured,
    }
