"""Make the files of a library of Arduino.

Arduino compiles all sources in the folder ``src`` and searches only this folder for headers. So ``src`` has a file for
each source and each header of the trees, which includes it.

Fields and folders: https://docs.arduino.cc/arduino-cli/library-specification/
"""

from __future__ import annotations

from mlfbuild.core import UnsupportedModelError
from mlfbuild.jobs.tree.adapters.package import (
    DESCRIPTION,
    NAME,
    NOTICE,
    HeaderFile,
    ModelFiles,
    Package,
    refuse_objects,
    wrappers,
)
from mlfbuild.jobs.tree.build_text import rendered

RESERVED = {"src": "the folder of the library's files has this name"}
FOLDER = "src"

_SYSTEM = "arduino"
# A library cannot have compiler options. GCC's pragma works on all functions that follow, kernels included.
_LEVEL = """\
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC optimize ("{level}")
#endif
"""


def files(package: Package) -> dict[str, str]:
    """Return the files of the library: path -> text.

    Raises ``UnsupportedModelError`` for compiled objects, for external libraries, whose headers the sources would not
    find, and for two headers of one name with different content.
    """
    for model in package.models:
        refuse_objects(_SYSTEM, model)
    for dependency in package.dependencies:
        raise UnsupportedModelError(
            "library-in-arduino-library",
            place=f"dependency {dependency.name!r}",
            reason="is required by a model, and an Arduino library has no include folder for it",
            hint="remove --for arduino, or deliver the model for mlfbuild's own compiler",
        )
    interface = [path for model in package.models for path in model.headers if path.name.startswith("tvmgen_")]
    return {
        "library.properties": rendered(
            "arduino/library.properties",
            notice=NOTICE,
            name=NAME,
            version=package.version,
            description=DESCRIPTION,
            models=package.models,
            cpu=package.cpu,
            includes=list(dict.fromkeys(header.name for header in interface)),
        ),
        **_headers(package),
        **{path: text for model in package.models for path, text in _sources(model).items()},
    }


def _sources(model: ModelFiles) -> dict[str, str]:
    level = _LEVEL.format(level=model.level.removeprefix("-")) if model.level else ""
    return wrappers(FOLDER, model.sources, ".cpp", level)


def _headers(package: Package) -> dict[str, str]:
    found: dict[str, HeaderFile] = {}
    for model in package.models:
        for header in model.headers:
            first = found.setdefault(header.name, header)
            if first.sha256 != header.sha256:
                raise UnsupportedModelError(
                    "header-clash-in-arduino-library",
                    place=f"model {model.name!r}: {header.path}",
                    reason=f"differs from {first.path}, and an Arduino library has one include folder for all models",
                    hint="remove --for arduino, or write a tree for each of the models",
                )
    return {
        f"{FOLDER}/{name}": f'/* {NOTICE} */\n#include "{"../" * (name.count("/") + 1)}{header.path}"\n'
        for name, header in found.items()
    }
