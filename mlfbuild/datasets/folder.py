"""Data in a folder: one case in each file, and the files of each class in a folder with its name.

Classes have the numbers 0, 1, ... in the order of their names. Files directly in the folder have no labels.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import numpy as np

from mlfbuild.core import CheckFailedError, InputFileError, UsageError, counted
from mlfbuild.datasets.cases import Array, Batch, fitted
from mlfbuild.datasets.data_keys import AUDIO, IMAGES, DataKeys, case_files
from mlfbuild.library import TensorInfo


class FolderData:
    """The cases of one folder; see ``Dataset``."""

    def __init__(
        self, keys: DataKeys, kind: str, inputs: Sequence[TensorInfo], outputs: Sequence[TensorInfo] = ()
    ) -> None:
        """List the files for a network with one input; none is opened yet.

        Raises ``UsageError`` if the keys do not fit the network, ``InputFileError`` for files that are not cases,
        ``CheckFailedError`` without cases and ``ToolNotFoundError`` without the library for images.
        """
        folder = keys.source
        if len(inputs) != 1 or outputs:
            reason = "a folder has cases for one input, and no expected outputs"
            if not outputs:
                reason = f"a folder has cases for one input, but the network has {counted(len(inputs), 'input')}"
            hint = "write a .npz file, or a function that yields cases"
            raise UsageError("data-folder-unfit", place=folder, reason=reason, hint=hint)
        self._tensor = inputs[0]
        self._files = list(case_files(folder))
        places = {path.parent: None for path in self._files}
        self.classes = tuple(path.name for path in sorted(folder.iterdir()) if path.is_dir() and path.name[0] != ".")
        if not self._files:
            raise CheckFailedError(
                "data-without-cases", place=folder, reason="the folder holds no cases", hint="add at least one file"
            )
        self._check_places(folder, list(places))
        self._check_suffixes(IMAGES if kind == "images" else AUDIO)
        self._numbers = {folder / name: number for number, name in enumerate(self.classes)}
        self._read = _reader(keys, kind, inputs[0])
        self.cases: int | None = len(self._files)

    def batches(self, size: int) -> Iterator[Batch]:
        """Yield all cases, ``size`` at a time; raises ``InputFileError``."""
        for start in range(0, len(self._files), size):
            files = self._files[start : start + size]
            arrays = [fitted(self._read(path)[np.newaxis], self._tensor, str(path)) for path in files]
            labels = np.array([self._numbers[path.parent] for path in files], np.int64) if self.classes else None
            yield Batch((np.concatenate(arrays),), labels)

    def _check_places(self, folder: Path, places: Sequence[Path]) -> None:
        for place in places:
            if place.parent != folder and place != folder:
                raise _layout(place, "the folder is inside that of a class")
        if self.classes and folder in places:
            raise _layout(self._files[0] if self._files[0].parent == folder else folder, "some cases have no class")
        for name in self.classes:
            if folder / name not in places:
                raise _layout(folder / name, "the class has no cases")

    def _check_suffixes(self, known: Sequence[str]) -> None:
        for path in self._files:
            if path.suffix.lower() not in known:
                reason = f"the file is not one of {', '.join(known)}" if len(known) > 1 else "the file is no .wav file"
                hint = "move it out of the folder"
                raise InputFileError("data-file-kind", place=path, reason=reason, hint=hint)


def _layout(place: Path, reason: str) -> InputFileError:
    hint = "give each class one folder with its files, or put all files into one folder"
    return InputFileError("data-folder-layout", place=place, reason=reason, hint=hint)


def _reader(keys: DataKeys, kind: str, tensor: TensorInfo) -> Callable[[Path], Array]:
    if kind == "images":
        from mlfbuild.datasets.images import ImageReader

        return ImageReader(keys, tensor).read
    from mlfbuild.datasets.audio import AudioReader

    return AudioReader(keys, tensor).read
