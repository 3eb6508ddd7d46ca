"""Reports as one HTML page that needs nothing else: no network, no other file, and no script to show its tables."""

from __future__ import annotations

from mlfbuild.report.html.document import page

__all__ = ["page"]
