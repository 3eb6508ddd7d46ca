"""Known libraries that the code of archives may require: headers, sources by version, licence, origin.

A library is recognised by the headers that code includes. Headers do not identify the release, and code that is linked
with another release computes wrong results. Therefore the release is the one that TVM tests with: ``docker/install`` of
each tag of ``apache/tvm`` installs CMSIS-NN in ``ubuntu_install_cmsis.sh`` and the Ethos-U driver in
``ubuntu_install_ethosu_driver_stack.sh``. TVM 0.8 to 0.11 took CMSIS-NN from commits of ``ARM-software/CMSIS_5``, which
are not releases of CMSIS-NN, so no release is known for them.

TVM's C runtime is part of the archives that need it: ``bundling`` has the paths of its files.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import PurePosixPath
from typing import NamedTuple

from mlfbuild.library.requirement_names import short_name

__all__ = [
    "CMSIS_NN", "ETHOS_U", "KNOWN", "STANDALONE_CRT", "KnownLibrary", "known_library", "library_of_header",
    "short_name",
]  # fmt: skip
STANDALONE_CRT = "tvm_standalone_crt"
"""The ``short_name`` of the C runtime that TVM writes to ``runtime/``."""
_TVM_VERSION = re.compile(r"v?(\d{1,9})\.(\d{1,9})(?:\.\d+)*(?:\.post\d+|rc\d+)?(?P<development>\.dev\d+)?(?:\+.*)?")


class Layout(NamedTuple):
    """The paths of the files in some releases of a library."""

    versions: str
    """The releases, as a range in the form of pip: ``>=4``."""
    sources: tuple[str, ...]
    """Patterns of the files to compile."""
    include_dirs: tuple[str, ...]


@dataclass(frozen=True)
class KnownLibrary:
    """A known library that the code of archives may require."""

    name: str
    """Short name, as ``short_name`` returns it."""
    title: str
    """Name for messages."""
    headers: tuple[str, ...]
    """Names of headers, without folders, that identify the library: code that includes one of them requires it."""
    url: str
    """The URL of its Git repository."""
    purl: str
    """Package URL without a version."""
    license: str
    """SPDX licence expression."""
    layouts: tuple[Layout, ...]
    license_files: tuple[str, ...] = ("LICENSE*",)
    """Patterns of the files with the licence text."""
    functions: tuple[str, ...] = ()
    """Prefixes of its functions, if these have names like functions of TVM's runtime."""
    tvm: Mapping[tuple[int, int], str] = field(default_factory=dict)
    """Tag of the repository by TVM's release: 0.14 is ``(0, 14)``."""
    revisions: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    """The ``$Revision`` line of headers (``V.11.3.0``), by tag and name: together they identify a release."""

    def version_for_tvm(self, version: str) -> str:
        """Return the tag that code of TVM ``version`` was made for, empty if it is not known.

        A development build such as ``0.14.dev273`` is between two releases: if their tags differ, its tag is unknown.
        """
        found = _TVM_VERSION.fullmatch(version.strip())
        if found is None:
            return ""
        major, minor = int(found[1]), int(found[2])
        tag = self.tvm.get((major, minor), "")
        return tag if not found["development"] or self.tvm.get((major, minor - 1)) == tag else ""


CMSIS_NN = KnownLibrary(
    name="cmsis-nn",
    title="CMSIS-NN",
    headers=(
        "arm_nnfunctions.h", "arm_nn_types.h", "arm_nnsupportfunctions.h", "arm_nn_math_types.h", "arm_nn_tables.h",
    ),
    url="https://github.com/ARM-software/CMSIS-NN",
    purl="pkg:github/arm-software/cmsis-nn",
    license="Apache-2.0",
    layouts=(Layout(">=4", ("Source/**/*.c",), ("Include",)),),
    tvm={(0, 12): "v4.0.0", **{(0, minor): "v4.1.0" for minor in range(13, 19)}},
    revisions={
        release: dict(zip(("arm_nnfunctions.h", "arm_nn_types.h", "arm_nnsupportfunctions.h"), revisions, strict=True))
        for release, *revisions in (
            ("v4.0.0", "V.11.2.0", "V.2.2.0", "V.14.0.0"),
            ("v4.1.0", "V.11.3.0", "V.2.5.0", "V.16.0.0"),
            ("v5.0.0", "V.12.4.0", "V.2.6.0", "V.17.6.0"),
            ("v6.0.0", "V.16.0.0", "V.3.2.0", "V.22.0.0"),
            ("v7.0.0", "V.18.0.0", "V.3.5.0", "V.22.7.0"),
        )
    },
)  # fmt: skip
ETHOS_U = KnownLibrary(
    name="ethos-u-core-driver",
    title="the Ethos-U core driver",
    headers=("tvm_ethosu_runtime.h", "ethosu_driver.h"),
    url="https://gitlab.arm.com/artificial-intelligence/ethos-u/ethos-u-core-driver",
    purl="pkg:generic/ethos-u-core-driver",
    license="Apache-2.0",
    layouts=(Layout(">=21.5,<24", ("src/*.c",), ("include",)),),  # later releases have a source file for each device
    functions=("TVMEthosU",),
    tvm={
        (0, 8): "21.05", **{(0, minor): "21.11" for minor in range(9, 12)}, (0, 12): "22.08",
        **{(0, minor): "23.05" for minor in range(13, 19)},
    },
)  # fmt: skip
"""TVM's own ``tvm_ethosu_runtime.h`` and ``.c`` (``apps/microtvm/ethosu``) call the driver and are not part of it."""

KNOWN = (CMSIS_NN, ETHOS_U)
_BY_NAME = {known.name: known for known in KNOWN}
_BY_HEADER = {header: known for known in KNOWN for header in known.headers}


def known_library(name: str) -> KnownLibrary | None:
    """Return the library with this short name in any spelling, ``None`` if it is not known."""
    return _BY_NAME.get(short_name(name))


def library_of_header(include: str) -> KnownLibrary | None:
    """Return the known library with the header ``include`` (the text between the brackets), or ``None``.

    Only the name of the file counts: code may include ``arm_nnfunctions.h`` from any folder.
    """
    return _BY_HEADER.get(PurePosixPath(include).name)
