"""The files of a model: the model file, and those beside it that hold weights.

Builds with nothing to do read only their names and hashes, so that this module must not import numpy.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from mlfbuild.core import read_bytes, sha256

_WITH_WEIGHT_FILES = ".onnx"


@dataclass(frozen=True)
class NetworkFiles:
    """The content of a model file and of the files with its weights, read once."""

    path: Path
    data: bytes
    weights: Mapping[str, bytes] = field(default_factory=dict)
    """By the name in the model, which is relative to its folder."""

    @property
    def size(self) -> int:
        """The number of bytes of all files."""
        return len(self.data) + sum(map(len, self.weights.values()))

    @property
    def identity(self) -> str:
        """The SHA-256 of the model file or, if it has weights in other files, of the hashes of all files."""
        own = sha256(self.data)
        lines = (f"{name}\0{sha256(content)}\n".encode() for name, content in self.weights.items())
        return sha256([own.encode(), *lines]) if self.weights else own


@dataclass(frozen=True)
class SourceFiles:
    """A model file and the files with its weights, which are not read yet."""

    path: Path

    @property
    def weights(self) -> dict[str, Path]:
        """The files with weights by the names in the model; raises ``InputFileError``.

        A model that cannot be read has none; compiling it reports why.
        """
        has_some = self.path.suffix.lower() == _WITH_WEIGHT_FILES and self.path.is_file()
        return _weights(self.path, read_bytes(self.path, "model")) if has_some else {}

    def read(self) -> NetworkFiles:
        """Read all files; raises ``InputFileError``."""
        data = read_bytes(self.path, "model")
        weights = {name: read_bytes(file, "weights") for name, file in _weights(self.path, data).items()}
        return NetworkFiles(self.path, data, weights)


def _weights(path: Path, data: bytes) -> dict[str, Path]:
    if path.suffix.lower() != _WITH_WEIGHT_FILES:
        return {}
    from mlfbuild.native.frontends.onnx.weights import locations, weight_file

    return {name: weight_file(path, name) for name in locations(data)}
