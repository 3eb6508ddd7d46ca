"""Quantisation as a step of a build: one file for all targets of a model, made before the archives that need it.

The file is in the build folder, ``build/quantized/<model>.<suffix>``, and is a product like an archive: it has a record
beside it, the cache keeps it, and it is made again when an input changes, or when it was edited or deleted
(``quantized_files``). An archive depends on its bytes only, so that new data that give the same file compile nothing.
Whoever commits the file and names it as ``source`` needs no engine.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from mlfbuild.cache import CacheSettings
from mlfbuild.library.keys import PortNames
from mlfbuild.native import SourceFiles
from mlfbuild.quantization import QuantizeKeys

QUANTIZED_FOLDER = "quantized"
"""The folder of quantised files in the build folder."""


@dataclass(frozen=True)
class QuantizeStep:
    """The quantisation of one model."""

    model: str
    source: Path
    """The float network."""
    keys: QuantizeKeys
    made: Path
    """The quantised file."""
    dims: Mapping[str, int] = field(default_factory=dict)
    names: PortNames = ()
    """Names of inputs by which the data may have them."""
    cache: CacheSettings | None = None
    """The cache of the file. It decides no byte."""

    @property
    def reads(self) -> list[Path]:
        """The files that it is made from: the network with its weights, and the data."""
        from mlfbuild.datasets import data_files  # workers that compile do not need it

        return [self.source, *SourceFiles(self.source).weights.values(), *data_files(self.keys.calibration)]

    @property
    def record(self) -> Path:
        """The file that says how ``made`` came about."""
        return self.made.with_name(f".{self.made.name}.key")

    @property
    def lock(self) -> Path:
        """The lock of the file, in the build folder."""
        return self.made.parents[1] / f".mlfbuild.{QUANTIZED_FOLDER}.{self.model}.lock"

    def settings(self) -> dict[str, Any]:
        """Return everything that decides the file except the content of what it reads, without paths."""
        keys = {name: value for name, value in asdict(self.keys).items() if name != "calibration"}
        data = {**asdict(self.keys.calibration), "source": Path(self.keys.calibration.source).name}
        return {**keys, "data": {name: str(value) for name, value in data.items()}, **self._chosen()}

    def _chosen(self) -> dict[str, Any]:
        names = dict(self.names) if isinstance(self.names, Mapping) else list(self.names)
        return {"dims": dict(self.dims), **({"names": names} if names else {})}
