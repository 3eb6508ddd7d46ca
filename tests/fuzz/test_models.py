"""Thousands of damaged models: each is compiled, or refused quickly with a one-line error, in little memory.

The suite tries a few hundred; ``make fuzz`` tries many more, of all kinds of files (``campaign``).
"""

import random
import resource
import time
from collections import Counter
from pathlib import Path

import pytest

from fuzz.model_mutate import ModelMutator
from fuzz.operations import assert_one_line, no_hang
from fuzz.seeds import few_models
from mlfbuild.core.errors import InputFileError, UnsupportedModelError
from support.examples import first_on_push
from support.native import compile_bytes

FEW = 100
WORKERS = 2
MEMORY = 1 << 20
"""KiB of memory that a damaged model may take in addition to the peak before."""

LONGEST = 5000
"""Maximum characters of a message, which may list all operators."""

CPUS = ("cortex-m0plus", "cortex-m4", "cortex-m55", "host")
MEMORIES = ("smallest", "balanced", "fastest")


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


@pytest.mark.parametrize("seed", first_on_push(range(WORKERS)))
def test_damaged_models_are_compiled_or_refused(seed: int, tmp_path: Path) -> None:
    done = fuzz(few_models(), seed, FEW, 120, tmp_path)
    assert done["compiled"] > FEW // 10 and done["refused"] > FEW // 10, "the damage is neither too great nor too small"
