"""Tasks of a farm and their results, as values; nothing here imports Dask."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any


@dataclass(frozen=True)
class FarmSettings:
    """The machines that run tasks."""

    scheduler: str = ""
    """Address of Dask's scheduler, such as ``tcp://farm:8786``; empty for a cluster on this machine."""
    workers: int = 1
    """Number of processes of a cluster on this machine."""


@dataclass(frozen=True)
class FarmTask:
    """A function call that another machine can make."""

    key: str
    """The key of its action, 64 hexadecimal digits: tasks with the same make the same outputs."""
    title: str
    """Its name in messages, such as ``compile kws for m4``."""
    function: str
    """``module:name`` of ``function(argument)``, which returns output name -> bytes."""
    argument: Any
    """Its paths are those of files and folders on the worker when it arrives (``paths``)."""
    root: Path
    """The folder of the project."""
    files: Sequence[Path]
    """The files of this machine that the function reads, except mlfbuild's own."""
    resources: Mapping[str, int] = field(default_factory=dict)
    """The resources of a worker that it needs while it runs, such as ``board:nucleo-f446re`` -> 1."""


@dataclass(frozen=True)
class FarmResult:
    """The result of a worker; the bytes match their digests."""

    outputs: Mapping[str, bytes]
    worker: str
    """Address of the worker."""
    seconds: float
    """Time of the call on the worker."""
