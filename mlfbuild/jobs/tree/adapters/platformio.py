"""Make the files of a library of PlatformIO.

Keys: https://docs.platformio.org/en/latest/manifests/library-json/index.html
"""

from __future__ import annotations

import json
from collections.abc import Iterable

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
    place = f"dependency {dependency.name!r}"
    if dependency.compile_options:
        reason = "has compile-options, but all files of a PlatformIO library have the same flags"
        raise UnsupportedModelError("platformio-needs-same-flags", place=place, reason=reason, hint=_HINT)
    _refuse_spaces(place, (*dependency.sources, *dependency.include_dirs))


def _check(model: ModelFiles) -> None:
    place = f"model {model.name!r}"
    if model.objects:
        reason = "is a compiled object, which a PlatformIO library cannot contain"
        place = f"{place}: {model.objects[0]}"
        raise UnsupportedModelError("objects-in-platformio-library", place=place, reason=reason, hint=_HINT)
    _refuse_spaces(place, (*model.sources, *model.include_dirs))


def _refuse_spaces(owner: str, paths: Iterable[str]) -> None:
    for path in paths:
        if " " in path:
            place = f"{owner}: {path}"
            raise UnsupportedModelError("space-in-platformio-path", place=place, reason=_SPACE, hint=_HINT)
