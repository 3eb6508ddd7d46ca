"""Checks of errors about model files."""

from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from mlfbuild.core.errors import InputFileError, MlfError, UnsupportedModelError
from mlfbuild.native.frontends.onnx import parse_onnx
from mlfbuild.native.frontends.tflite import parse_tflite

Refusal = tuple[str, ...]
"""The code of an error, its place inside the file, and names or numbers that its reason contains."""


def invalid(place: str, *facts: str) -> Refusal:
    """Return the refusal of an operator that breaks a rule of its kind."""
    return "operator-invalid", place, *facts


def malformed(place: str, *facts: str) -> Refusal:
    """Return the refusal of a damaged TFLite file."""
    return "tflite-malformed", place, *facts


def assert_refused(error: MlfError, code: str, place: str, *facts: str) -> None:
    """Check the fields of an error about a file called ``net``, ``net.tflite`` or ``net.onnx``."""
    file, _, inner = error.place.partition(": ")
    assert (error.code, inner) == (code, place)
    assert file in {"net", "net.tflite", "net.onnx"}
    assert [fact for fact in facts if fact not in error.reason] == [], error.reason
    assert "\n" not in error.message


@contextmanager
def refused(code: str, place: str, *facts: str) -> Iterator[None]:
    """Check that the block raises an error about such a file, of the class that ``code`` has."""
    with pytest.raises(InputFileError if code.endswith("-malformed") else UnsupportedModelError) as caught:
        yield
    assert_refused(caught.value, code, place, *facts)


def assert_onnx_refused(data: bytes, code: str, place: str, *facts: str) -> None:
    with refused(code, place, *facts):
        parse_onnx(data, "net", "net.onnx")


def assert_tflite_refused(data: bytes, code: str, place: str, *facts: str) -> None:
    with refused(code, place, *facts):
        parse_tflite(data, "net", "net.tflite")
