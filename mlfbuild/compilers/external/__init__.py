"""Shared by compilers that run another program: find it, run it, read and check the archive that it writes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mlfbuild.core import lazy_attributes

if TYPE_CHECKING:
    from mlfbuild.compilers.external.find import find_program as find_program
else:
    __getattr__ = lazy_attributes(__name__)
