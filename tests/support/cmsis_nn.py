"""A stand-in for CMSIS-NN: its interface and layout, with bit-exact reference loops.

One set of templates serves both versions. A line ``//= v7.0.0`` or ``//= v4.1.0`` begins a part for only that version,
``//= all`` ends it; a file without any part is not written. Each function checks its scratch memory and overwrites it,
to find callers that reserve too little or rely on its content.

Names, arguments, structs and the sizes of the scratch memory are those of the library, because callers depend on them;
no other text is copied from it.
"""

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Literal

import pytest

Version = Literal["v4.1.0", "v7.0.0"]
VERSIONS: tuple[Version, ...] = ("v4.1.0", "v7.0.0")

TEMPLATES = Path(__file__).parent / "cmsis_nn"
_MARKER = "//= "
_LICENSES = {"v4.1.0": "LICENSE.txt", "v7.0.0": "LICENSE"}
_REVISIONS = {"v4.1.0": "V.11.3.0", "v7.0.0": "V.18.0.0"}
"""The ``$Revision`` of the real library's main header, which differs between releases."""
_WHO = {"NAME": "Tests", "EMAIL": "tests@example.org", "DATE": "2024-01-01T00:00:00Z"}


def write_cmsis_nn(folder: Path, version: Version) -> Path:
    """Write ``version`` of the stand-in to ``folder``, which need not exist, and return the folder."""
    for template in sorted(path for path in TEMPLATES.rglob("*") if path.is_file()):
        text = "".join(_lines_of(version, template.read_text()))
        if text:
            path = folder / template.relative_to(TEMPLATES)
            path = path.with_name(_LICENSES[version]) if path.name == "LICENSE" else path
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
    return folder


def write_cmsis_nn_repository(folder: Path) -> Path:
    """Write a Git repository with both versions as tagged commits, the newer one on ``main``, and return it.

    Authors and dates are fixed: the same templates give the same commits.
    """
    folder.mkdir(parents=True, exist_ok=True)
    git(folder, "init", "--quiet", "--initial-branch=main")
    for version in VERSIONS:
        git(folder, "rm", "-r", "--quiet", "--ignore-unmatch", ".")
        write_cmsis_nn(folder, version)
        git(folder, "add", "--all")
        git(folder, "commit", "--quiet", f"--message=Release {version}")
        git(folder, "tag", version)
    return folder


def git(folder: Path, *arguments: str) -> str:
    """Run Git in ``folder`` without the settings of this machine, and return its output."""
    who = {f"GIT_{role}_{key}": value for role in ("AUTHOR", "COMMITTER") for key, value in _WHO.items()}
    environment = {**os.environ, **who, "GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_SYSTEM": os.devnull}
    command = ["git", "-C", str(folder), *arguments]
    return subprocess.run(command, env=environment, check=True, capture_output=True, text=True).stdout.strip()


def real_cmsis_nn(variable: str, version: Version) -> Path:
    """Return the checkout of the real library that ``variable`` of the environment names.

    If it is not set, the test is skipped, even in CI, because the project does not include the library. A checkout of
    another version fails the test.
    """
    place = os.environ.get(variable)
    if not place:
        pytest.skip(f"{variable} names no checkout of CMSIS-NN {version}")
    header = Path(place) / "Include" / "arm_nnfunctions.h"
    if not header.is_file() or _REVISIONS[version] not in header.read_text():
        pytest.fail(f"{variable}: {place} is no checkout of CMSIS-NN {version}")
    return Path(place)


def _lines_of(version: Version, text: str) -> Iterator[str]:
    """Yield the lines of a template for ``version``."""
    wanted = True
    for line in text.splitlines(keepends=True):
        if line.startswith(_MARKER):
            wanted = line.removeprefix(_MARKER).strip() in (version, "all")
        elif wanted:
            yield line
