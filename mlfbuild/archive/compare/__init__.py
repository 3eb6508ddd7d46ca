"""Compare two libraries by meaning: interfaces, memory, operators, graphs, parameters, code and requirements.

``library`` pairs modules by name, compares their parts, and prints the result. ``arrays`` compares tensors and
parameters, ``graphs`` graphs of TVM, ``networks`` those of model files, and ``library_difference`` has the types of the
result::

    comparison = compare(open_archive(old), open_archive(new))
    print(comparison_text(comparison, "old.tar", "new.tar"))

Format versions, dates and the text of the program before code generation become notes instead of differences, so an
archive that was converted to another version equals its original. Numbers that the models compute are not compared.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from mlfbuild.core import lazy_attributes

if TYPE_CHECKING:
    # fmt: off
    from mlfbuild.archive.compare.library import compare, comparison_text
    from mlfbuild.archive.compare.library_difference import LibraryComparison, LibraryDifference, distinct
    from mlfbuild.archive.compare.networks import network_differences
else:
    __getattr__ = lazy_attributes(__name__)
