"""Fixtures of the tests of front ends."""

import pytest


@pytest.fixture
def same_numbers() -> None:
    """Seed numpy's generator, so that a test draws the same numbers regardless of other tests."""
    from support import onnx_checks, onnx_quantized

    onnx_checks.restart()
    onnx_quantized.restart()
