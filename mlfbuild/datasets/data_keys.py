"""The keys of a project file that say where data come from, and how files become inputs of a network."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

from mlfbuild.core import Mistake, listed
from mlfbuild.core.keys import NOT_EMPTY, Convert, Duration, Frequency, Keys, ProjectPath, Rule, TextOr, one_of

_NUMBERS = {"anyOf": [{"type": "number"}, {"type": "array", "items": {"type": "number"}, "minItems": 1}]}


def _as_list(value: Any) -> Any:
    return [value] if isinstance(value, (int, float)) else value


def _two(value: tuple[int, ...]) -> Mistake | None:
    if len(value) == 2 and min(value) > 0:
        return None
    return Mistake("data-resize", reason="is not a height and a width in pixels", hint="write them like [96, 96]")


PerChannel = Annotated[tuple[float, ...], Convert(_as_list, _NUMBERS, before=True)]
"""A number, or one for each channel."""
FEATURES = ("log-mel", "mfcc")


@dataclass(frozen=True)
class DataKeys(Keys):
    """Cases for calibration or evaluation."""

    TITLE = "data"

    source: ProjectPath
    """A .npz file with in0 or in_<name>, and labels or out0; a folder of images or .wav files, with a folder for each
    class; or a function that yields cases: data/test.npz, data/words, tools/cases:test"""
    files: Annotated[tuple[ProjectPath, ...], NOT_EMPTY] = ()
    """Files and folders that the function reads besides its own module; the data change when these change."""
    resize: Annotated[tuple[int, ...], Rule(_two, {"minItems": 2, "maxItems": 2})] = ()
    """Height and width that images are resized to, bilinear, without a crop: [96, 96]. Default: they must fit."""
    mean: PerChannel = ()
    """Mean, subtracted first, of pixels (0 to 255), samples (-1 to 1) or features, or one for each channel: 127.5"""
    std: PerChannel = ()
    """Standard deviation, by which the differences are divided, or one for each channel: 127.5"""
    rate: Frequency | None = None
    """Sampling rate of .wav files, which are mono with 16 bits. Default: 16 kHz."""
    features: Annotated[str, one_of("features", FEATURES)] = ""
    """Features that are computed from samples: log-mel or mfcc. Default: the samples."""
    window: Duration | None = None
    """Length of the window of one row of features. Default: 30 ms."""
    hop: Duration | None = None
    """Time from one row of features to the next. Default: 20 ms."""

    @property
    def function(self) -> str:
        """The name of the function that ``source`` is: its last part has a colon. Otherwise an empty text."""
        return self.source.name if ":" in self.source.name and not self.source.exists() else ""


DATA = Annotated[DataKeys, TextOr(ProjectPath, DataKeys, wrap=DataKeys)]
"""The type of a key that has data: the path alone, or a mapping with ``source`` and how to prepare what is there."""

IMAGES = (".bmp", ".jpeg", ".jpg", ".pgm", ".png", ".ppm", ".tif", ".tiff", ".webp")
AUDIO = (".wav",)
_KINDS = {
    "function": ("a function", ("files",)),
    "npz": ("a .npz file", ()),
    "images": ("images", ("resize", "mean", "std")),
    "audio": (".wav files", ("mean", "std", "rate", "features", "window", "hop")),
}
"""The description of each kind, and the keys that it honours."""


def data_kind(keys: DataKeys) -> str:
    """Return which of the kinds ``function``, ``npz``, ``images`` and ``audio`` the source is; empty for none.

    A folder is of the kind of the first file in it, which is the only one that is looked at.
    """
    if keys.function:
        return "function"
    if not keys.source.is_dir():
        return "npz" if keys.source.suffix.lower() == ".npz" else ""
    first = next(iter(case_files(keys.source)), Path()).suffix.lower()
    return "images" if first in IMAGES else "audio" if first in AUDIO else ""


def case_files(folder: Path) -> Iterator[Path]:
    """Yield all files below ``folder`` in the order of their names; hidden ones are left out."""
    for path in sorted(folder.iterdir()):
        if path.name.startswith("."):
            continue
        if path.is_dir():
            yield from case_files(path)
        else:
            yield path


def data_problems(keys: DataKeys) -> Iterator[tuple[str, Mistake]]:
    """Yield the key and the mistake of each value that has no effect on this kind of data, or cannot be applied."""
    kind = data_kind(keys)
    words, honoured = _KINDS.get(kind, ("", tuple(DataKeys.fields())))
    for name in DataKeys.fields():
        if name not in ("source", *honoured) and getattr(keys, name):
            takers = [text for text, names in _KINDS.values() if name in names]
            reason = f"has no effect on {words}, only on {listed(takers)}"
            yield name, Mistake("data-key-unused", reason=reason, hint="remove it")
    for name in ("window", "hop"):
        if kind == "audio" and getattr(keys, name) and not keys.features:
            reason = "has no effect without features"
            yield name, Mistake("data-key-unused", reason=reason, hint="add features: log-mel, or remove it")
    if 0 in keys.std:
        yield (
            "std",
            Mistake(
                "data-std-zero",
                reason="numbers cannot be divided by 0",
                hint="write the standard deviation, or remove it",
            ),
        )
