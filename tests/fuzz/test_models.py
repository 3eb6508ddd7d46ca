"""Thousands of damaged models: each is compiled, or refused quickly with a one-line error, in little memory.

``make fuzz`` tries 100,000, or as many as ten minutes allow; the suite tries a few hundred.
"""

from __future__ import annotations

import random
import resource
import time
from collections import Counter
from pathlib import Path

import pytest

from fuzz.model_mutate import ModelMutator
from fuzz.operations import assert_one_line, no_hang
from mlfbuild.core.errors import InputFileError, UnsupportedModelError
from support.native import compile_bytes
from support.networks import OPERATORS_AND_TYPES, drawn
from support.random_graphs import random_case

FEW = 200
WORKERS = 2
INPUTS = 100_000 // WORKERS
SECONDS = 600
MEMORY = 1 << 20
"""KiB of memory that a damaged model may take in addition to the peak before."""

LONGEST = 5000
"""Maximum characters of a message, which may list all operators."""

CPUS = ("cortex-m0plus", "cortex-m4", "cortex-m55", "host")
MEMORIES = ("smallest", "balanced", "fastest")


def few_models() -> list[bytes]:
    return [random_case(seed, 12).model for seed in range(16)]


def many_models(shared: Path) -> list[bytes]:
    """Return networks of a single operator, of many, and real ones."""
    single = [case.model for operator, dtype in OPERATORS_AND_TYPES for case in drawn(operator, dtype, 2)]
    real = [(shared / "models" / f"{name}.tflite").read_bytes() for name in ("ad_int8", "ic_int8", "kws_int8")]
    return [*single, *few_models(), *real]


def exercise(data: bytes, cpu: str, memory: str) -> str:
    """Compile ``data``; fail if an error is not documented, or longer than a line."""
    with no_hang():
        try:
            compile_bytes(data, "net", cpu, memory)
        except (InputFileError, UnsupportedModelError) as error:
            assert_one_line(error, LONGEST)
            return "refused"
    return "compiled"


def fuzz(models: list[bytes], seed: int, count: int, seconds: float, folder: Path) -> Counter[str]:
    """Try up to ``count`` damaged models for up to ``seconds``; return how many were compiled and refused."""
    end, before = time.monotonic() + seconds, _peak()
    done: Counter[str] = Counter()
    for index in range(seed * 1_000_003, seed * 1_000_003 + count):
        if time.monotonic() > end:
            break
        chance = random.Random(index)
        data = ModelMutator(index).model(chance.choice(models))
        try:
            done[exercise(data, chance.choice(CPUS), chance.choice(MEMORIES))] += 1
        except BaseException:
            kept = folder / f"seed-{index}.tflite"
            kept.write_bytes(data)
            print(f"the model is kept as {kept}")
            raise
    assert _peak() - before < MEMORY
    return done


def _peak() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss


@pytest.mark.parametrize("seed", range(WORKERS))
def test_damaged_models_are_compiled_or_refused(seed: int, tmp_path: Path) -> None:
    done = fuzz(few_models(), seed, FEW, 120, tmp_path)
    assert done["compiled"] > FEW // 10 and done["refused"] > FEW // 10, "the damage is neither too great nor too small"


@pytest.mark.fuzz
@pytest.mark.parametrize("seed", range(100, 100 + WORKERS))
def test_many_damaged_models_are_compiled_or_refused(seed: int, shared: Path, tmp_path: Path) -> None:
    print(f"{dict(fuzz(many_models(shared), seed, INPUTS, SECONDS, tmp_path))}")
