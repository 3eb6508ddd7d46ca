"""Data that a function of the user yields, one case after another.

A case is the array of the input, or a tuple: the arrays of all inputs in call order and, after them, the label (an
integer) or the expected outputs. The number of cases is known after the last one.
"""

from __future__ import annotations

import numbers
from collections.abc import Iterator, Sequence
from itertools import islice
from typing import Any

import numpy as np

from mlfbuild.core import CheckFailedError, InputFileError, counted
from mlfbuild.datasets.cases import Array, Batch, fitted
from mlfbuild.datasets.data_keys import DataKeys
from mlfbuild.datasets.functions import user_function
from mlfbuild.library import TensorInfo


class YieldedData:
    """The cases of one function; see ``Dataset``."""

    cases: int | None = None
    classes: tuple[str, ...] = ()

    def __init__(self, keys: DataKeys, inputs: Sequence[TensorInfo], outputs: Sequence[TensorInfo] = ()) -> None:
        """Import the function for a network with these ``inputs``; raises ``UsageError``."""
        self._name, self._inputs, self._outputs = keys.function, tuple(inputs), tuple(outputs)
        self._function = user_function(keys.function, keys.source.parent)

    def batches(self, size: int) -> Iterator[Batch]:
        """Yield all cases, ``size`` at a time; the function is called once. Raises ``InputFileError``."""
        found = self._function()
        if not hasattr(found, "__iter__"):
            raise self._refused("data-not-iterable", f"the function returns {type(found).__name__}, not cases")
        items = enumerate(found)
        cases, labelled = 0, set()
        while chunk := [self._case(number, item) for number, item in islice(items, size)]:
            cases += len(chunk)
            labelled |= {len(case) > len(self._inputs) for case in chunk}
            if len(labelled) > 1:
                raise self._refused("data-labels", "only some of the cases have labels or expected outputs")
            columns = [np.stack(column) for column in zip(*chunk, strict=True)]
            inputs, rest = tuple(columns[: len(self._inputs)]), columns[len(self._inputs) :]
            if rest and not self._outputs:
                yield Batch(inputs, labels=rest[0])
            else:
                yield Batch(inputs, outputs=tuple(rest))
        if not cases:
            reason, hint = "the function yields no cases", "let it yield at least one case"
            raise CheckFailedError("data-without-cases", place=self._name, reason=reason, hint=hint)

    def _case(self, number: int, item: Any) -> list[Array]:
        parts = item if isinstance(item, tuple) else (item,)
        count, where = len(self._inputs), f"{self._name}: case {number}"
        rest = parts[count:]
        labelled = not self._outputs and len(rest) == 1 and isinstance(rest[0], numbers.Integral)
        if (len(rest) not in (0, len(self._outputs)) and not labelled) or len(parts) < count:
            reason = f"case {number} has {counted(len(parts), 'part')}, but the network has {counted(count, 'input')}"
            raise self._refused("data-parts", reason)
        arrays = [fitted(np.asarray(part)[np.newaxis], tensor, where)[0]
                  for part, tensor in zip(parts, self._inputs, strict=False)]  # fmt: skip
        if labelled:
            return [*arrays, np.asarray(rest[0], np.int64)]
        return [*arrays, *(np.asarray(each, np.float32).reshape(-1) for each in rest)]

    def _refused(self, code: str, reason: str) -> InputFileError:
        hint = "yield arrays, or tuples of the inputs and the label"
        return InputFileError(code, place=self._name, reason=reason, hint=hint)
