"""Damaged files become a graph or an ``MlfError``, never a traceback."""

import contextlib

import numpy as np
import pytest

from mlfbuild.core.errors import InputFileError, UnsupportedModelError
from mlfbuild.native.frontends.tflite import parse_tflite
from support.examples import swept
from support.subgraph_networks import branch, caller, condition, doubled, loop, step
from support.tflite_builder import Network
from support.wake_word import wake_word


def network() -> bytes:
    """Return a file with twelve operators."""
    random = np.random.default_rng(7)

    def integers(*shape: int) -> np.ndarray:
        return random.integers(-127, 128, shape, dtype=np.int8)

    net = Network()
    x = net.quantize(net.input((1, 8, 8, 2)), 0.05, 3)
    x = net.conv2d(x, integers(4, 3, 3, 2), np.ones(4, np.int32), weight_scales=[0.1] * 4, scale=0.5, padding="SAME")
    x = net.depthwise_conv2d(net.pad(x, [(0, 0), (1, 1), (1, 1), (0, 0)]), integers(1, 3, 3, 4), weight_scales=[0.1],
                             scale=0.5)  # fmt: skip
    x = net.add(net.pool2d("MAX", x, (2, 2)), net.pool2d("AVERAGE", x, (2, 2)), scale=0.7)
    x = net.fully_connected(net.reshape(net.mean(x, [1, 2], scale=0.5), (1, 4)), integers(3, 4), weight_scales=[0.1],
                            scale=0.5)  # fmt: skip
    net.dequantize(net.softmax(x))
    return net.build()


SOUND = network()


def read(data: bytes) -> None:
    """Read ``data``; any exception except ``MlfError`` fails the test."""
    with contextlib.suppress(InputFileError, UnsupportedModelError):
        parse_tflite(data, "net", "net.tflite")


def test_undamaged_network_is_valid() -> None:
    assert len(parse_tflite(SOUND, "net", "net.tflite").nodes) == 12


def test_every_truncation_is_refused() -> None:
    # A flatbuffer is written from its end, so nearly every cut removes the target of an offset.
    for size in range(0, len(SOUND), 7):
        with pytest.raises(InputFileError):
            parse_tflite(SOUND[:size], "net", "net.tflite")


@pytest.mark.sweep
@pytest.mark.parametrize("net", [loop(condition(), step()), branch(None), caller(doubled(2), doubled())],
                         ids=["loop", "branch", "composite"])  # fmt: skip
def test_damaged_files_of_several_subgraphs(net: Network) -> None:
    sound = net.build()
    for position in range(0, len(sound), 3):
        for lie in (0, 1, 2, 0x80, 0xFF):
            read(sound[:position] + bytes([lie]) + sound[position + 1 :])


@pytest.mark.parametrize("lie", [0, 1, 0x7F, 0x80, 0xFF], ids=hex)
def test_every_damaged_byte_is_read_or_refused(lie: int) -> None:
    for position in range(0, len(SOUND), 11 if swept() else 41):
        read(SOUND[:position] + bytes([lie]) + SOUND[position + 1 :])


@pytest.mark.parametrize("lie", [0, 1, 4, 2**16, 2**31 - 1, 2**31, 2**32 - 1], ids=hex)
def test_every_damaged_word_is_read_or_refused(lie: int) -> None:
    word = np.uint32(lie).tobytes()
    for position in range(0, len(SOUND) - 4, 16 if swept() else 52):
        read(SOUND[:position] + word + SOUND[position + 4 :])


@pytest.mark.parametrize("sound", [SOUND, wake_word("int8")], ids=["network", "streaming"])
@pytest.mark.parametrize("seed", range(8))
def test_random_damage(seed: int, sound: bytes) -> None:
    random = np.random.default_rng(seed)
    for _ in range(60):
        data = bytearray(sound)
        for position in random.integers(8, len(data), random.integers(1, 12)):
            data[position] = random.integers(256)
        read(bytes(data))
