"""Expected errors: their class, code and place."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from mlfbuild.core import MlfError


@contextmanager
def raises(kind: type[MlfError], code: str, place: str | None = None) -> Iterator[pytest.ExceptionInfo[MlfError]]:
    """Check that the block raises an error of this class and code, and that its place ends in ``place``."""
    with pytest.raises(kind) as caught:
        yield caught
    assert (type(caught.value), caught.value.code) == (kind, code)
    if place is not None:
        assert caught.value.place.endswith(place) and bool(caught.value.place) == bool(place), caught.value.place
