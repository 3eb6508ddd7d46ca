"""The subjects of budgets, models and the whole image, and the last build of an image that was within its budgets.

That build is recorded in one JSON file for each kind of budget. The record has two uses: if its state is the present
one, nothing has to be checked again; and the message about an exceeded budget states the difference from what that
build took.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from mlfbuild.core import sha256, write_if_changed

if TYPE_CHECKING:
    from mlfbuild.jobs import FirmwareJob
    from mlfbuild.report.sizes.memories import MemoryUse
    from mlfbuild.report.sizes.owners import Owner, Sizes


Taken = Mapping[str, Mapping[str, int]]
"""Figures by model and measure, which is the key of a budget.

The empty name is the whole image.
"""


@dataclass(frozen=True)
class BudgetRecord:
    """A state and what the build in that state took; empty if there was no such build."""

    path: Path
    state: str = ""
    """The present state: a hash of everything that affects sizes and limits."""
    taken: Taken = field(default_factory=dict)
    current: bool = False
    """Whether the build was in the present state, so that nothing has to be checked again."""

    def before(self, name: str, measure: str) -> int | None:
        """Return what the model ``name`` (empty: the image) took; ``None`` if that is unknown."""
        return self.taken.get(name, {}).get(measure)

    def write(self, taken: Taken) -> None:
        """Record a build in the present state that is within its budgets; raises ``StorageError``."""
        write_if_changed(self.path, json.dumps({"state": self.state, "taken": taken}, sort_keys=True).encode())


def image_record(job: FirmwareJob, kind: str, *parts: object) -> BudgetRecord:
    """Return the record of one ``kind`` of checks of the job's image: ``sizes``, ``stack`` or ``link``.

    ``parts`` is what the result depends on besides the image. Raises ``OSError`` if there is no image.
    """
    # The time of the image, not its hash: hashing takes as long as reading its symbols. A touch only repeats the check.
    linked = job.elf.stat()
    return read_record(job.build / f".mlfbuild-{kind}.json", state_of(linked.st_mtime_ns, linked.st_size, *parts))


def read_record(path: Path, state: str = "") -> BudgetRecord:
    """Return the record in the file ``path``; an empty one if the file is missing or damaged.

    ``state`` is the present state, by ``state_of``. Without it, the record is only read for what the build took.
    """
    try:
        found = json.loads(path.read_bytes())
        taken = {
            str(name): {str(measure): int(size) for measure, size in sizes.items()}
            for name, sizes in found["taken"].items()
        }
        return BudgetRecord(path, state, taken, current=found["state"] == state)
    # The record only saves work: without it, everything is checked again.
    except (OSError, ValueError, LookupError, AttributeError, TypeError):
        return BudgetRecord(path, state)


def state_of(*parts: object) -> str:
    """Return the hash of ``parts``, each of which JSON can express.

    Keys of mappings are sorted, so that the order of a project file does not matter.
    """
    return sha256(json.dumps(parts, sort_keys=True).encode())


_SHOWN = 3
"""Largest parts that a message names."""
MEMORIES = {"flash": "flash", "ram": "RAM"}
"""The keys of memories, each with its name in sentences."""


@dataclass(frozen=True)
class BudgetSubject:
    """A model or the whole image."""

    name: str
    """The model's name; empty for the image."""
    owners: Sequence[Owner]
    """The owners whose bytes count."""

    @property
    def title(self) -> str:
        """The name that messages use."""
        return f"model {self.name}" if self.name else "the image"

    def bytes_of(self, memory: str) -> int:
        """Return the bytes of one of the ``MEMORIES``."""
        return sum(getattr(owner, memory) for owner in self.owners)

    def largest(self, memory: str) -> str:
        """Return the largest pieces of a model, or the largest owners of an image, with their bytes."""
        if self.name:
            pieces = [piece for owner in self.owners for piece in owner.largest(_SHOWN, ram=memory == "ram")]
            return ", ".join(f"{piece.name} {piece.size:,} ({piece.kind})" for piece in pieces)
        return largest([(owner.name, getattr(owner, memory)) for owner in self.owners])


def subjects_of(sizes: Sizes) -> list[BudgetSubject]:
    """Return each model and the whole image."""
    models = [BudgetSubject(owner.name, [owner]) for owner in sizes.models]
    return [*models, BudgetSubject("", [*sizes.models, *sizes.others])]


def taken_by(sizes: Sizes, uses: Sequence[MemoryUse] = ()) -> Taken:
    """Return the flash and RAM of each model and of the whole image, and what they take of the memories in ``uses``."""
    return {
        subject.name: {
            **{use.name: use.bytes_of(subject.name) for use in uses if not use.problem},
            **{memory: subject.bytes_of(memory) for memory in MEMORIES},
        }
        for subject in subjects_of(sizes)
    }


def largest(numbers: Sequence[tuple[str, int]]) -> str:
    """Return the names of the largest ``numbers``, each with its number."""
    ordered = sorted(numbers, key=lambda item: -item[1])[:_SHOWN]
    return ", ".join(f"{name} {number:,}" for name, number in ordered)


def since_last(now: int, before: int | None, text: Callable[[int], str] = "{:,}".format, fewer: str = "fewer") -> str:
    """Return a clause with the difference from the last build within its budget; empty if that is unknown.

    ``text`` formats the difference; ``fewer`` is the word for a smaller figure.
    """
    if before is None:
        return ""
    if now == before:
        return ", as in the last build: only the budget changed"
    return f", {text(abs(now - before))} {'more' if now > before else fewer} than in the last build within its budget"
