"""The mirror of CMSIS-NN's size functions, against the functions themselves: of the stand-in, and of the library."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest
from hypothesis import given, settings, strategies as st

from mlfbuild.compilers.native.cmsis_nn import buffers
from mlfbuild.compilers.native.cmsis_nn.layer import DSP, FEATURES, MVE, PLAIN, Layer
from support.host_c import run

WAYS = {PLAIN: ("plain", ""), DSP: ("dsp", ""), MVE: ("dsp", "_mve")}
"""How the library is asked on this machine, which has no MVE: the build, and the end of its functions' names."""
Built = Mapping[str, ctypes.CDLL]


class Tile(ctypes.Structure):
    _fields_ = [("w", ctypes.c_int32), ("h", ctypes.c_int32)]


class Dims(ctypes.Structure):
    _fields_ = [(name, ctypes.c_int32) for name in "nhwc"]


class ConvParams(ctypes.Structure):
    _fields_ = [("offsets", ctypes.c_int32 * 2), ("stride", Tile), ("padding", Tile), ("dilation", Tile),
                ("activation", ctypes.c_int32 * 2)]  # fmt: skip


class DepthwiseParams(ctypes.Structure):
    _fields_ = [("offsets", ctypes.c_int32 * 2), ("ch_mult", ctypes.c_int32), *ConvParams._fields_[1:]]


def built(checkout: Path, folder: Path) -> Built:
    """The size functions of the library at ``checkout``, built with its plain C and with its code for DSP."""
    sources = sorted((checkout / "Source").rglob("*get_buffer_sizes_s*.c"))
    flags = ["-O1", "-w", "-shared", "-fPIC", "-I", checkout / "Include"]
    found = {}
    for name, macros in (("plain", []), ("dsp", ["-DARM_MATH_DSP"])):
        run(["gcc", *flags, *macros, *sources, "-o", folder / f"{name}.so"])
        found[name] = ctypes.CDLL(str(folder / f"{name}.so"))
    return found


@pytest.fixture(scope="module")
def stub(stub_cmsis_nn_7: Path, tmp_path_factory: pytest.TempPathFactory, tool: Callable[[str], str]) -> Built:
    tool("gcc")
    return built(stub_cmsis_nn_7, tmp_path_factory.mktemp("sizes"))


@pytest.fixture(scope="module")
def real(cmsis_nn_7: Path, tmp_path_factory: pytest.TempPathFactory) -> Built:
    return built(cmsis_nn_7, tmp_path_factory.mktemp("sizes"))


def asked(library: Built, features: str, function: str, *arguments: object) -> int:
    name, end = WAYS[features]
    return int(getattr(library[name], f"arm_{function}_get_buffer_size{end}")(*arguments))


def pairs(least: int, greatest: int) -> st.SearchStrategy[tuple[int, int]]:
    return st.tuples(st.integers(least, greatest), st.integers(least, greatest))


@st.composite
def layers(draw: st.DrawFn, *, depthwise: bool = False) -> Layer:
    """Layers of all kinds; sizes of 1 are frequent, as most cases of the library are about them."""
    filter_ = draw(st.one_of(st.just((1, 1)), st.just((3, 3)), st.integers(1, 9).map(lambda w: (1, w)), pairs(1, 5)))
    height = 1 if filter_[0] == 1 and draw(st.booleans()) else draw(st.integers(1, 20))
    stride, dilation = draw(pairs(1, 4)), draw(st.one_of(st.just((1, 1)), pairs(1, 3)))
    padding = draw(st.one_of(st.just((0, 0)), pairs(0, 3)))
    width, channels = draw(st.integers(1, 40)), draw(st.integers(1, 130))
    output = draw(st.tuples(st.integers(1, 20), st.integers(1, 40)))
    multiplier = draw(st.sampled_from((1, 1, 2, 4)))
    outputs = channels * multiplier if depthwise else draw(st.integers(1, 64))
    batches = draw(st.sampled_from((1, 1, 2)))
    return Layer(batches, (height, width), channels, output, outputs, filter_, stride, padding, dilation)


def sizes_of(layer: Layer, library: Built, features: str, word: str, *, depthwise: bool = False) -> int:
    tiles = [Tile(pair[1], pair[0]) for pair in (layer.stride, layer.padding, layer.dilation)]
    if depthwise:
        params = DepthwiseParams((0, 0), layer.output_channels // layer.channels, *tiles, (-128, 127))
        filter_ = Dims(1, *layer.filter, layer.output_channels)
    else:
        params = ConvParams((0, 0), *tiles, (-128, 127))
        filter_ = Dims(layer.output_channels, *layer.filter, layer.channels)
    image, output = (
        Dims(layer.batches, *layer.image, layer.channels),
        Dims(layer.batches, *layer.output, layer.output_channels),
    )
    return asked(library, features, word, *map(ctypes.byref, (params, image, filter_, output)))


def check_convolution(library: Built, layer: Layer) -> None:
    for features in FEATURES:
        for end, size_of in (("s8", buffers.convolve_s8), ("s16", buffers.convolve_s16)):
            wanted = sizes_of(layer, library, features, f"convolve_wrapper_{end}")
            assert size_of(layer, features) == wanted, (end, features, layer)


def check_depthwise(library: Built, layer: Layer) -> None:
    for features in FEATURES:
        for end, size_of in (("s8", buffers.depthwise_s8), ("s16", buffers.depthwise_s16)):
            wanted = sizes_of(layer, library, features, f"depthwise_conv_wrapper_{end}", depthwise=True)
            assert size_of(layer, features) == wanted, (end, features, layer)


def check_others(library: Built, outputs: int, channels: int) -> None:
    for features in FEATURES:
        matrix = ctypes.byref(Dims(7, 1, 1, outputs))
        assert buffers.sums_of_matrix(outputs, features) == asked(library, features, "fully_connected_s8", matrix)
        pool = Layer(1, (9, 9), channels, (4, 5), channels, (3, 3), (2, 2))
        for end in ("s8", "s16"):
            assert buffers.average_pool(pool, features) == asked(library, features, f"avgpool_{end}", 5, channels)


@given(layers())
@settings(max_examples=300, deadline=None)
def test_convolution_as_the_stand_in(stub: Built, layer: Layer) -> None:
    check_convolution(stub, layer)


@given(layers(depthwise=True))
@settings(max_examples=300, deadline=None)
def test_depthwise_as_the_stand_in(stub: Built, layer: Layer) -> None:
    check_depthwise(stub, layer)


@given(st.integers(1, 1000), st.integers(1, 1000))
@settings(max_examples=50, deadline=None)
def test_others_as_the_stand_in(stub: Built, outputs: int, channels: int) -> None:
    check_others(stub, outputs, channels)


@given(layers())
@settings(max_examples=1000, deadline=None)
def test_convolution_as_the_library(real: Built, layer: Layer) -> None:
    check_convolution(real, layer)


@given(layers(depthwise=True))
@settings(max_examples=1000, deadline=None)
def test_depthwise_as_the_library(real: Built, layer: Layer) -> None:
    check_depthwise(real, layer)


@given(st.integers(1, 1000), st.integers(1, 1000))
@settings(max_examples=200, deadline=None)
def test_others_as_the_library(real: Built, outputs: int, channels: int) -> None:
    check_others(real, outputs, channels)
