"""Compare the outputs of two versions of a model on this machine, for the inputs of its vectors."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from mlfbuild.core import CheckFailedError, MlfError, quoted
from mlfbuild.library import Library
from mlfbuild.usecases.update.model_update import OutputDifference
from mlfbuild.verify import Vectors, first_difference, float_tolerance, load_inputs, load_vectors
from mlfbuild.verify.host import Model, load_library

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
            raise CheckFailedError(
                "update-outputs-wrong",
                place=f"{path}: case {wrong[0]}",
                reason=f"the new version has another output {quoted(tensor.name)} (in {len(wrong)} of {cases} cases)",
                hint="write the vectors with the new file",
            )
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
