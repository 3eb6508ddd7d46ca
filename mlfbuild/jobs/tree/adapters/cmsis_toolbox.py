"""Make the software layer of a project of CMSIS-Toolbox: a group of files for each model.

Keys: https://github.com/Open-CMSIS-Pack/cmsis-toolbox/blob/main/docs/YML-Input-Format.md
"""

from __future__ import annotations

from mlfbuild.jobs.tree.adapters.package import DESCRIPTION, NAME, NOTICE, Package
from mlfbuild.jobs.tree.build_text import rendered

RESERVED: dict[str, str] = {}

_LEVELS = {"-O2": "balanced", "-Os": "size", "-O3": "speed"}
"""The names of csolution for the levels of GCC; its other compilers also have levels of these names."""


def files(package: Package) -> dict[str, str]:
    """Return the files of the layer: path -> text."""
    public = [library for library in package.libraries if library.public]
    folders = [path for model in package.models for path in model.include_dirs]
    folders += [path for library in public for path in library.include_dirs]
    text = rendered(
        "cmsis-toolbox/layer.yml",
        notice=NOTICE,
        description=DESCRIPTION,
        package=package,
        folders=list(dict.fromkeys(folders)),
        libraries=[library for library in package.libraries if library.sources],
        levels=_LEVELS,
    )
    return {f"{NAME}.clayer.yml": text}
