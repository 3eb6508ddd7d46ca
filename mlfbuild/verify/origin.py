"""Where the expected outputs of a vectors file come from: a note of mlfbuild in the file, which other readers ignore.

``mlfbuild vectors`` and ``mlfbuild init`` write it as JSON into the comment of the ``.npz`` file, which is a ZIP
archive::

    {"mlfbuild_vectors": 1, "judge": "TensorFlow Lite Micro 0.1.2", "checked": true, "seed": 0,
     "model": "<SHA-256 of the model's files>", "arrays": "<SHA-256 of the arrays>"}

``numpy.savez`` writes no comment, and arrays that were changed have another hash: such a file is the user's own, which
mlfbuild never replaces.
"""

from __future__ import annotations

import hashlib
import io
import json
import zipfile
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from mlfbuild.core import MlfError
from mlfbuild.verify.vectors import NOTE as _FORMAT, read_arrays

Array = npt.NDArray[Any]


@dataclass(frozen=True)
class VectorsOrigin:
    """What computed the outputs of a vectors file, from which model and inputs."""

    judge: str
    """Name and version of the implementation."""
    checked: bool
    """Whether it is another implementation than mlfbuild's own."""
    seed: int | None
    """Seed of the random inputs; ``None`` for data of the user."""
    model: str
    """SHA-256 of the model's files, the ``model_id`` of archives."""
    arrays: str = ""
    """SHA-256 of names, types, shapes and bytes of the arrays."""


def vectors_file(inputs: Sequence[Array], outputs: Sequence[Array], origin: VectorsOrigin) -> bytes:
    """Return the bytes of a vectors file (``.npz``) with ``origin``; same arrays, same bytes.

    The first axis of each array counts cases. ``in0``, ``in1``, ... and ``out0``, ... are their names in the file; the
    hash of the arrays is added to the origin.
    """
    arrays = {f"in{index}": array for index, array in enumerate(inputs)}
    arrays |= {f"out{index}": array for index, array in enumerate(outputs)}
    file = io.BytesIO()
    np.savez(file, **arrays)  # type: ignore[arg-type]  # numpy's stubs take a name for the option allow_pickle
    # In the comment, because readers would take an additional member for an array.
    with zipfile.ZipFile(file, "a") as archive:
        # A ZIP comment has at most 65,535 bytes; the note has some hundred bytes.
        noted = {_FORMAT: 1, **asdict(replace(origin, arrays=_digest(arrays)))}
        archive.comment = json.dumps(noted).encode()
    return file.getvalue()


def vectors_origin(path: Path) -> VectorsOrigin | None:
    """Return the origin of the vectors at ``path``, ``None`` if mlfbuild did not write them as they are.

    Raises ``InputFileError`` if they cannot be read.
    """
    arrays = read_arrays(path)
    with zipfile.ZipFile(path) as archive:
        comment = archive.comment
    try:
        fields = json.loads(comment)
        if fields.pop(_FORMAT) != 1:
            return None
        origin = VectorsOrigin(**fields)
    # Any program can write a comment. One of another form is simply not a note of mlfbuild.
    except (ValueError, AttributeError, KeyError, TypeError, RecursionError):
        return None
    return origin if origin.arrays == _digest(arrays) else None


def vectors_remarks(path: Path, model: str) -> tuple[str, ...]:
    """Return what a report says about the vectors at ``path`` beside a result for ``model``, the ``model_id``.

    Empty if there is nothing to say, if mlfbuild did not write the file, or if it cannot be read, which the comparison
    itself reports. ``model`` may be empty if it is not known.
    """
    try:
        origin = vectors_origin(path)
    except MlfError:
        return ()
    if origin is None:
        return ()
    remarks = []
    if model and origin.model != model:
        remarks.append(f"{path.name} was computed for another version of the model: run `mlfbuild vectors`")
    if not origin.checked:
        remarks.append(f"no second implementation checked the outputs in {path.name}: mlfbuild computed them itself")
    return tuple(remarks)


def _digest(arrays: Mapping[str, Array]) -> str:
    digest = hashlib.sha256()
    for name in sorted(arrays):
        array = np.ascontiguousarray(arrays[name])
        # ascontiguousarray() makes a vector of a scalar, so the shape is that of the array as it was given.
        digest.update(f"{name} {array.dtype.str} {list(arrays[name].shape)}\n".encode())
        digest.update(array.tobytes())
    return digest.hexdigest()
