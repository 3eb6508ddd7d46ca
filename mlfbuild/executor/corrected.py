"""The sources of an archive of which mlfbuild compiles a corrected copy."""

from __future__ import annotations

from mlfbuild.c_analysis import MAX_TEXT, SOURCE_SUFFIXES, repeated_declarations
from mlfbuild.core import listed
from mlfbuild.library import Module


def corrected_sources(module: Module) -> tuple[str, ...]:
    """Return a sentence for each source of ``module`` that is not compiled as it is, for a user who builds or runs it.

    ``repeated_declarations`` describes the bug of TVM.
    """
    if module.executor != "aot" or module.complete:
        return ()
    sources = [file for file in module.codegen if file.path.suffix in SOURCE_SUFFIXES and len(file.content) <= MAX_TEXT]
    found = {file.path.name: repeated_declarations(bytes(file.content).decode("latin-1")) for file in sources}
    return tuple(
        f"{name}: TVM declares {listed([each.name for each in repeated])} twice with different types; a corrected copy "
        "is compiled, and `mlfbuild convert --repair` corrects the archive"
        for name, repeated in found.items()
        if repeated
    )
