"""CMSIS-NN, or its stand-in, as a dependency; and whether what is taken of it links."""

from __future__ import annotations

import io
import re
import subprocess
import tarfile
from collections.abc import Sequence
from pathlib import Path

from mlfbuild.requirements.types import Source

CORES = {
    "m0": ("-mcpu=cortex-m0",),
    "m4": ("-mcpu=cortex-m4",),
    "m55": ("-mcpu=cortex-m55", "-mfloat-abi=hard"),
}
TVM_ARCHIVE = "kws_int8-cmsisnn_m4.tar"
"""Of the folder of test data: a network that TVM 0.14 compiled for CMSIS-NN v4.1.0 on a Cortex-M4."""
_PROTOTYPE = re.compile(r"^(?:arm_cmsis_nn_status|int32_t|void)\s+(arm_\w+)\(", re.MULTILINE)


def cmsis_nn_source(folder: Path, version: str = "v4.1.0") -> Source:
    """Return the library in ``folder`` with all of its files that a build may take."""
    paths = sorted(path for part in ("Include", "Source") for path in (folder / part).rglob("*") if path.is_file())
    licenses = sorted(path for path in folder.iterdir() if path.name.startswith("LICENSE"))
    files = {path.relative_to(folder).as_posix(): path.read_bytes() for path in sorted([*paths, *licenses])}
    return Source(
        name="cmsis-nn",
        version=version,
        files=files,
        sources=tuple(path for path in files if path.endswith(".c")),
        include_dirs=("Include",),
        license_files=tuple(path.name for path in licenses),
        license="Apache-2.0",
    )


def public_functions(folder: Path) -> list[str]:
    """Return the functions that the library's main header declares."""
    return _PROTOTYPE.findall((folder / "Include" / "arm_nnfunctions.h").read_text())


def self_contained(archive: Path, source: Source, target: Path) -> Path:
    """Write ``archive`` to ``target`` with the library among its own generated files, and return it."""
    with tarfile.open(archive) as read, tarfile.open(target, "w") as written:
        for member in read.getmembers():
            written.addfile(member, read.extractfile(member) if member.isfile() else None)
        for path, content in source.files.items():
            name = f"src/{Path(path).name}" if path in source.sources else path.replace("Include/", "include/")
            member = tarfile.TarInfo(f"codegen/host/{name}")
            member.size = len(content)
            written.addfile(member, io.BytesIO(bytes(content)))
    return target


class Linker:
    """Links single functions with the sources that are said to be enough for them; nothing is left out by it."""

    def __init__(self, compiler: str, core: str, folder: Path, build: Path) -> None:
        self._command = [compiler, *CORES[core], "-mthumb", "-w", f"-I{folder / 'Include'}"]
        self._folder = folder
        self._build = build / core
        self._build.mkdir(parents=True)

    def compile(self, sources: Sequence[str]) -> None:
        """Compile all sources of the library, once."""
        paths = [str(self._folder / source) for source in sources]
        subprocess.run([*self._command, "-Os", "-c", *paths], cwd=self._build, check=True)

    def link(self, functions: Sequence[str], sources: Sequence[str]) -> subprocess.CompletedProcess[str]:
        """Return what the linker said of a program that refers to ``functions``, with ``sources`` alone."""
        main = self._build / "main.c"
        declarations = "".join(f"extern char {name}[];\n" for name in functions)
        main.write_text(f"{declarations}char *used[] = {{{', '.join(functions)}}};\nint main(void) {{ return 0; }}\n")
        objects = [str(self._build / f"{Path(source).stem}.o") for source in sources]
        command = [*self._command, str(main), *objects, "--specs=nosys.specs", "-o", str(self._build / "program.elf")]
        return subprocess.run(command, capture_output=True, text=True, check=False)
