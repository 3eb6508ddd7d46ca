"""One library out of the parts of it that several archives have bundled."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from mlfbuild.core import InputFileError, quoted
from mlfbuild.library import Content
from mlfbuild.requirements.types import Source

_ADVICE = "let the project provide it, or bundle one version of it into both"


def union(parts: Sequence[tuple[str, Source]]) -> Source:
    """Return the library that all of ``parts``, sources with the archive that each is from, are part of.

    Raises ``InputFileError`` where two have different files at one path, or are compiled differently.
    """
    (first_origin, first), *others = parts
    files: dict[str, tuple[str, Content]] = {path: (first_origin, content) for path, content in first.files.items()}
    for origin, source in others:
        if (source.compile_options, source.license) != (first.compile_options, first.license):
            raise InputFileError(
                f"dependency {first.name}: {first_origin} and {origin} have bundled it with different licences or "
                f"compile options; {_ADVICE}"
            )
        for path, content in source.files.items():
            holder, known = files.setdefault(path, (origin, content))
            if known != content:
                raise InputFileError(
                    f"dependency {first.name}: {holder} and {origin} have bundled different {quoted(path)}; {_ADVICE}"
                )
    sources = [source for _, source in parts]
    return replace(
        first,
        files={path: content for path, (_, content) in sorted(files.items())},
        sources=tuple(sorted({path for source in sources for path in source.sources})),
        include_dirs=tuple(dict.fromkeys(folder for source in sources for folder in source.include_dirs)),
        license_files=tuple(sorted({path for source in sources for path in source.license_files})),
        public_headers=any(source.public_headers for source in sources),
    )
