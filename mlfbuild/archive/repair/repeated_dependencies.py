"""External dependencies that a module names more than once."""

from __future__ import annotations

from dataclasses import replace

from mlfbuild.archive.repair.repairs import Repair, key_place, repair, with_each_module
from mlfbuild.library import ExternalDependency, Library, Module


def with_each_dependency_once(library: Library) -> tuple[Library, tuple[Repair, ...]]:
    """Return ``library`` with each external dependency once per module (MLF806)."""

    def correct(module: Module) -> tuple[Module, list[Repair]]:
        repairs: list[Repair] = []
        seen: set[ExternalDependency] = set()
        for index, entry in enumerate(module.external_dependencies):
            if entry in seen:
                place = key_place(library, module, f"external_dependencies[{index}]")
                repairs.append(repair("MLF806", place, f"{entry.short_name}, as before", "removed"))
            seen.add(entry)
        return replace(module, external_dependencies=tuple(dict.fromkeys(module.external_dependencies))), repairs

    return with_each_module(library, correct)
