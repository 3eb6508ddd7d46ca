"""Links that another machine can make: what travels, and what a worker does with it.

**What travels.** Two bundles: the target's folder with trees and fragments, and the files of the project's folder that
Git lists or that look like sources, without Git all that are visible. Folders of builds and model files stay.

**What a worker may not decide.** It builds as this machine does (``cross_build``), in another folder, and returns the
image with the digests of all that was read: by compilers and Ninja inside and outside of the project, by CMake, and by
the linker. Only a link whose inputs are those of this machine is kept (``links_on_farm``). A link is refused, and made
here, if its outcome may depend on more: if CMake code runs programs, looks for files or reads the environment, if the
build makes more than the image, or if the image has the folder of the worker in it.

Not seen is what a build looks for and does not find: a file outside of the project, or one that Git ignores and that no
compiler would read.
"""

from __future__ import annotations

import io
import json
import os
import re
import tarfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from mlfbuild.archive import EPOCH
from mlfbuild.core import GitReader, MlfError, StorageError, counted, listed, read_bytes, visible_files
from mlfbuild.farm import own_place, place_in_folder, program_versions
from mlfbuild.jobs.actions import hash_of
from mlfbuild.jobs.firmware_build import cross_build
from mlfbuild.jobs.links import link_record, ninja
from mlfbuild.jobs.model_job import FirmwareJob
from mlfbuild.jobs.project_jobs import BUILD_FOLDER
from mlfbuild.jobs.travel import REASON

IMAGE, MAP, PRINTED, FACTS = "image", "image.map", "printed.txt", "facts.json"
"""Outputs of a link, for workers and in the cache; or only ``REASON``."""
ROOT = b"@project@"
"""The project's folder in ``MAP``."""
_DATE = 315532800  # 1980-01-01, as in archives
_LARGEST = 256 << 20
"""Bytes of a bundle; a larger project is linked here."""
_SOURCES = re.compile(
    r"(\.(c|cc|cpp|cxx|h|hh|hpp|hxx|inc|inl|s|asm|ld|lds|cmake|in|a|o|bin)|CMakeLists\.txt)$", re.IGNORECASE
)
"""Ignored files that travel too: those that compilers, linkers and CMake read."""
_BEYOND = re.compile(
    rb"\b(execute_process|exec_program|try_run|add_custom_command|add_custom_target|cmake_host_system_information|"
    rb"find_(?:program|file|path|library|package)|ExternalProject_\w+|FetchContent_\w+|site_name)\s*\(|"
    rb"\b(?:file\s*\(\s*(?:DOWNLOAD|TIMESTAMP|SIZE)|string\s*\(\s*(?:TIMESTAMP|RANDOM))\b|\$ENV\{",
    re.IGNORECASE,
)
"""Commands of CMake that must not run on another machine, because their outcome is not in files that travel."""
_VARIABLES = re.compile(
    rf"(CC|CXX|ASM|CPP|(C|CXX|CPP|ASM|LD)FLAGS|CPATH|(C|CPLUS)_INCLUDE_PATH|LIBRARY_PATH|GCC_EXEC_PREFIX|"
    rf"COMPILER_PATH|CMAKE_\w+|MLFBUILD_\w*(GCC|CLANG)\w*|{EPOCH})"
)
"""Variables of the environment that decide how CMake and compilers build."""
_LOADED = re.compile(rb"^LOAD (/.+)$|(?<!\S)(/[^\s()]+\.(?:a|o|obj))(?=[(:\s])", re.MULTILINE)
"""A file that a linker read, in its map: a line of GNU ld, or a path in that of lld."""
_EXECUTABLE = re.compile(r"^(\S.*): \w+_EXECUTABLE_LINKER", re.MULTILINE)


@dataclass(frozen=True)
class TravellingLink:
    """The link of an image for a worker."""

    job: FirmwareJob
    bundles: tuple[Path, ...]
    variables: Mapping[str, str]
    """The ``build_variables`` of the machine that asks."""
    versions: Mapping[str, str]
    """The ``program_versions`` there."""


def build_variables() -> dict[str, str]:
    """Return the variables of the environment on which builds depend."""
    return {name: value for name, value in sorted(os.environ.items()) if _VARIABLES.fullmatch(name)}


def staying(job: FirmwareJob) -> str:
    """Return why the link of ``job`` is made here, before anything is sent; empty if it may travel."""
    if job.target.toolchain is None:
        return "it is for this machine"
    root = job.root.absolute()
    outside = [path for path in _own_paths(job) if not path.absolute().is_relative_to(root)]
    if outside:
        return f"{outside[0]} is outside of the project's folder"
    return beyond(path for path in _cmake_files(job.cmake) if path.is_file()) if job.cmake else ""


def _own_paths(job: FirmwareJob) -> Iterator[Path]:
    yield from (job.build, job.target.tree, *job.sources, *job.include_dirs, *([job.cmake] if job.cmake else []))
    if job.target.toolchain is not None and own_place(job.target.toolchain) is None:
        yield job.target.toolchain


def _cmake_files(folder: Path) -> Iterator[Path]:
    yield folder / "CMakeLists.txt"
    yield from sorted(folder.glob("*.cmake"))


def beyond(files: Iterable[Path]) -> str:
    """Return which of the CMake ``files`` does what another machine may do in another way; empty if none does."""
    for path in files:
        # Without comments, in which such words mean nothing.
        found = _BEYOND.search(re.sub(rb"(?m)^\s*#.*", b"", read_bytes(path, "CMake file")))
        if found is not None:
            return f"{path.name} has {found.group().rstrip(b' (').decode(errors='replace')}"
    return ""


def project_files(job: FirmwareJob, without: frozenset[Path]) -> list[Path]:
    """Return the files of the project's folder that a build of ``job`` may read, sorted, ``without`` model files."""
    root = job.root.absolute()
    built = {root / BUILD_FOLDER, job.build.absolute().parents[1]}
    found = {
        path
        for path in _listed(root)
        if path not in without and not any(path.is_relative_to(folder) for folder in built) and path.is_file()
    }
    return sorted(found)


def _listed(root: Path) -> Iterator[Path]:
    git = GitReader(root, "--on")
    try:
        known = git.output("ls-files", "-z", "--cached", "--others", "--exclude-standard").split("\0")
        ignored = git.output("ls-files", "-z", "--others", "--ignored", "--exclude-standard").split("\0")
    except MlfError:
        known, ignored = [""], []
    if known == [""]:  # a folder that Git ignores, or that is in no repository
        yield from visible_files(root)
        return
    # Generated sources are often ignored by Git, and compilers read them nevertheless.
    for name in (*known, *(name for name in ignored if _SOURCES.search(name) and "/." not in f"/{name}")):
        path = root / name
        if name and path.is_dir():  # a repository of its own
            yield from visible_files(path)
        elif name:
            yield path


def tree_files_of(job: FirmwareJob) -> list[Path]:
    """Return the files of the target's folder that a build reads, sorted; archives stay."""
    folder = job.target.tree.absolute()
    own = {*folder.glob("*.tar")}
    return sorted(path for path in folder.rglob("*") if path.is_file() and path.name[0] != "." and path not in own)


def bundle(files: Sequence[Path], root: Path) -> bytes | None:
    """Return ``files`` of the project in ``root`` as a tar with the same bytes everywhere; ``None`` if it is too large.

    Raises ``InputFileError``.
    """
    buffer, total = io.BytesIO(), 0
    # The form for names of any length and with any letters.
    with tarfile.open(fileobj=buffer, mode="w", format=tarfile.PAX_FORMAT) as tar:
        for path in files:
            content = read_bytes(path, "input")
            total += len(content)
            if total > _LARGEST:
                return None
            entry = tarfile.TarInfo(place_in_folder(path, root))
            entry.size, entry.mtime, entry.mode = len(content), _DATE, path.stat().st_mode & 0o777
            tar.addfile(entry, io.BytesIO(content))
    return buffer.getvalue()


def unbundle(path: Path, folder: Path) -> None:
    """Write the files of the ``bundle`` at ``path`` below ``folder``."""
    # The digest was checked on arrival, so that names are those that ``bundle`` wrote, and none leads out.
    with tarfile.open(path) as tar:
        for entry in tar:
            place, content = folder / entry.name, tar.extractfile(entry)
            place.parent.mkdir(parents=True, exist_ok=True)
            place.write_bytes(content.read() if content else b"")
            place.chmod(entry.mode)


def link_here(link: TravellingLink) -> dict[str, bytes]:
    """Link the image of ``link``, which has travelled to this worker; return it, or only the reason why not."""
    try:
        outputs = _linked(link, link.job.root.resolve().parent)
    except StorageError:
        raise  # of this worker: another one tries
    except MlfError as error:
        outputs = str(error)
    return {REASON: outputs.encode(errors="replace")} if isinstance(outputs, str) else outputs


def _linked(link: TravellingLink, folder: Path) -> dict[str, bytes] | str:
    variables = build_variables()
    differing = [name for name in {**variables, **link.variables} if variables.get(name) != link.variables.get(name)]
    if differing:
        return f"{listed(differing)} differs in the environment of the worker"
    for name, version in program_versions([name for name in link.versions if name != "mlfbuild"]).items():
        if version != link.versions[name]:
            return f"the worker has {name} {version}, this machine {link.versions[name]}"
    for path in link.bundles:
        unbundle(path, folder)
    job = link.job
    # A task has one thread of its worker.
    printed = cross_build(job, jobs=1)
    record = link_record(job)
    if record is None:
        return "Ninja is older than 1.11 and does not list what a build read"
    image, text = read_bytes(job.elf, "image"), read_bytes(job.linker_map, "map")
    read_by_cmake = [job.build / line for line in ninja(job, "inputs", "build.ninja").splitlines()]
    own = [path for path in read_by_cmake if path.is_relative_to(folder) and not path.is_relative_to(job.build.parent)]
    reason = beyond(path for path in own if not path.is_relative_to(job.target.tree)) or _surplus(job, image, folder)
    if reason:
        return reason
    loaded = {Path(os.fsdecode(line or path)) for line, path in _LOADED.findall(text)}
    outside = {
        str(path): hash_of(path)
        for path in (*read_by_cmake, *loaded)
        if not path.is_relative_to(folder) and own_place(path) is None
    }
    facts = {
        "inputs": {name: digest for name, digest in record.inputs.items() if own_place(Path(name)) is None},
        "outside": outside,
        "cmake": sorted({path.relative_to(folder / "project").as_posix() for path in own}),
    }
    # Lines of CMake about what it found, which is different on each machine.
    lines = [line for line in printed.splitlines(keepends=True) if not line.startswith("--")]
    project = os.fsencode(job.root.resolve())
    return {
        IMAGE: image,
        MAP: text.replace(project, ROOT),
        PRINTED: "".join(lines).encode().replace(project, ROOT) if "warning:" in printed else b"",
        FACTS: json.dumps(facts, sort_keys=True).encode(),
    }


def _surplus(job: FirmwareJob, image: bytes, folder: Path) -> str:
    """Return what else the build made, or that the ``image`` depends on the ``folder``; empty if neither."""
    commands = ninja(job, "commands", job.elf.name)
    if re.search(rf"-D\S*{re.escape(str(folder))}", commands):
        return "a definition of the preprocessor has the folder in which the image is built"
    images = _EXECUTABLE.findall(ninja(job, "targets", "all"))
    if len(images) != 1:
        return f"the build makes {counted(len(images), 'image')}"
    if os.fsencode(folder) in image or _is_compressed(image):
        return "the image names the folder in which it was built; add -ffile-prefix-map to the compiler's flags"
    return ""


def _is_compressed(image: bytes) -> bool:
    """Return whether the image has compressed sections, in which a path would not be found."""
    from elftools.elf.elffile import ELFFile

    return any(section.compressed for section in ELFFile(io.BytesIO(image)).iter_sections())
