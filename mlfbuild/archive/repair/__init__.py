"""Correct the errors of known exporter bugs, if there is one right answer.

Damaged files are not repaired here: a reader refuses them, and builds restore unpacked trees (``jobs/tree``).
``all_repairs`` has a function for each bug, from a module to the repaired module and the list of its repairs, each
with the code of the finding of ``validate`` that it removes. They correct storage ids of graphs, sizes of inputs and
outputs, C that contradicts itself, repeated entries of dependencies, and local time that is marked as UTC::

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
