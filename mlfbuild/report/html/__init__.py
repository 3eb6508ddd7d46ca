"""Reports as one self-contained HTML page: it needs no network and no other file, and its tables need no script."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mlfbuild.core import lazy_attributes

if TYPE_CHECKING:
    # fmt: off
    from mlfbuild.report.html.document import page
else:
    __getattr__ = lazy_attributes(__name__)
