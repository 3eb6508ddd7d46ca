"""A library of PlatformIO.

Keys: https://docs.platformio.org/en/latest/manifests/library-json/index.html
"""

from __future__ import annotations

import json

from mlfbuild.errors import UnsupportedModelError
from mlfbuild.firmware.adapters.package import DESCRIPTION, NAME, VERSION, ModelFiles, Package

RESERVED: dict[str, str] = {}


def files(package: Package) -> dict[str, str]:
    """Return the files of the library: path -> text.

    Raises ``UnsupportedModelError`` for compiled objects and for names with spaces.
    """
    for model in package.models:
        _check(model)
    folders = [path for model in package.models for path in (*model.include_dirs, *model.private_include_dirs)]
    sources = [path for model in package.models for path in model.sources]
    manifest = {
        "name": NAME,
        "version": VERSION,
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


def _check(model: ModelFiles) -> None:
    if model.objects:
        raise UnsupportedModelError(
            f"model {model.name!r}: holds compiled objects ({model.objects[0]}), which a PlatformIO library cannot; "
            f"leave out --for platformio"
        )
    for path in (*model.sources, *model.include_dirs):
        if " " in path:
            raise UnsupportedModelError(
                f"model {model.name!r}: {path} has a space in its name, which the flags of a PlatformIO library cannot "
                f"hold; leave out --for platformio"
            )
