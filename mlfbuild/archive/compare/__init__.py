"""Two libraries by meaning: what one does and needs that the other does not.

Format versions, dates and the text of the program before code generation are told as notes, not as differences, so
that an archive that was converted to another version compares equal with the one it was made from.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from mlfbuild.core import lazy_attributes

if TYPE_CHECKING:
    from mlfbuild.archive.compare.library import compare as compare
    from mlfbuild.archive.compare.text import comparison_text as comparison_text
    from mlfbuild.archive.compare.types import (
        Comparison as Comparison,
        Difference as Difference,
        distinct as distinct,
    )
else:
    __getattr__ = lazy_attributes(__name__)
