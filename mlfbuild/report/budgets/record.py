"""The last build of an image that was within its budgets: one JSON file for each kind of budget.

It has two uses: if its state is the present one, nothing has to be checked again; and the message about an exceeded
budget states the difference from what that build took.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from mlfbuild.core import sha256, write_if_changed

Taken = Mapping[str, Mapping[str, int]]
"""Figures by model and measure, which is the key of a budget.

The empty name is the whole image.
"""


@dataclass(frozen=True)
class BudgetRecord:
    """A state and what the build in that state took; empty if there was no such build."""

    path: Path
    state: str = ""
    """Hash of everything that affects sizes and limits."""
    taken: Taken = field(default_factory=dict)

    def before(self, name: str, measure: str) -> int | None:
        """Return what the model ``name`` (empty: the image) took; ``None`` if that is unknown."""
        return self.taken.get(name, {}).get(measure)

    def write(self, state: str, taken: Taken) -> None:
        """Record a build that is within its budgets; raises ``StorageError``."""
        write_if_changed(self.path, json.dumps({"state": state, "taken": taken}, sort_keys=True).encode())


def read_record(path: Path) -> BudgetRecord:
    """Return the record in the file ``path``; an empty one if the file is missing or damaged."""
    try:
        found = json.loads(path.read_bytes())
        taken = {
            str(name): {str(measure): int(size) for measure, size in sizes.items()}
            for name, sizes in found["taken"].items()
        }
        return BudgetRecord(path, str(found["state"]), taken)
    # The record only saves work: without it, everything is checked again.
    except (OSError, ValueError, LookupError, AttributeError, TypeError):
        return BudgetRecord(path)


def state_of(*parts: object) -> str:
    """Return the hash of ``parts``, each of which JSON can express.

    Keys of mappings are sorted, so that the order of a project file does not matter.
    """
    return sha256(json.dumps(parts, sort_keys=True).encode())
