"""The differences between two versions of a model."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from mlfbuild.core import CheckFailedError
from mlfbuild.usecases.lock.locking import Locked


@dataclass(frozen=True)
class UpdatedFigure:
    """A number of both versions on a target; ``None`` if it is unknown."""

    target: str
    name: str
    before: int | None
    now: int | None


@dataclass(frozen=True)
class PortDifference:
    """A difference of the interface; firmware must be changed if it is ``breaking``."""

    port: str
    """An input or output, or a whole side: ``input mfcc``, ``outputs``."""
    before: str
    now: str
    breaking: bool


@dataclass(frozen=True)
class OutputDifference:
    """The differences between the two versions in one output, for the inputs of the vectors."""

    name: str
    cases: int
    different: int
    """Cases with at least one other element."""
    largest: float
    """The largest difference of two elements."""
    decisions: int
    """Cases with another greatest element."""
    expected: int | None
    """Cases in which the new version has the outputs of the vectors; ``None`` if they have none."""


@dataclass(frozen=True)
class ModelUpdate:
    """The differences between the two versions of a model, and what was written."""

    model: str
    source: Path
    interface: tuple[PortDifference, ...]
    same_header: bool
    """Whether the header is equal on all targets, so that no source of the firmware is compiled again."""
    figures: tuple[UpdatedFigure, ...]
    outputs: tuple[OutputDifference, ...]
    notes: tuple[str, ...]
    """Comparisons that were not made, and vectors that stay, with the reasons."""
    hint: str = ""
    """The next step if the interface differs."""
    renewable: bool = False
    """Whether mlfbuild computed the vectors, so that replacing the file computes them again."""
    written: tuple[Path, ...] = ()
    locked: Locked | None = None

    @property
    def problem(self) -> CheckFailedError | None:
        """The reason why the file may not be replaced, if there is one."""
        found = next((each for each in self.interface if each.breaking), None)
        if found is None:
            return None
        return CheckFailedError(
            "interface-changed",
            place=f"model {self.model}: {found.port}",
            reason=f"the new file has {found.now}, but firmware was built with {found.before}",
            hint=self.hint,
        )
