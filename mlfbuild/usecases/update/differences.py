"""The differences between two versions of a model, and those of their outputs for the inputs of its vectors."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from mlfbuild.core import CheckFailedError, MlfError, quoted
from mlfbuild.library import Library
from mlfbuild.usecases.lock.locking import Locked
from mlfbuild.verify import Vectors, first_difference, float_tolerance, load_inputs, load_vectors
from mlfbuild.verify.host import Model, load_library


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
        """The reason why the file may not be replaced, if there is one.

        It is the first difference of the interface that breaks firmware; ``hint`` of the update is its advice. ``None``
        if the two versions can be exchanged.
        """
        found = next((each for each in self.interface if each.breaking), None)
        if found is None:
            return None
        return CheckFailedError(
            "interface-changed",
            place=f"model {self.model}: {found.port}",
            reason=f"the new file has {found.now}, but firmware was built with {found.before}",
            hint=self.hint,
        )


Array = npt.NDArray[Any]
_SECONDS = 60.0
"""Longest run of a case on this machine."""


def output_differences(
    before: Library, now: Library, vectors: Mapping[str, Path], notes: list[str], *, given: bool
) -> Iterator[OutputDifference]:
    """Yield the differences of outputs on this machine, for the vectors of each module.

    If the vectors are ``given`` for the new version, raises ``CheckFailedError`` if it does not have their outputs.
    """
    if not vectors:
        notes.append("outputs were not compared: the model has no vectors")
    for module, path in vectors.items():
        try:
            old = _loaded(before, "the old version", module)
            new = _loaded(now, "the new version", module)
        except MlfError as error:  # code for another machine, or no compiler here
            notes.append(f"outputs were not compared: {error}")
            continue
        try:
            yield from _compared_outputs(old, new, path, given=given)
        finally:
            old.close()
            new.close()


def _loaded(library: Library, where: str, module: str) -> Model:
    return load_library(library, where, module or None, isolated=True, timeout=_SECONDS)


def _compared_outputs(old: Model, new: Model, path: Path, *, given: bool) -> Iterator[OutputDifference]:
    cases, inputs = load_inputs(path, new)
    expected = _expected(path, new, required=given)
    results = [_run(model, cases, inputs) for model in (old, new)]
    for at, tensor in enumerate(new.outputs):
        pairs = [(one[at].reshape(-1), other[at].reshape(-1)) for one, other in zip(*results, strict=True)]
        differences = [np.abs(one.astype(np.float64) - other.astype(np.float64)) for one, other in pairs]
        wrong = None if expected is None else _wrong(expected, at, [now for _, now in pairs], new)
        # Vectors that came with the new version are its specification. Those of the old version may well differ, which
        # is only reported.
        if given and wrong:
            place, hint = f"{path}: case {wrong[0]}", "write the vectors with the new file"
            reason = f"the new version has another output {quoted(tensor.name)} (in {len(wrong)} of {cases} cases)"
            raise CheckFailedError("update-outputs-wrong", place=place, reason=reason, hint=hint)
        yield OutputDifference(
            tensor.name,
            cases,
            sum(bool(each.any()) for each in differences),
            # NaN has no distance from another number, but its case already counts as different.
            max(float(np.nanmax(each, initial=0)) for each in differences),
            # For a classifier, this is whether the answer is another one, which the largest difference does not show.
            sum(int(one.argmax()) != int(other.argmax()) for one, other in pairs),
            None if wrong is None else cases - len(wrong),
        )


def _wrong(expected: Vectors, output: int, values: Sequence[Array], model: Model) -> list[int]:
    """Return the cases in which an output has other ``values`` than expected."""
    tolerance = float_tolerance(model.layers) if expected.tolerance is None else expected.tolerance
    wanted, bound = expected.outputs[output], model.bound(output)
    return [
        case for case, got in enumerate(values) if first_difference(wanted[case], got, tolerance, bound) is not None
    ]


def _expected(path: Path, model: Model, *, required: bool) -> Vectors | None:
    """Return the vectors with the expected outputs; ``None`` if the file has none, unless they are ``required``."""
    try:
        return load_vectors(path, model)
    except MlfError:
        if required:
            raise
        return None


def _run(model: Model, cases: int, inputs: Sequence[Array]) -> list[list[Array]]:
    """Return the outputs of each case; a network with state keeps it from case to case."""
    results = []
    for case in range(cases):
        values = {
            tensor.name: array[case] if tensor.shape is None else array[case].reshape(tensor.shape)
            for tensor, array in zip(model.inputs, inputs, strict=True)
        }
        results.append(list(model.run(values).values()))
    return results
