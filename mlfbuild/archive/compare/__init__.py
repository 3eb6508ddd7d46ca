"""Two libraries by meaning: what one does and needs that the other does not.

Format versions, dates and the text of the program before code generation are told as notes, not as differences, so
that an archive that was converted to another version compares equal with the one it was made from.
"""

from mlfbuild.archive.compare.library import compare
from mlfbuild.archive.compare.text import comparison_text
from mlfbuild.archive.compare.types import Comparison, Difference

__all__ = ["Comparison", "Difference", "compare", "comparison_text"]
