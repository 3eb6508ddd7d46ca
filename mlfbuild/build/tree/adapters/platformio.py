"""Make the files of a library of PlatformIO.

Keys: https://docs.platformio.org/en/latest/manifests/library-json/index.html
"""

from __future__ import annotations

import json

from mlfbuild.build.tree.adapters.package import DESCRIPTION, NAME, ModelFiles, Package
from mlfbuild.core import UnsupportedModelError
from mlfbuild.library import ResolvedLibrary

RESERVED: dict[str, str] = {}


def files(package: Package) -> dict[str, str]:
    """Return the files of the library: path -> text.

    Raises ``UnsupportedModelError`` for compiled objects and for names with spaces.
    """
    for model in package.models:
        _check(model)
    for source in package.dependencies:
        _check_dependency(source)
    folders = [path for model in package.models for path in (*model.include_dirs, *model.private_include_dirs)]
    folders += [path for library in package.libraries for path in library.include_dirs]
    sources = [path for model in package.models for path in model.sources]
    sources += [path for library in package.libraries for path in library.sources]
    manifest = {
        "name": NAME,
        "version": package.version,
        "description": DESCRIPTION,
        "frameworks": "*",
        "platforms": "*",
        "build": {
            "srcDir": ".",
            "srcFilter": ["-<*>", *(f"+<{path}>" for path in sources)],
            "flags": [f"-I{folder}" for folder in folders],
        },
    }
    return {"library.json": json.dumps(manifest, indent=2) + "\n"}


_SPACE = "has a space in its name, which the flags of a PlatformIO library cannot contain"
_HINT = "remove --for platformio"


def _check_dependency(dependency: ResolvedLibrary) -> None:
    if dependency.compile_options:
        raise UnsupportedModelError(
            "platformio-needs-same-flags",
            place=f"dependency {dependency.name!r}",
            reason="has compile-options, but all files of a PlatformIO library have the same flags",
            hint=_HINT,
        )
    paths = (*dependency.sources, *dependency.include_dirs)
    for path in paths:
        if " " in path:
            raise UnsupportedModelError(
                "space-in-platformio-path",
                place=f"dependency {dependency.name!r}: {path}",
                reason=_SPACE,
                hint=_HINT,
            )


def _check(model: ModelFiles) -> None:
    if model.objects:
        raise UnsupportedModelError(
            "objects-in-platformio-library",
            place=f"model {model.name!r}: {model.objects[0]}",
            reason="is a compiled object, which a PlatformIO library cannot contain",
            hint=_HINT,
        )
    for path in (*model.sources, *model.include_dirs):
        if " " in path:
            raise UnsupportedModelError(
                "space-in-platformio-path",
                place=f"model {model.name!r}: {path}",
                reason=_SPACE,
                hint=_HINT,
            )
