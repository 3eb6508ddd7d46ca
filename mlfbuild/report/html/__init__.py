"""Reports as one HTML page that needs nothing else: no network, no other file, and no script to show its tables."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mlfbuild.core import lazy_attributes

if TYPE_CHECKING:
    from mlfbuild.report.html.document import page as page
else:
    __getattr__ = lazy_attributes(__name__)
