"""The sources of a module that TVM wrote with contradicting declarations (``c_analysis.repeated_declarations``)."""

from __future__ import annotations

from collections.abc import Iterator

from mlfbuild.c_analysis import MAX_TEXT, SOURCE_SUFFIXES, RepeatedDeclaration, repeated_declarations
from mlfbuild.core import listed
from mlfbuild.library.value import CodegenFile, Module


def repeated_in(file: CodegenFile) -> tuple[RepeatedDeclaration, ...]:
    """Return the contradicting declarations of ``file``; none if it is no source, or too large to be searched."""
    if file.path.suffix not in SOURCE_SUFFIXES or len(file.content) > MAX_TEXT:
        return ()
    return repeated_declarations(file.data.decode("latin-1"))


def corrected_files(module: Module) -> Iterator[tuple[CodegenFile, tuple[RepeatedDeclaration, ...]]]:
    """Yield each source of ``module`` of which a corrected copy is compiled, with its contradicting declarations."""
    for file in module.codegen if module.executor == "aot" and not module.complete else ():
        repeated = repeated_in(file)
        if repeated:
            yield file, repeated


def corrected_sources(module: Module) -> tuple[str, ...]:
    """Return a sentence for users about each source of ``module`` of which a corrected copy is compiled."""
    return tuple(
        f"{file.path.name}: TVM declares {listed([each.name for each in repeated])} twice with different types; a "
        "corrected copy is compiled, and `mlfbuild convert --repair` corrects the archive"
        for file, repeated in corrected_files(module)
    )
