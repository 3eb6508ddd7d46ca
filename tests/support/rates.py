"""How often compiled operators differ from their judge, over a million output values of each operator and type.

A few networks of one operator are drawn, and each runs on thousands of inputs: the whole range of the type, only its
ends, a few neighbouring values, and inputs of a single value. A rounding that goes wrong once in 100,000 values is
invisible in a few vectors. Layers also have networks whose sums are near ties (``near_ties``), because a multiplier
that is off by a bit changes the outputs of small layers too rarely.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from support import near_ties
from support.drawing import Array, Case
from support.host_c import run_many_on_host
from support.native import compile_bytes
from support.networks import LITERT, drawn
from support.oracle import litert_cases, tflite_micro_cases
from support.streaming_networks import STREAMING, drawn_streams

Judge = Callable[[bytes, Sequence[Sequence[Array]]], list[list[Array]]]

VALUES = 1_000_000
NETWORKS = 10

_RUNS_OF_TIES = 10

PARTIAL = ("DIV", "FLOOR_DIV", "FLOOR_MOD", "LOG", "NEG", "RSQRT", "SQRT")
"""Operators whose judge does not define every input: their inputs get only values that were drawn for them."""


@dataclass(frozen=True)
class Rate:
    """The comparison of one operator and type; ``error`` is relative to the greatest value of a network's outputs."""

    operator: str
    dtype: str
    judge: str
    values: int
    differing: int
    error: float

    def __str__(self) -> str:
        error = f", at most {self.error:.1e} of the greatest value" if self.error else ""
        part = f"{self.differing:,} of {self.values:,} output values differ"
        return f"{self.operator} of {self.dtype}: {part} from {self.judge}{error}"


def rate(operator: str, dtype: str, values: int = VALUES, networks: int = NETWORKS) -> Rate:
    """Run ``networks`` of ``operator`` on so many inputs that at least ``values`` output values are compared."""
    judge, name = (
        (litert_cases, "LiteRT") if dtype in LITERT.get(operator, ()) else (tflite_micro_cases, "TensorFlow Lite Micro")
    )
    sized = [(_size(judge, case), case) for case in _drawn(operator, dtype, 3 * networks)]
    sized = sorted(sized, key=lambda pair: -pair[0])[:networks]  # large outputs need few runs
    chosen = [case for size, case in sized if size]
    count = -(-values // sum(size for size, _ in sized))
    random = np.random.default_rng(18)
    runs = [list(_inputs(operator, case, count, random)) for case in chosen]
    if operator in near_ties.OPERATORS and dtype != "float32":
        ties = [near_ties.near_ties(operator, dtype, random) for _ in range(networks)]
        chosen += ties
        runs += [[near_ties.varied(operator, case, random) for _ in range(_RUNS_OF_TIES)] for case in ties]
    libraries = [compile_bytes(case.model, f"net{index}") for index, case in enumerate(chosen)]
    jobs = [
        (library, library.modules[0], inputs) for library, each in zip(libraries, runs, strict=True) for inputs in each
    ]
    got = iter(run_many_on_host(jobs, optimise="-O2", sanitize=False))
    pairs = []
    for case, each in zip(chosen, runs, strict=True):
        expected = judge(case.model, each)
        ours = [next(got) for _ in each]
        pairs += [(_joined(ours, index), _joined(expected, index)) for index in range(len(expected[0]))]
    return Rate(
        operator, dtype, name, sum(right.size for _, right in pairs), sum(_differing(*pair) for pair in pairs),
        max(_error(*pair) for pair in pairs),
    )  # fmt: skip


def _drawn(operator: str, dtype: str, count: int) -> list[Case]:
    """Return networks; one that keeps a state continues from run to run."""
    kind = f"{operator} {dtype}"
    if kind in STREAMING:
        return [Case(stream.model, stream.runs[0]) for stream in drawn_streams(kind, count)]
    return drawn(operator, dtype, count, stretch=2)


def _size(judge: Judge, case: Case) -> int:
    """Return the number of output values; 0 if the judge refuses the network, although TFLite's rules allow it."""
    try:
        return sum(output.size for output in judge(case.model, [case.inputs])[0])
    except RuntimeError:
        return 0


def _inputs(operator: str, case: Case, count: int, random: np.random.Generator) -> Iterator[tuple[Array, ...]]:
    yield case.inputs
    for index in range(1, count):
        yield tuple(_redrawn(operator, value, index, random) for value in case.inputs)


def _redrawn(operator: str, value: Array, index: int, random: np.random.Generator) -> Array:
    if value.dtype == np.bool_:
        return random.integers(0, 2, value.shape).astype(bool)
    if value.dtype == np.float32:
        return _of_the_same(value, random) * random.uniform(0.5, 1.5, value.shape).astype(np.float32)
    if value.dtype.itemsize > 2:  # perhaps positions, of which each column has a range of its own
        return _of_the_same_column(value, random)
    if operator in PARTIAL:
        return _of_the_same(value, random)
    limits = np.iinfo(value.dtype)
    least, greatest, one = int(limits.min), int(limits.max), int(random.integers(limits.min, limits.max + 1))
    kind = index % 6
    if kind == 1:
        return random.choice(np.array([least, greatest], value.dtype), value.shape)
    if kind == 3:
        least, greatest = max(least, one - 3), min(greatest, one + 3)
    elif kind == 5:
        least = greatest = one
    return random.integers(least, greatest + 1, value.shape, value.dtype)


def _of_the_same(value: Array, random: np.random.Generator) -> Array:
    return random.choice(value.reshape(-1), value.shape)


def _of_the_same_column(value: Array, random: np.random.Generator) -> Array:
    rows = value.reshape(-1, value.shape[-1] if value.shape else 1)
    return np.take_along_axis(rows, random.integers(0, len(rows), rows.shape), 0).reshape(value.shape)


def _joined(results: Sequence[Sequence[Array]], index: int) -> Array:
    return np.concatenate([outputs[index].reshape(-1) for outputs in results])


def _differing(got: Array, expected: Array) -> int:
    assert got.dtype == expected.dtype and got.shape == expected.shape
    same = got == expected
    return int((~(same | ((got != got) & (expected != expected)))).sum())


def _error(got: Array, expected: Array) -> float:
    if got.dtype != np.float32 or not _differing(got, expected):
        return 0.0
    return float(np.abs(got - expected).max() / max(1.0, np.abs(expected).max()))
