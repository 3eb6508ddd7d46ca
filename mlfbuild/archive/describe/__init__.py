"""What a library holds: ``describe`` as data for programs, ``describe_text`` as a page for people."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mlfbuild.core import lazy_attributes

if TYPE_CHECKING:
    from mlfbuild.archive.describe.facts import describe as describe
    from mlfbuild.archive.describe.text import describe_text as describe_text
else:
    __getattr__ = lazy_attributes(__name__)
