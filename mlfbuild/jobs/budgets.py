"""Budgets of a target in a file, ``budgets.json``, for links that another build system makes.

The file is in the target's tree, and in the folder of a CMake build. It has what ``mlfbuild report --fail-over-budget``
needs to check any image of the target without the project file::

    {
      "firmware": {"app": {"flash": 98304}},
      "mlfbuild_budgets": 1,
      "models": {"digits": {"budget": {"flash": 16384, "stack": 512}, "modules": ["digits"]}},
      "target": "m4"
    }

With ``"memories": {"dtcm": 65536}`` among its limits, the file also has where the target's memories are.
Targets of this machine have no such file, because budgets do not apply to them.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any

from mlfbuild.core import InputFileError, read_bytes
from mlfbuild.library import Fields, parse_json
from mlfbuild.project import Budget, Project, TargetMemory

BUDGETS_FILE = "budgets.json"
_VERSION_KEY = "mlfbuild_budgets"
_VERSION = 1
_REMAKE = "build the project again"


@dataclass(frozen=True)
class TargetBudgets:
    """The budgets that apply to images of one target."""

    target: str
    models: Mapping[str, Budget]
    """By model, also those without a budget."""
    firmware: Mapping[str, Budget]
    """By firmware, also those without a budget; the name of an image is that of its firmware."""
    baseline: str = ""
    """The name of the project's ``budget-file``, if it has one."""
    modules: Mapping[str, str] = field(default_factory=dict)
    """The model by the name of each module whose name is not that of its model."""
    memories: tuple[TargetMemory, ...] = ()
    """The memories that the target, its models or these budgets name."""

    def __bool__(self) -> bool:
        return bool(self.baseline) or any(
            budget != Budget() for budget in (*self.models.values(), *self.firmware.values())
        )

    def to_json(self) -> str:
        """Return the text of ``budgets.json``.

        Keys are sorted, and limits that are not set are left out: equal budgets give equal bytes.
        """
        models = {
            name: {"budget": _limits(budget), "modules": self.modules_of(name)} for name, budget in self.models.items()
        }
        content = {
            _VERSION_KEY: _VERSION,
            "target": self.target,
            "models": models,
            "firmware": {name: _limits(budget) for name, budget in self.firmware.items()},
            **({"baseline": self.baseline} if self.baseline else {}),
            **({"memories": [_place(each) for each in self.memories]} if self.memories else {}),
        }
        return json.dumps(content, indent=2, sort_keys=True) + "\n"

    def modules_of(self, model: str) -> list[str]:
        """Return the names of the modules of ``model``.

        They are sorted. A model whose modules are not known counts as one module with the name of the model.
        """
        return sorted(module for module, name in self.modules.items() if name == model) or [model]


def _limits(budget: Budget) -> dict[str, Any]:
    return {key: limit for key, limit in budget.to_json().items() if limit is not None}


def _place(memory: TargetMemory) -> dict[str, Any]:
    origin = {} if memory.origin is None else {"origin": memory.origin}
    return {
        "name": memory.name,
        **origin,
        "size": memory.size,
        "section": memory.section,
        "region": memory.region,
        "main": memory.main,
    }


def budgets_of(project: Project, target: str, memories: tuple[TargetMemory, ...] = ()) -> TargetBudgets:
    """Return the budgets of the project's models and firmware for ``target``, whatever models a build selects.

    ``memories`` are those that the target, its models or a budget name; budgets of others are those of other targets.

    ``modules`` is empty in the result: the names of modules are known only when the archives exist.
    """
    names = [memory.name for memory in memories]
    models = {model.name: model.budget.on(names) for model in project.models_on(target)}
    firmware = {spec.name: spec.budget.on(names) for spec in project.firmware.values() if target in spec.targets}
    baseline = project.budget_file.name if project.budget_file else ""
    return TargetBudgets(target, models, firmware, baseline, memories=memories)


def read_budgets(path: Path) -> TargetBudgets:
    """Return the budgets in the file ``path``, as ``TargetBudgets.to_json`` wrote them.

    Sizes are in bytes, times as in ``Budget``. Raises ``InputFileError`` if the file is missing, damaged or of another
    format version, or has a kind of budget that this version of mlfbuild does not know.
    """
    top = Fields(parse_json(read_bytes(path, "file of budgets"), str(path), _REMAKE), str(path), advice=_REMAKE)
    # Any JSON file could be named by mistake, and one without budgets would pass every check.
    if _VERSION_KEY not in top or top.integer(_VERSION_KEY) != _VERSION:
        reason = f"the file has no budgets in format {_VERSION}"
        hint = f"name the {BUDGETS_FILE} of a tree that this version of mlfbuild wrote"
        raise InputFileError("not-a-file-of-budgets", place=path, reason=reason, hint=hint)
    models = top.member("models")
    entries = {name: models.member(name) for name in models.names()}
    firmware = top.member("firmware")
    return TargetBudgets(
        target=top.text("target"),
        models={name: _budget(entry.member("budget")) for name, entry in entries.items()},
        firmware={name: _budget(firmware.member(name)) for name in firmware.names()},
        baseline=top.text("baseline", default=""),
        modules={module: name for name, entry in entries.items() for module in entry.texts("modules")},
        memories=tuple(map(_memory, top.objects("memories"))) if "memories" in top else (),
    )


def _memory(keys: Fields) -> TargetMemory:
    origin = keys.integer("origin") if "origin" in keys else None
    name, section, region = keys.text("name"), keys.text("section"), keys.text("region")
    return TargetMemory(name, keys.integer("size"), origin, section, region, main=keys.flag("main"))


def _budget(entry: Fields) -> Budget:
    known: Collection[str] = {each.name for each in fields(Budget)}
    unknown: Sequence[str] = [name for name in entry.names() if name not in known]
    # A budget that is not understood must not pass as kept.
    if unknown:  # a later version of mlfbuild has more kinds of budgets
        raise entry.error(unknown[0], "is not a budget that this version of mlfbuild can check")
    memories = entry.member("memories") if "memories" in entry else None
    limits = {name: entry.integer(name) for name in entry.names() if name != "memories"}
    return Budget(**limits, memories={name: memories.integer(name) for name in memories.names()} if memories else {})
