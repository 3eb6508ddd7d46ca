"""Correct the errors of known exporter bugs, if there is one right answer.

Each file is one repair: a function from a library to the repaired library and the list of its repairs, each with the
code of the finding of ``validate`` that it removes. ``storage`` corrects storage ids of graphs, ``io_sizes`` and
``size_macros`` sizes of inputs and outputs, ``declarations`` C that contradicts itself, ``dependencies`` repeated
entries, and ``dates`` local time that is marked as UTC::

    result = repaired(*open_dated_archive(path))
    for repair in result.repairs:
        print(repair.place, repair.before, repair.after)

A date is repaired only if the times of the archive's members prove its time zone. Nothing else is guessed either: other
findings need a decision or another export, and stay as they are.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from mlfbuild.core import lazy_attributes

if TYPE_CHECKING:
    # fmt: off
    from mlfbuild.archive.repair.all_repairs import Repair, RepairedLibrary, repaired
else:
    __getattr__ = lazy_attributes(__name__)
