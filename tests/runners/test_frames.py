"""Frames on a serial line, whatever was lost around them."""

import random

import pytest
from hypothesis import given, strategies

from mlfbuild.runners.frames import LARGEST_BODY, Damaged, Receiver, SerialFrame, decode, encode

LARGEST = LARGEST_BODY - 6


@given(strategies.binary(max_size=LARGEST), strategies.integers(0, 255), strategies.integers(1, 40))
def test_a_frame_arrives_in_any_pieces(payload: bytes, sequence: int, piece: int) -> None:
    data = encode("R", sequence, payload)
    assert data[0] == data[-1] == 0
    assert 0 not in data[1:-1]
    assert len(data) == len(payload) + 9
    receiver = Receiver()
    found = [frame for at in range(0, len(data), piece) for frame in receiver.feed(data[at : at + piece])]
    assert found == [SerialFrame("R", sequence, payload)]


def test_the_check_is_that_of_the_catalogue() -> None:
    """CRC-32/ISO-HDLC: the check of ``123456789`` is 0xCBF43926."""
    assert encode("1", ord("2"), b"3456789")[-5:-1] == 0xCBF43926.to_bytes(4, "little")


def test_the_frame_after_damage_is_found() -> None:
    choice = random.Random(22)
    damaged = 0
    for _ in range(300):
        receiver, payload = Receiver(), choice.randbytes(choice.randrange(LARGEST))
        first = bytearray(encode("W", 1, payload))
        for _ in range(choice.randrange(1, 4)):
            at = choice.randrange(len(first))
            if choice.random() < 0.5:
                del first[at]
            else:
                first[at] = choice.randrange(256)
        frames = [got for got in receiver.feed(bytes(first) + encode("G", 2)) if isinstance(got, SerialFrame)]
        assert frames[-1] == SerialFrame("G", 2, b"")
        assert frames[:-1] in ([], [SerialFrame("W", 1, payload)])
        damaged += len(frames) == 1
    assert damaged > 250


@pytest.mark.parametrize("segment", [b"", b"\1", b"\7abcdef", b"\xff" * 255, b"\x02a\x09", encode("G", 1)[1:-2]])
def test_bytes_that_are_no_frame_are_refused(segment: bytes) -> None:
    assert decode(segment) is None


def test_text_between_frames_is_the_console() -> None:
    receiver = Receiver()
    assert receiver.feed(b"one\r\ntwo") == []
    assert receiver.text() == "one\r\n"
    assert receiver.feed(" grüße".encode() + encode("s", 1) + b"after" + encode("g", 2)) == [
        SerialFrame("s", 1, b""),
        SerialFrame("g", 2, b""),
    ]
    assert receiver.text() == "two grüßeafter"
    assert receiver.text() == ""
    assert receiver.feed(b"\x01\x02\xff\0") == [Damaged(b"\x01\x02\xff")]
    assert receiver.text() == ""


def test_bytes_without_an_end_are_not_collected() -> None:
    receiver = Receiver()
    assert (
        sum(len(got.data) for _ in range(100) for got in receiver.feed(b"\xff" * 1000) if isinstance(got, Damaged)) > 0
    )
    assert len(receiver.rest) <= 5000
