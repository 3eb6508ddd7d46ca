"""Divide the memories of a target among the models of each of its images.

Data: the bytes that each model needs become its share of each memory, a limit for its arena there (``shares_of``).

The rules:

1. Models of one image divide a memory; those that share a workspace are one user of it, as large as the largest. A
   model of several images has the smallest of its shares. Without images, all models of the target are in one.
2. A share that a model declares (``memories: {dtcm: 16 KiB}``) is taken off first, as are its ``weights``. A model that
   is alone has the rest. A share has room for the arena and for copied weights, which are never shared.
3. If all others fit beside each other, each gets what it needs. A change of one model then affects no other.
4. If not, no model gets more than another one that lacks memory.
5. A model needs the bytes of its arena in a single memory, an archive those of its workspaces. If that is not known,
   because another compiler plans it, the model counts as one that always lacks memory.

Values of weights do not count: needs follow from shapes. For example, 64 KiB of DTCM, of which ``kws`` has declared 8::

    model   needs     share
    kws         -     8 KiB
    vww        40    28
    ic         50    28

Each memory is divided alone, since a model may put any of its tensors into any memory: if the models fit one memory
together, each finds room there, whatever the plan of the others is.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from mlfbuild.core import Mistake, unknown
from mlfbuild.core.keys import size_text
from mlfbuild.project.memories import TargetMemory, chosen_memories, keeps_one_arena, only_memory
from mlfbuild.project.problems import KeyPath
from mlfbuild.project.program import EXTERNAL_COMPILERS
from mlfbuild.project.sharing import sharing_groups
from mlfbuild.project.specification import ModelSpec, Project, TargetSpec

_STEP = 16
"""Shares are multiples of the alignment of tensors."""


@dataclass(frozen=True)
class _User:
    """Models that have an arena in a memory, at most one at a time."""

    models: tuple[ModelSpec, ...]

    def declared(self, memory: str) -> int:
        """Return the bytes of its arena that are known: of the largest share without copied weights, or of a stream."""
        return max((_arena_of(model, memory) for model in self.models), default=0)

    def copied(self, memory: str) -> int:
        """Return the bytes of copied weights, which models do not share."""
        return sum(_weights(model, memory)[0] for model in self.models)

    def needed(self, memory: str, needs: Mapping[str, int | None]) -> int | None:
        """Return the bytes that it needs more than it declares; ``None`` if they are not known."""
        wanted = [0]
        for model in self.models:
            need = 0 if model.memories.get(memory) else needs.get(model.name)
            if need is None:
                return None
            wanted.append(need + (_weights(model, memory)[1] if need else 0))
        return max(0, max(wanted) - self.declared(memory))


def _weights(model: ModelSpec, memory: str) -> tuple[int, int]:
    """Return the bytes for copied and for streamed weights of ``model`` in ``memory``."""
    keys = model.weights
    return (keys.copy, keys.stream) if keys is not None and keys.memory == memory else (0, 0)


def _arena_of(model: ModelSpec, memory: str) -> int:
    share, (copy, stream) = model.memories.get(memory) or 0, _weights(model, memory)
    return max(share - copy, 0) if share else stream


def shares_of(project: Project, target: TargetSpec, needs: Mapping[str, int | None]) -> Mapping[str, Mapping[str, int]]:
    """Return the bytes of each memory of ``target`` that each model may take, by model and memory.

    ``needs`` are the bytes that models need in a single memory. Memories of which a model declares its share are also
    in the result.
    """
    found: dict[str, dict[str, int]] = {}
    for memory, users in _images(project, target):
        declared = [user.declared(memory.name) for user in users]
        wanted = [user.needed(memory.name, needs) for user in users]
        rest = max(0, memory.size - sum(declared) - sum(user.copied(memory.name) for user in users))
        # Alone, a model has all of it.
        added = _divided(rest, wanted) if len(users) > 1 else [rest]
        for user, own, more in zip(users, declared, added, strict=True):
            for model in user.models:
                share = model.memories.get(memory.name) or own + more + _weights(model, memory.name)[0]
                its = found.setdefault(model.name, {})
                its[memory.name] = min(share, its.get(memory.name, share))
    return found


def contested(project: Project, target: TargetSpec) -> set[str]:
    """Return the names of the models whose needs decide about shares on ``target``; none if none has to be known."""
    return {
        model.name
        for memory, users in _images(project, target)
        for model in (model for user in users for model in user.models)
        if len(users) > 1 and not model.memories.get(memory.name) and model.compiler not in EXTERNAL_COMPILERS
    }


def share_problems(project: Project) -> Iterator[tuple[KeyPath, Mistake]]:
    """Yield the declared shares that are together more than a memory has, at the last model that declares one."""
    for target in project.targets.values():
        for memory, users in _images(project, target):
            name, models = memory.name, [model for user in users for model in user.models]
            total = sum(user.declared(name) + user.copied(name) for user in users)
            if total <= memory.size:
                continue
            last = next(each for each in models[::-1] if each.memories.get(name) or any(_weights(each, name)))
            reason = (
                f"models of one image take {size_text(total)} of {name} of target {target.name}, "
                f"which has {size_text(memory.size)}"
            )
            hint = "reduce one of them, or add models that never run at the same time to share-workspace"
            key = ("memories", name) if last.memories.get(name) else ("weights",)
            yield ("models", last.name, *key), Mistake("shares-too-large", reason=reason, hint=hint)


def weight_problems(project: Project) -> Iterator[tuple[KeyPath, Mistake]]:
    """Yield what is wrong with the memory for weights that models name."""
    for model in project.models.values():
        if model.weights is None:
            continue
        path, wanted = ("models", model.name, "weights"), model.weights
        targets = [project.targets[name] for name in model.targets if project.targets[name].cpu != "host"]
        why = keeps_one_arena(model) or ("" if targets else "this machine has no memories")
        if why:
            yield path, Mistake("misplaced-key", reason=f"is not accepted, because {why}", hint="remove weights")
        elif not wanted.copy + wanted.stream:
            yield path, Mistake("missing-key", reason="copy or stream must have a size", hint="add one of them")
        for target in targets if not why else ():
            known = {memory.name: memory.size for memory in chosen_memories(model, target)}
            if wanted.memory not in known:
                mistake = unknown("memory", wanted.memory, [*known])
                reason = f"target {target.name}: {mistake.reason}"
                hint = mistake.hint or "add memories to the target or to the model"
                yield (*path, "memory"), Mistake(mistake.code, reason=reason, hint=hint)
            elif wanted.copy + wanted.stream > (limit := model.memories.get(wanted.memory) or known[wanted.memory]):
                reason = f"takes more than {size_text(limit)}, which the model may take of {wanted.memory}"
                yield path, Mistake("memory-too-large", reason=reason, hint="reduce copy or stream")


def _images(project: Project, target: TargetSpec) -> Iterator[tuple[TargetMemory, Sequence[_User]]]:
    """Yield each memory with its users in each image of ``target``."""
    images = [each.name for each in project.firmware.values() if target.name in each.targets]
    linked = [project.models_on(target.name, name) for name in images]
    alone = [model for model in project.models_on(target.name) if not any(model in models for models in linked)]
    for models in [*linked, *([tuple(alone)] if alone else [])]:
        users: dict[TargetMemory, list[ModelSpec]] = {}
        for model in models:
            only = only_memory(model, target)
            for memory in chosen_memories(model, target) if only is None else [only]:
                users.setdefault(memory, []).append(model)
        for memory, its in users.items():
            others = [_User((model,)) for model in its if not model.placement.shares_workspace]
            yield memory, [*others, *(_User(group) for group in sharing_groups(its))]


def _divided(size: int, wanted: Sequence[int | None]) -> list[int]:
    """Return what each user gets of ``size`` bytes: what it wants if possible; ``None`` wants everything."""
    found, left = [0] * len(wanted), size
    # The least first: what it leaves of an equal part is for the others.
    order = sorted(range(len(wanted)), key=lambda at: (wanted[at] is None, wanted[at] or 0, at))
    for done, at in enumerate(order):
        part = left // (len(order) - done) // _STEP * _STEP
        need = wanted[at]
        found[at] = part if need is None else min(part, need)
        left -= found[at]
    return found
