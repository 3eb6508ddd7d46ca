"""Which file of an archive holds what: Model Library Format's layout, version 7.

::

    metadata.json
    codegen/host/{src,include,lib}/...       of all modules, told apart by name: <module>_lib<n>.c, tvmgen_<module>.h
    parameters/<module>.params
    src/<module>.relay
    executor-config/graph/<module>.graph     graph executor only
    runtime/... templates/...                TVM's, of no module
"""

from __future__ import annotations

import re
from pathlib import PurePosixPath

from mlfbuild.archive.epoch import source_datetime
from mlfbuild.library import Content, Library
from mlfbuild.library.metadata import metadata_json
from mlfbuild.library.params import save_params

METADATA = "metadata.json"
CODEGEN = PurePosixPath("codegen")
_CODEGEN_NAME = re.compile(r"(.+)_lib\d+\.\w+")


def archive_files(library: Library) -> dict[str, Content]:
    """Return every file of the archive of ``library``: relative path -> content, sorted by path.

    Raises ``ValueError`` where two modules hold different files under one path: such a library cannot be written.
    """
    files: dict[str, Content] = {}

    def add(path: str, data: Content) -> None:
        if files.setdefault(path, data) != data:
            raise ValueError(f"two files of the library are called {path}")

    shared = [file for module in library.modules for file in module.codegen if not bears_name(file.path, module.name)]
    add(METADATA, metadata_json(library, source_datetime(), shared))
    for module in library.modules:
        for file in module.codegen:
            add(str(CODEGEN / file.path), file.content)
        add(params_path(module.name), save_params(module.params))
        add(source_path(module.name), module.source_text)
        if module.graph_json is not None:
            add(graph_path(module.name), module.graph_json)
    for other in library.other_files:
        add(str(other.path), other.content)
    return dict(sorted(files.items()))


def graph_path(module: str) -> str:
    """Return where the graph of ``module`` lies."""
    return f"executor-config/graph/{module}.graph"


def params_path(module: str) -> str:
    """Return where the parameters of ``module`` lie."""
    return f"parameters/{module}.params"


def source_path(module: str) -> str:
    """Return where the text of ``module``'s program lies."""
    return f"src/{module}.relay"


def bears_name(path: PurePosixPath, module: str) -> bool:
    """Whether the file name alone tells which module the codegen file at ``path`` belongs to."""
    found = _CODEGEN_NAME.fullmatch(path.name)
    return path.name == f"tvmgen_{module.lower()}.h" or (found is not None and found[1] == module)
