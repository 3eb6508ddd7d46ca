"""What tests of ONNX networks share."""

from __future__ import annotations

import pytest


@pytest.fixture
def same_numbers() -> None:
    """A test draws the same numbers, whichever tests run before it."""
    from support import onnx_checks, onnx_quantized

    onnx_checks.restart()
    onnx_quantized.restart()
