"""Find and run the program of an external compiler, and check the archive that it writes.

``run`` runs the program in a separate process group and ends all of it with the build. ``archive`` reads what it
wrote as an untrusted archive, which must pass ``validate``, and removes the export date, so that the same model gives
the same library again.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from mlfbuild.core import lazy_attributes

if TYPE_CHECKING:
    # fmt: off
    from mlfbuild.compilers.external.run import find_program
else:
    __getattr__ = lazy_attributes(__name__)
