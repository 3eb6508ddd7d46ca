"""Reports as one self-contained HTML page: it needs no network and no other file, and its tables need no script.

The page may be attached to a mail or kept as an artifact of CI, so nothing in it may depend on a server. ``page`` makes
it from the JSON of a report, and of a second one to compare with, never from images.

Data: ``views`` turns the JSON into ``ImageView`` and ``OverviewRow``, frozen classes whose texts are ready to be shown;
``model_view``, ``operators`` and ``owners`` do the same for parts of an image. ``graph``, ``layers``
and ``nodes`` compute the drawing of a network, ``timeline`` that of its memory, ``arenas`` what several memories are
worth. ``templates`` has the HTML, ``style`` and ``script`` the files that ``document`` puts into the page. ``fleet``
makes the other page, that of many images over time, by the same rules.

Rules

  1. Python computes, templates place. A template has no arithmetic beyond the filters of ``numbers``.
  2. Names in a report come from models and archives of others. All texts are escaped, data for the script is JSON
     without ``<``, ``>`` and ``&``, and the Content-Security-Policy allows only our style and script, by their hashes.
     Therefore no element has a ``style`` attribute: lengths of bars are the classes ``b1`` to ``b100``.
  3. The same reports make the same page: it has no date and no random key.
  4. Without the script, all tables and drawings are there. The script sorts, selects, and draws the treemap.
  5. Drawings have coordinates from Python: in pixels for a network, which the page flows in columns, and in per cent
     for memory, so that it fits every width.
  6. An unknown number is a dash and not 0, and a sum is shown only if all of its parts are known: a report without runs
     must not look as if all instructions were saved.

For example, a report has the image ``app`` for ``m55`` with one model. ``views`` returns one ``ImageView`` with the key
``image-0``; ``page.html`` writes its chapter, and the row of the overview links to it. A treemap needs a nested list of
sizes, which is in ``ImageView.trees`` and reaches the script as JSON in the page, by the same key.

Not here: reading and checking a report (``report/document``), and the decision what counts as a difference
(``report/document/compare``).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from mlfbuild.core import lazy_attributes

if TYPE_CHECKING:
    # fmt: off
    from mlfbuild.report.html.document import page
    from mlfbuild.report.html.explore import exploration_page
    from mlfbuild.report.html.fleet import fleet_page
else:
    __getattr__ = lazy_attributes(__name__)
