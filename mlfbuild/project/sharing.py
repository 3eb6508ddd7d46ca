"""Decide which models of a project share a workspace: the keys ``share-workspace`` and ``concurrent``.

Models in ``share-workspace`` never run at the same time, except those that are together in a group of ``concurrent``.
The latter need several workspaces, which have numbers. In the order of the list, each model takes the first workspace
in which no model may run at the same time as itself. So a model that is appended does not move those before it. It is
not always the fewest bytes, because sizes are not known before models are compiled; with the largest models first, it
usually is. For example, ``share-workspace: [vww, kws, ad]`` and ``concurrent: [[vww, kws]]``::

    workspace 1    vww, ad
    workspace 2    kws
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from mlfbuild.project.specification import ModelSpec


def partners(name: str, concurrent: Collection[Collection[str]]) -> set[str]:
    """Return the models that may run at the same time as ``name``, which is not among them."""
    return {each for group in concurrent if name in group for each in group} - {name}


def shared_workspaces(names: Sequence[str], concurrent: Collection[Collection[str]]) -> Mapping[str, int]:
    """Return the number of the workspace, from 1, of each of the models ``names`` of ``share-workspace``."""
    found: dict[str, int] = {}
    for name in names:
        taken = {found[each] for each in partners(name, concurrent) if each in found}
        found[name] = next(number for number in range(1, len(names) + 1) if number not in taken)
    return found


def sharing_groups(models: Sequence[ModelSpec]) -> tuple[tuple[ModelSpec, ...], ...]:
    """Return those of ``models`` that share workspaces, a tuple for each workspace in the order of numbers."""
    numbers = sorted({model.placement.shares_workspace for model in models} - {0})
    return tuple(tuple(each for each in models if each.placement.shares_workspace == number) for number in numbers)
