"""One overview of many images and commits, from reports and baselines that were written before.

**What.** A team has many images, and each build writes a report (``mlfbuild report -o app.json``) or keeps a baseline
(``budget-file``). This room reads all of them, of folders or of each commit of a range, into one table: an image for a
target in a row, with flash, RAM, stack, cycles, the budget that is used most, where its models were verified, and
the hash of the ELF file. It shows which commit changed a figure.

**Data.** ``columns`` declares the columns once: name, unit, and how the value is read from the JSON of an image. The
cache, the text, CSV, JSON, Parquet, the page and the list in the documentation follow from this. ``git_history`` lists
commits and changed files, ``table`` keeps figures by the id of the content, and ``overview`` puts them together as
``Fleet``, ``FleetImage`` and ``Version``, which ``forms`` shows.

**Rules**

1. Nothing is built and nothing is checked out. A figure is what a report says, and the commit of a report is when it
   was verified; reports have no dates, because the same input makes the same bytes.
2. Files are untrusted: reports and baselines are read by the modules that own the formats, with all of their checks.
   A damaged one is listed and does not hide the others. Its images keep their figures until the next good one.
3. A content is parsed once. Its id in Git is a hash, so the table in the cache needs no dates and serves all clones.
   The second overview of a range parses nothing; after a commit, it parses what that commit changed.
4. The history is that of first parents: a merge is one change of the branch, as in ``git log --first-parent``.
5. An image is the same as before if the path of its report, its firmware and its target are. Two reports of one image
   are two rows: which of them is right is not known here.
6. What is unknown stays unknown, and is never shown as 0. A change needs both numbers.

**Example.** A range of two commits, in which the second changes ``app.json``: ``git log --raw`` lists the commit with
the old and the new blob. Both are parsed, and the image has two versions::

    with figure_table() as table:
        fleet = fleet_of_commits("v1.0..HEAD", "**/*.json", table)
    fleet.changes[0].column, fleet.changes[0].before, fleet.changes[0].now   # ("flash", 52488, 56904)

**What it does not do.** It does not follow files that are renamed, does not read reports that are not committed
(``fleet_of_folders`` does), and does not compare functions and operators, which ``mlfbuild report --compare`` does.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from mlfbuild.core import lazy_attributes

if TYPE_CHECKING:
    # fmt: off
    from mlfbuild.report.fleet.columns import COLUMNS
    from mlfbuild.report.fleet.forms import (
        NAMES, PLACE, check_fleet_output, fleet_csv, fleet_json, fleet_markdown, fleet_parquet, fleet_text, write_fleet,
    )
    from mlfbuild.report.fleet.overview import Fleet, FleetImage, Unreadable, fleet_of_commits, fleet_of_folders
    from mlfbuild.report.fleet.table import FigureTable, figure_table
else:
    __getattr__ = lazy_attributes(__name__)
