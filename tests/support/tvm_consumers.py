"""What the projects that TVM 0.14 makes of an archive copy and compile, in our own words and with GCC.

TVM's servers for projects read an archive themselves. Each function here makes the part of such a project that concerns
the model: the same files in the same places, with the same include folders. The runtime beside it is the headers that
mlfbuild ships. All return the object files of the model. ``AssertionError`` has the compiler's message.
"""

import json
import re
import shutil
import tarfile
from collections.abc import Iterable
from pathlib import Path

from mlfbuild.targets import RUNTIME
from support.host_c import launcher, run

MODULE_MACRO = "-DMLF_MODULE=app"
"""The headers that mlfbuild ships rename the runtime's functions for a module; here all have one name."""
_INCLUDE = re.compile(r"#include\s*[<\"]([^>]*)[>\"]")


def unpacked(archive: Path, folder: Path) -> None:
    """Extract an archive of our own, which must not be compressed; early releases of Python 3.11 have no filters."""
    with tarfile.TarFile(archive) as tar:
        tar.extractall(folder)


def extracted(archive: Path, folder: Path) -> Path:
    """Extract the archive, which must not be compressed, to ``folder/model``."""
    unpacked(archive, folder / "model")
    shutil.copytree(RUNTIME / "tvm", folder / "crt/include", dirs_exist_ok=True)
    return folder


def zephyr(archive: Path, folder: Path) -> list[Path]:
    """Compile all C files below ``codegen/host/src``, with the archive's include folder."""
    extracted(archive, folder)
    for path in (folder / "model/codegen/host/src").iterdir():
        assert path.is_dir() or path.read_text(encoding="utf-8"), "TVM looks for CMSIS-NN's headers"
    return _compiled(_sources(folder), folder, "crt/include", "model/codegen/host/include")


def crt_host(archive: Path, folder: Path) -> list[Path]:
    """Compile all C files below ``codegen/host/src``, but without the archive's include folder."""
    extracted(archive, folder)
    return _compiled(_sources(folder), folder, "crt/include")


def arduino(archive: Path, folder: Path) -> list[Path]:
    """Copy only the C files, all to one folder, make include directives relative, and compile without include folders.

    A line with a directive is replaced as a whole. The workspace of all modules becomes a number in the project.
    """
    whole = extracted(archive, folder / "whole")
    model = folder / "src/model"
    model.mkdir(parents=True)
    for path in sorted((whole / "model/codegen/host/src").rglob("*.c")):
        shutil.copy(path, model)
    shutil.copytree(RUNTIME / "tvm", folder / "src/standalone_crt/include")
    modules = json.loads((whole / "model/metadata.json").read_text())["modules"]
    assert all(module["style"] == "full-model" for module in modules.values())
    assert sum(module["memory"]["functions"]["main"][0]["workspace_size_bytes"] for module in modules.values()) > 0
    for path in model.iterdir():
        path.read_text(encoding="ISO-8859-1")  # which TVM reads to find CMSIS-NN's headers
        lines = path.read_bytes().splitlines(keepends=True)
        path.write_bytes(b"".join(_relative(line, path, folder) for line in lines))
    shutil.rmtree(whole)
    return _compiled(sorted(model.glob("*.c")), folder)


def stm32(archive: Path, folder: Path) -> list[Path]:
    """Write the graph, the parameters of the module ``default``, and all entries of ``codegen/host/src`` as C files.

    Raises ``OSError`` for an archive without a graph, and if one of these entries is a folder.
    """
    model = extracted(archive, folder) / "model"
    (name,) = json.loads((model / "metadata.json").read_text())["modules"]
    assert json.loads((model / f"executor-config/graph/{name}.graph").read_text())["nodes"]
    assert (model / "parameters/default.params").read_bytes()
    sources = []
    for number, path in enumerate(sorted((model / "codegen/host/src").iterdir())):
        sources.append(folder / f"network_lib{number}.c")
        sources[-1].write_text(f"#include <stdio.h>\n#include <math.h>\n\n{path.read_text()}")
    return _compiled(sources, folder, "crt/include")


def _relative(line: bytes, path: Path, project: Path) -> bytes:
    found = _INCLUDE.search(line.decode("utf-8"))
    if found is None:
        return line
    name = found[1]
    base = "src/standalone_crt/include"
    if not (path.parent / name).exists() and (project / base / name).exists():
        name = f"{'../' * (len(path.relative_to(project).parts) - 1)}{base}/{name}"
    return f'#include "{name}"\n'.encode()


def _sources(folder: Path) -> list[Path]:
    return sorted((folder / "model/codegen/host/src").rglob("*.c"))


def _compiled(sources: Iterable[Path], folder: Path, *include_dirs: str) -> list[Path]:
    objects = []
    for source in sources:
        objects.append(folder / f"{source.stem}.o")
        include = [word for name in include_dirs for word in ("-I", name)]
        command = [*launcher(), "gcc", "-O0", "-Wall", "-Wno-unused-variable", MODULE_MACRO, *include, "-c"]
        run([*command, source.relative_to(folder), "-o", objects[-1].name], folder)
    return objects
