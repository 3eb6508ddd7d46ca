"""Kernel headers of two versions of mlfbuild in one archive: each module gets a separate folder."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import PurePosixPath

from mlfbuild.archive.merge.parts import MergedModule
from mlfbuild.library import KERNEL_FOLDER, CodegenFile, Content, is_kernel_header, sanitize_name


def with_own_kernels(parts: Sequence[MergedModule]) -> list[MergedModule]:
    """Return ``parts`` so that no kernel header has two contents.

    If two modules have different headers of one name, the folder becomes ``mlfbuild_<module>`` in all modules that have
    it, and their sources include it by that name. Equal headers stay in the folder that the modules share.
    """
    contents: dict[PurePosixPath, Content] = {}
    clashing = {
        file.path.parent
        for part in parts
        for file in _kernels(part)
        if contents.setdefault(file.path, file.content) != file.content
    }
    taken = {path.parent.name for path in contents}
    return [_renamed(part, clashing, taken) for part in parts]


def _kernels(part: MergedModule) -> list[CodegenFile]:
    return [file for file in part.module.codegen if is_kernel_header(file.path)]


def _renamed(part: MergedModule, clashing: set[PurePosixPath], taken: set[str]) -> MergedModule:
    folders = {file.path.parent for file in _kernels(part)} & clashing
    return _moved_to(part, {folder: _new_name(part.module.name, taken) for folder in sorted(folders)})


def with_usual_kernels(part: MergedModule) -> MergedModule:
    """Return ``part``, the only module of an archive, with its kernels in the folder that such archives have."""
    folders = {file.path.parent for file in _kernels(part)}
    own = {folder for folder in folders if folder.name.startswith(f"{KERNEL_FOLDER}_")}
    alone = own == folders and len({folder.parent for folder in own}) == len(own)
    return _moved_to(part, dict.fromkeys(own, KERNEL_FOLDER) if alone else {})


def _moved_to(part: MergedModule, names: Mapping[PurePosixPath, str]) -> MergedModule:
    """Return ``part`` with folders of kernels renamed, and included by the new names."""
    if not names:
        return part

    def edit(text: str) -> str:
        for folder, name in names.items():
            text = re.sub(rf'^(\s*#\s*include\s*"){folder.name}/', rf"\g<1>{name}/", text, flags=re.MULTILINE)
        return text

    return part.with_sources(edit).with_codegen(lambda file: _moved(file, names))


def _new_name(module: str, taken: set[str]) -> str:
    """Return a folder name for ``module`` that is not ``taken``, and take it."""
    first = f"{KERNEL_FOLDER}_{sanitize_name(module).lower()}"
    names = (first, *(f"{first}_{number}" for number in range(2, len(taken) + 3)))
    name = next(name for name in names if name not in taken)
    taken.add(name)
    return name


def _moved(file: CodegenFile, names: Mapping[PurePosixPath, str]) -> CodegenFile:
    name = names.get(file.path.parent)
    return file if name is None else CodegenFile(file.path.parent.with_name(name) / file.path.name, file.content)
