"""Make the files of a component of ESP-IDF.

Files: https://docs.espressif.com/projects/esp-idf/en/latest/esp32/api-guides/build-system.html and, for the manifest,
https://docs.espressif.com/projects/idf-component-manager/en/latest/reference/manifest_file.html
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from mlfbuild.jobs.tree.adapters.package import Package
from mlfbuild.jobs.tree.build_text import rendered

RESERVED: dict[str, str] = {}


def files(package: Package) -> dict[str, str]:
    """Return the files of the component: path -> text.

    Paths are relative to the folder of the trees, which becomes the component.
    """
    models = package.models
    libraries = package.libraries
    # In SRCS as well: CMake links objects that are listed as sources.
    objects = [path for model in models for path in model.objects]
    sources = [path for library in libraries for path in library.sources]
    public = [library for library in libraries if library.public]
    private = [library for library in libraries if not library.public]
    arguments = [
        ("SRCS", [*(path for model in models for path in model.sources), *sources, *objects]),
        (
            "INCLUDE_DIRS",
            _folders([*(model.include_dirs for model in models), *(each.include_dirs for each in public)]),
        ),
        (
            "PRIV_INCLUDE_DIRS",
            _folders([*(model.private_include_dirs for model in models), *(each.include_dirs for each in private)]),
        ),
    ]
    optioned = [(model.sources, ";".join(model.options)) for model in models if model.options]
    for library in libraries:
        # Semicolons separate the items of a CMake list, and backslashes and quotes must survive CMake's own unquoting.
        options = ";".join(library.options).replace("\\", "\\\\").replace('"', '\\"')
        optioned += [(library.sources, options)] if library.sources else []
    text = rendered("esp-idf/CMakeLists.txt", arguments=arguments, objects=objects, optioned=optioned)
    manifest = rendered("esp-idf/idf_component.yml", version=package.version)
    project = {"project_include.cmake": rendered("esp-idf/project_include.cmake")} if package.budgeted else {}
    return {"CMakeLists.txt": text, "idf_component.yml": manifest, **project}


def _folders(owners: Iterable[Sequence[str]]) -> list[str]:
    return [path for folders in owners for path in folders]
