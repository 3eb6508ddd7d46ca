"""The cases of this project: windows of streams of features, which overlap so much that a file of them would be large.

`mlfbuild.yml` names the two functions; `train_windows.py` cuts its streams in the same way.
"""

from collections.abc import Iterator
from pathlib import Path

import numpy as np

STREAMS = Path(__file__).parent / "streams.npz"
HOPS = 32
"""Of a window, 640 ms."""
CALIBRATION = 4
"""Streams of the file that are for the calibration; the others are the test set."""
_SCALE, _ZERO_POINT = np.float32(666 / 256 / 64), -128
"""Of the features, as `mlfbuild.datasets.FrontEnd` has them."""
_EVERY = 4
"""Of the hops in which nothing is to be reported, one of so many is a case."""

Case = tuple[np.ndarray, int]


def real(features: np.ndarray) -> np.ndarray:
    """Return the numbers for which the int8 of the front end stand."""
    return (features.astype(np.float32) - _ZERO_POINT) * _SCALE


def windows(stream: np.ndarray) -> np.ndarray:
    """Return the windows [windows, hops, features, 1] that end in each hop of a stream, from the first full one on."""
    return np.lib.stride_tricks.sliding_window_view(stream, HOPS, axis=0).transpose(0, 2, 1)[..., np.newaxis]


def chosen(cut: np.ndarray, labels: np.ndarray) -> Iterator[Case]:
    """Yield the windows to judge with their labels: those of words, and a part of those without one."""
    for at, (window, label) in enumerate(zip(cut, labels[HOPS - 1 :], strict=True)):
        if label > 0 or (label == 0 and at % _EVERY == 0):
            yield window, int(label)


def _cases(first: int, last: int | None) -> Iterator[Case]:
    with np.load(STREAMS) as file:
        for stream, labels in zip(file["features"][first:last], file["labels"][first:last], strict=True):
            for window, label in chosen(windows(stream), labels):
                yield real(window), label


def calibration() -> Iterator[Case]:
    """Yield the cases by which ranges are measured."""
    return _cases(0, CALIBRATION)


def test() -> Iterator[Case]:
    """Yield the test set."""
    return _cases(CALIBRATION, None)
