"""An archive that is run alone, with no project around it: what its code needs, it has to bring along itself."""

from __future__ import annotations

from mlfbuild.core import UnsupportedModelError
from mlfbuild.library import Library, Module, wishes
from mlfbuild.requirements.bundle import bundled_sources
from mlfbuild.requirements.types import Source
from mlfbuild.requirements.words import title


def brought_along(library: Library, module: Module, where: str) -> tuple[Source, ...]:
    """Return the libraries that ``module`` of ``library`` needs, all of which its archive ``where`` has to bring.

    Raises ``UnsupportedModelError`` for one that it does not, and ``InputFileError`` as ``bundled_sources``.
    """
    needed = wishes(module)
    if not needed:
        return ()
    brought = bundled_sources(library, where)
    for wish in needed:
        if wish.name not in brought:
            version = f" {wish.version}" if wish.version else ""
            raise UnsupportedModelError(
                f"{where}: module {module.name!r} calls {title(wish.name)}{version}, which is not in the archive; "
                f"build it in a project that has {wish.name} among its dependencies: with 'bundle: true' there, the "
                "archive that it makes brings it along"
            )
    return tuple(brought[wish.name] for wish in needed)
