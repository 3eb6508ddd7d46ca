"""Make the files of a library of PlatformIO.

Keys: https://docs.platformio.org/en/latest/manifests/library-json/index.html
"""

from __future__ import annotations

import json

from mlfbuild.core import UnsupportedModelError, listed
from mlfbuild.jobs.tree.adapters.package import DESCRIPTION, NAME, ModelFiles, Package
from mlfbuild.jobs.tree.build_text import rendered
from mlfbuild.library import ResolvedLibrary

RESERVED: dict[str, str] = {}
_SCRIPT = "mlf_platformio.py"


def files(package: Package) -> dict[str, str]:
    """Return the files of the library: path -> text.

    Raises ``UnsupportedModelError`` for compiled objects, names with spaces and different optimisation levels.
    """
    for model in package.models:
        _check(model)
    for source in package.dependencies:
        _check_dependency(source)
    levels = sorted({model.level for model in package.models if model.sources})
    if len(levels) > 1:
        raise UnsupportedModelError(
            "platformio-needs-same-level",
            place=f"models {listed([model.name for model in package.models if model.sources])}",
            reason="have different optimisation levels, but all files of a PlatformIO library have the same flags",
            hint="give them the same optimize",
        )
    # Flags of a manifest hold for all files of the library, so the models must agree on them.
    options = dict.fromkeys(option for model in package.models for option in model.options)
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
            # Everything is excluded first: PlatformIO otherwise compiles every C file in the folder, also those that
            # are included.
            "srcFilter": ["-<*>", *(f"+<{path}>" for path in sources)],
            "flags": [*(f"-I{folder}" for folder in folders), *options],
            **({"extraScript": _SCRIPT} if package.budgeted else {}),
        },
    }
    check = {_SCRIPT: rendered(f"{_SCRIPT}.txt")} if package.budgeted else {}
    return {"library.json": json.dumps(manifest, indent=2) + "\n", **check}


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
