"""Damaged ONNX networks become a graph or a one-line error, without traceback, huge memory or endless loop."""

import contextlib
import tracemalloc
from collections.abc import Callable
from random import Random

import onnx
import pytest
from onnx import ModelProto

from fuzz.onnx_mutate import DAMAGES, damaged_bytes
from mlfbuild.core.errors import InputFileError, UnsupportedModelError
from mlfbuild.native.frontends.onnx import parse_onnx
from support.classical_networks import CLASSICAL
from support.onnx_networks import EXPORTED, quantized_network

SOUND = (*(make() for make in (*EXPORTED.values(), *CLASSICAL.values())), quantized_network().bytes())


def outcome(data: bytes) -> str:
    try:
        parse_onnx(data, "net", "net.onnx")
    except (InputFileError, UnsupportedModelError) as error:
        return str(error)
    return ""


@pytest.mark.parametrize("damage", DAMAGES, ids=lambda damage: damage.__name__)
def test_networks_with_inconsistent_parts(damage: Callable[[Random, ModelProto], None]) -> None:
    """Every message is one line, and memory is not much larger than for a valid network."""
    random, lines = Random(damage.__name__), set()
    tracemalloc.start()
    for _ in range(30):
        made = onnx.load_from_string(random.choice(SOUND))
        with contextlib.suppress(IndexError):  # the network has no such part
            damage(random, made)
        lines.add(outcome(made.SerializeToString()).count("\n"))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert lines == {0}
    assert peak < 256 << 20


@pytest.mark.parametrize("seed", range(4))
def test_files_with_damaged_bytes(seed: int) -> None:
    random, lines = Random(seed), set()
    for _ in range(40):
        lines.add(outcome(damaged_bytes(random, random.choice(SOUND))).count("\n"))
    assert lines == {0}
