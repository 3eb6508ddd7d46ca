"""Command streams are accepted only if every address is inside the regions that generated code passes."""

import contextlib
import random

import pytest
from hypothesis import given, strategies as st

from mlfbuild.core import InputFileError
from mlfbuild.ethos_u import StreamFacts, StreamRegion, check_payload
from support.npu_streams import (
    ACCELERATOR,
    STOP,
    Map,
    convolution,
    payload,
    pooling,
    raw,
    registers_set,
    transfer,
)

HEAD = (0x31504F43, 0x00100001, 0x1807, 0x10066001)


def check(data: bytes, weights: int = 1000, memory: int = 1000, own: int = 1000) -> StreamFacts:
    regions = (
        StreamRegion("weights", weights, writable=False),
        StreamRegion("working memory", memory, writable=True),
        StreamRegion("memory of the NPU", own, writable=True),
    )
    return check_payload(data, regions, ACCELERATOR, "operator 0")


def accepts(data: bytes, **sizes: int) -> StreamFacts | None:
    """Return what a stream does, ``None`` if it is refused as every damaged one is."""
    with contextlib.suppress(InputFileError):
        return check(data, **sizes)
    return None


def refused(data: bytes, reason: str, **sizes: int) -> None:
    with pytest.raises(InputFileError, match=reason) as caught:
        check(data, **sizes)
    assert (caught.value.code, caught.value.exit_code) == ("npu-stream-damaged", 5)
    assert caught.value.place == "operator 0: command stream"


def test_a_convolution_reads_and_writes_up_to_its_last_bytes() -> None:
    stream = payload(*convolution(96, 32))
    facts = check(stream, weights=128, memory=256)
    assert (facts.used, facts.written) == ({0: 128, 1: 256}, {(1, 128, 256)})
    refused(stream, "ofm .* ends at byte 256 of the working memory, which has 255", memory=255)
    refused(stream, "scale ends at byte 128 of the weights, which has 127", weights=127)
    refused(payload(*convolution(96, 32, weight_base=1000)), "weight ends at byte 1096 of the weights")
    refused(payload(*convolution(96, 32, weight1_base=1000, weight1_length=16)), "weight of core 1 ends at byte 1016")
    refused(payload(*convolution(96, 32, ifm_base0=1 << 32)), "ifm .* ends at byte 4294967424")


def test_the_input_follows_from_output_kernel_stride_and_padding() -> None:
    rows = {"ofm_height": 1, "kernel_stride": 2}  # two rows, stride 2: 1 * 2 + 3 - 1 - 1 = 3 rows of 32 bytes
    assert check(payload(*convolution(16, 16, **rows, ifm_base0=500))).used[1] == 500 + 3 * 32
    refused(payload(*convolution(16, 16, ofm_height=0, ifm_pad_top=3)), "an input consists of padding only")
    upscaled = pooling(Map.plain(2, 2, 8, 300), Map.plain(4, 4, 8), ifm_upscale=1)
    assert check(payload(*upscaled)).used[1] == 300 + 2 * 2 * 8


def test_only_writable_regions_are_written() -> None:
    refused(payload(*convolution(16, 16, ofm_region=0)), "ofm .* writes the weights, which is read-only")
    refused(payload(*transfer(0, 16, dma_destination_region=0)), "destination of a transfer writes the weights")
    refused(payload(*convolution(16, 16, ifm_region=3)), "is in region 3, and there are 3")


def test_transfers() -> None:
    facts = check(payload(*transfer(900, 100, 16)))
    assert (facts.transfers, facts.used, facts.written) == (1, {0: 1000, 1: 116}, {(1, 16, 128)})
    refused(payload(*transfer(901, 100)), "source of a transfer ends at byte 1001 of the weights")
    refused(payload(*transfer(0, 100, 901)), "destination of a transfer ends at byte 1001")
    internal = {"dma_destination_region": 0x103}
    assert check(payload(*transfer(0, 256, 24 * 1024 - 256, **internal))).used == {0: 256}
    refused(payload(*transfer(0, 256, 24 * 1024 - 255, **internal)), "of 24576 of internal memory")
    refused(payload(*transfer(0, 16, dma_source_region=0x200)), "has rows, which are not checked")
    refused(payload(*transfer(0, 16, dma_source_region=0x100)), "reads internal memory")


def test_elementwise_operations_have_a_second_input() -> None:
    def added(**more: int) -> bytes:
        (*begun, _) = pooling(Map.plain(4, 4, 8), Map.plain(4, 4, 8, 128))
        second = Map.plain(4, 4, 8, 256).registers("ifm2", 1)
        return payload(*begun, *registers_set({**second, "ifm2_broadcast": 0, **more}), (1 << 16 | 6,))

    assert check(added()).used[1] == 384
    assert check(added(ifm2_broadcast=0x83)).used[1] == 256  # a number instead of a tensor
    assert check(added(ifm2_broadcast=7)).used[1] == 257  # one element for all


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"COP", "has 3 bytes"),
        (raw(0x32504F43, 0x00100001), "does not begin with COP1"),
        (payload(config=0x1808), "is not for ethos-u55-128"),
        (payload(config=0x10001807), "is not for ethos-u55-128"),
        (raw(0x31504F43, 5, 5, 5), "has no command stream"),
        (raw(*HEAD, 5, 5, 0x00010002, *STOP), "not aligned to 16 bytes"),
        (raw(*HEAD, 5, 5, 5, 0x00020002, *STOP), "1 words of commands instead of 2"),
        (raw(0x31504F43, 4, 0), "word 1: 0x00000004 is no action"),
        (raw(*HEAD, 5, 5, 5, 0x00010002, 0x0001010F), "the last command is not STOP"),
        (payload(STOP), "STOP is not the last command"),
        (payload((0x00000013,)), "command 0x013 is unknown"),
        (payload((0x00000001,)), "command 0x001 is unknown"),
        (payload((0x0000403F, 0)), "register 0x03f is unknown"),
        (payload((0x00008000,)), "0x00008000 is no command"),
        (payload((0x00000005,)), "register ofm_height is used before it is set"),
        (payload(*pooling(Map.plain(1, 1, 1), Map.plain(1, 1, 1), ofm_precision=0x107)), "elements of an unknown size"),
    ],
)  # fmt: skip
def test_what_is_no_stream_of_vela_is_refused(data: bytes, reason: str) -> None:
    refused(data, reason)


@st.composite
def maps(draw: st.DrawFn, size: tuple[int, int, int]) -> Map:
    """Draw a map of ``size`` in up to four tiles with any strides."""
    height, width, _ = size
    numbers = st.integers(0, 40)
    return Map(
        *size,
        draw(st.integers(1, height + 1)), draw(st.integers(1, height + 1)), draw(st.integers(1, width + 1)),
        draw(st.tuples(numbers, numbers, numbers, numbers)), draw(numbers), draw(numbers), draw(numbers),
        draw(st.booleans()),
    )  # fmt: skip


@given(st.data())
def test_the_extent_of_a_map_is_that_of_its_elements(data: st.DataObject) -> None:
    size = data.draw(st.tuples(st.integers(1, 4), st.integers(1, 4), st.sampled_from([1, 3, 16, 17, 33])))
    source, output = data.draw(maps(size)), data.draw(maps(size))
    stream = payload(*pooling(source, output))
    end = max(source.end(), output.end())
    assert check(stream, memory=end).used == {1: end}
    refused(stream, "of the working memory", memory=end - 1)


def test_flipped_bits_are_refused_or_stay_inside() -> None:
    """Whatever is accepted uses no byte outside of its regions, and is refused if they are one byte smaller."""
    stream = payload(*convolution(96, 32), *transfer(0, 64, 512))
    numbers, accepted = random.Random(1), 0
    for _ in range(3000):
        flipped = bytearray(stream)
        for _ in range(numbers.choice((1, 1, 2, 5))):
            flipped[numbers.randrange(len(stream))] ^= 1 << numbers.randrange(8)
        facts = accepts(bytes(flipped), weights=128, memory=640, own=0)
        if facts is None:
            continue
        accepted += 1
        assert facts.used.get(0, 0) <= 128 and facts.used.get(1, 0) <= 640 and not facts.used.get(2)
        for region, end in facts.used.items():
            sizes = {"weights": 128, "memory": 640, "own": 0}
            refused(bytes(flipped), "of the", **{**sizes, list(sizes)[region]: end - 1})
    assert 300 < accepted < 2700
