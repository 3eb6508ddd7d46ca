"""The points of an exploration: every combination of the values that the project file declares, or of the usual ones.

The usual ones are what decides most for most models, in this order: the option ``memory``, the form of decision trees,
the type of activations of a quantised model, the optimisation level, and code in RAM on a microcontroller, whose flash
has wait states. An axis that would lead to more than 24 points is left out, and named.
"""

from __future__ import annotations

import contextlib
import itertools
import math
from collections.abc import Iterator, Mapping, Sequence

from mlfbuild.core import MlfError, UsageError
from mlfbuild.exploration import WITHOUT, Setting
from mlfbuild.native import DEFAULT_MEMORY, MEMORY, TREES, Choices, read_model
from mlfbuild.project import INHERIT, LEVELS, ModelSpec
from mlfbuild.quantization import ACTIVATIONS

_USUAL, _MOST = 24, 1000
_CODE_IN_RAM = ".ramfunc"
"""The section that the linker scripts of most vendors copy to RAM."""

Axes = Mapping[str, Sequence[Setting]]


def axes_of(model: ModelSpec, *, mcu: bool) -> tuple[Axes, list[str]]:
    """Return what is explored of ``model``, and the keys that were left out so that there are not too many points.

    ``mcu`` says whether a target is a microcontroller. Raises ``UsageError`` for a declared space of more than 1,000
    points.
    """
    if model.explore:
        count = math.prod(len(set(values)) for values in model.explore.values())
        if count > _MOST:
            reason = f"{count:,} points are more than {_MOST:,}"
            place = f"models.{model.name}.explore"
            raise UsageError("space-too-large", place=place, reason=reason, hint="explore one half after the other")
        return model.explore, []
    axes: dict[str, Sequence[Setting]] = {}
    omitted = []
    for key, values in _usual(model, mcu=mcu):
        if math.prod(map(len, axes.values())) * len(values) > _USUAL:
            omitted.append(key)
        else:
            axes[key] = values
    return axes, omitted


def _usual(model: ModelSpec, *, mcu: bool) -> Iterator[tuple[str, Sequence[Setting]]]:
    # Defaults first: of settings with the same code, the first ones are shown.
    if model.compiler == "native":
        yield "options.memory", sorted(MEMORY, key=DEFAULT_MEMORY.__ne__)
        if _has_trees(model):
            yield "options.trees", TREES
    if model.quantize is not None:
        yield "quantize.activations", ACTIVATIONS
    yield "optimize", [level for level in LEVELS if level != INHERIT]
    if mcu:
        yield "placement.code", (WITHOUT, _CODE_IN_RAM)


def _has_trees(model: ModelSpec) -> bool:
    with contextlib.suppress(MlfError):  # each point has the reason why the model cannot be read
        choices = Choices(model.dims, model.state, model.signature, model.constants)
        graph = read_model(model.source, model.name, choices=choices)
        return any(node.operator.name == "TREE_ENSEMBLE" for node in graph.nodes)
    return False


def points_of(axes: Axes) -> list[dict[str, Setting]]:
    """Return every combination of the values of ``axes``, and at the end the settings of the project file."""
    # Without repeated values. 1 and true are equal, and the same option.
    values = [list(dict.fromkeys(each)) for each in axes.values()]
    return [*(dict(zip(axes, each, strict=True)) for each in itertools.product(*values)), {}]
