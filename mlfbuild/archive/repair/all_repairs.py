"""Apply all repairs."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TypeAlias

from mlfbuild.archive.repair.dates import DateInDoubt, dates_in_doubt, with_dates_in_utc
from mlfbuild.archive.repair.declarations import with_one_declaration
from mlfbuild.archive.repair.io_sizes import with_true_io_sizes
from mlfbuild.archive.repair.repairs import Repair
from mlfbuild.archive.repair.repeated_dependencies import with_each_dependency_once
from mlfbuild.archive.repair.size_macros import with_true_size_macros
from mlfbuild.archive.repair.storage import with_true_storage
from mlfbuild.library import Library

_Repairer: TypeAlias = Callable[[Library], tuple[Library, tuple[Repair, ...]]]

_REPAIRERS: tuple[_Repairer, ...] = (
    with_true_storage, with_true_io_sizes, with_true_size_macros, with_one_declaration, with_each_dependency_once,
)  # fmt: skip


@dataclass(frozen=True)
class RepairedLibrary:
    """A repaired library, the repairs in order, and the dates whose time zone is unknown."""

    library: Library
    repairs: tuple[Repair, ...]
    in_doubt: tuple[DateInDoubt, ...]


def repaired(library: Library, times: Mapping[str, int]) -> RepairedLibrary:
    """Return ``library`` with every repair that applies; ``times`` are those of the archive's members by path.

    Times are seconds since 1970. Native libraries need no repair.
    """
    repairs: tuple[Repair, ...] = ()
    in_doubt = dates_in_doubt(library, times)
    for repairer in _REPAIRERS:
        library, found = repairer(library)
        repairs += found
    library, found = with_dates_in_utc(library, times)
    return RepairedLibrary(library, repairs + found, in_doubt)
