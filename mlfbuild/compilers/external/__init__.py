"""Find and run the program of an external compiler, and check the archive that it writes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mlfbuild.core import lazy_attributes

if TYPE_CHECKING:
    # fmt: off
    from mlfbuild.compilers.external.run import find_program
else:
    __getattr__ = lazy_attributes(__name__)
