"""Networks of thousands of tensors are packed or rejected in a short time."""

import numpy as np
import pytest

from mlfbuild.library.cgen.arena import Buffer, Span, lower_bound, place
from support.steps import ends


def test_too_many_live_buffers_are_rejected_quickly() -> None:
    with pytest.raises(OverflowError, match="5000 tensors are in use at the same time"):
        place([Buffer((Span(16, 0, 1),))] * 5000)


def test_many_short_lived_buffers_are_packed_quickly() -> None:
    """The bound cannot be reached; improving each buffer in turn would take hours."""
    random = np.random.default_rng(3)
    firsts, lives, sizes = random.integers(0, 3000, 3000), random.integers(0, 60, 3000), random.integers(1, 900, 3000)
    spans = [Span(int(s), int(f), int(f + n)) for f, n, s in zip(firsts, lives, sizes, strict=True)]
    buffers = [Buffer((span,)) for span in spans]
    with ends():
        offsets, size = place(buffers)
    assert lower_bound(buffers) <= size == max(at + span.size for at, span in zip(offsets, spans, strict=True))
