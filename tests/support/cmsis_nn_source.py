"""CMSIS-NN, or its stand-in, as a resolved library."""

import io
import tarfile
from pathlib import Path

from mlfbuild.library import ResolvedLibrary

CORES = {"m0": ("-mcpu=cortex-m0",), "m4": ("-mcpu=cortex-m4",), "m55": ("-mcpu=cortex-m55", "-mfloat-abi=hard")}
TVM_ARCHIVE = "kws_int8-cmsisnn_m4.tar"
"""A network in the test data that TVM 0.14 compiled for CMSIS-NN v4.1.0 on a Cortex-M4."""


def cmsis_nn_source(folder: Path, version: str = "v4.1.0") -> ResolvedLibrary:
    """Return the library in ``folder`` with all files for builds."""
    paths = sorted(path for part in ("Include", "Source") for path in (folder / part).rglob("*") if path.is_file())
    licenses = sorted(path for path in folder.iterdir() if path.name.startswith("LICENSE"))
    files = {path.relative_to(folder).as_posix(): path.read_bytes() for path in sorted([*paths, *licenses])}
    return ResolvedLibrary(
        name="cmsis-nn",
        version=version,
        files=files,
        sources=tuple(path for path in files if path.endswith(".c")),
        include_dirs=("Include",),
        license_files=tuple(path.name for path in licenses),
        license="Apache-2.0",
    )


def self_contained(archive: Path, source: ResolvedLibrary, target: Path) -> Path:
    """Write ``archive`` to ``target`` with the library added to its generated files, and return the path."""
    with tarfile.open(archive) as read, tarfile.open(target, "w") as written:
        for member in read.getmembers():
            written.addfile(member, read.extractfile(member) if member.isfile() else None)
        for path, content in source.files.items():
            name = f"src/{Path(path).name}" if path in source.sources else path.replace("Include/", "include/")
            member = tarfile.TarInfo(f"codegen/host/{name}")
            member.size = len(content)
            written.addfile(member, io.BytesIO(bytes(content)))
    return target
