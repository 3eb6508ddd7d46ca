"""What is known of the libraries that archives' code needs: how code shows it, where they are, what is compiled.

Headers tell which library, never which release of it, and a wrong release links and computes garbage. So the release
comes from what TVM itself tested with: what ``docker/install`` of each tag of ``apache/tvm`` installs, CMSIS-NN in
``ubuntu_install_cmsis.sh`` and Ethos-U in ``ubuntu_install_ethosu_driver_stack.sh``. TVM 0.8 to 0.11 took CMSIS-NN
from commits of ``ARM-software/CMSIS_5``, which are no release of CMSIS-NN: nobody knows what to take for them.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import PurePosixPath

from mlfbuild.project import short_name

__all__ = [
    "CMSIS_NN", "ETHOS_U", "KNOWN", "STANDALONE_CRT", "KnownDependency", "dependency_of_header", "known_dependency",
    "short_name",
]  # fmt: skip
STANDALONE_CRT = "tvm_standalone_crt"
"""The ``short_name`` of the C runtime that TVM puts into ``runtime/``."""
_TVM_VERSION = re.compile(r"v?(\d{1,9})\.(\d{1,9})(?:\.\d+)*(?:\.post\d+|rc\d+)?(?P<development>\.dev\d+)?(?:\+.*)?")


@dataclass(frozen=True)
class KnownDependency:
    """A library that code of archives is known to need."""

    name: str
    """Short name, as ``short_name`` returns it."""
    title: str
    """What people call it."""
    headers: tuple[str, ...]
    """Names of headers, without folders, that no other library has: code that includes one needs it."""
    url: str
    """Of its Git repository."""
    purl: str
    """Package URL without a version."""
    license: str
    """SPDX licence expression."""
    include_dirs: tuple[str, ...]
    sources: tuple[str, ...]
    """Patterns of what is compiled."""
    license_files: tuple[str, ...] = ("LICENSE*",)
    """Patterns of the files that say under which terms it may be used."""
    functions: tuple[str, ...] = ()
    """What its functions begin with, where they have names as those of TVM's runtime."""
    tvm: Mapping[tuple[int, int], str] = field(default_factory=dict)
    """Tag of the repository by TVM's release: 0.14 is ``(0, 14)``."""
    revisions: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    """What headers say of themselves (``$Revision: V.11.3.0``), by tag and name: together they tell a release."""

    def version_for_tvm(self, version: str) -> str:
        """Return the tag that the code of TVM ``version`` is made for, empty where nobody knows.

        A development build, as ``0.14.dev273``, lies between two releases: where they differ, nobody knows.
        """
        found = _TVM_VERSION.fullmatch(version.strip())
        if found is None:
            return ""
        major, minor = int(found[1]), int(found[2])
        tag = self.tvm.get((major, minor), "")
        return tag if not found["development"] or self.tvm.get((major, minor - 1)) == tag else ""


CMSIS_NN = KnownDependency(
    name="cmsis-nn",
    title="CMSIS-NN",
    headers=(
        "arm_nnfunctions.h", "arm_nn_types.h", "arm_nnsupportfunctions.h", "arm_nn_math_types.h", "arm_nn_tables.h",
    ),
    url="https://github.com/ARM-software/CMSIS-NN",
    purl="pkg:github/arm-software/cmsis-nn",
    license="Apache-2.0",
    include_dirs=("Include",),
    sources=("Source/**/*.c",),
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
ETHOS_U = KnownDependency(
    name="ethos-u-core-driver",
    title="the Ethos-U core driver",
    headers=("tvm_ethosu_runtime.h", "ethosu_driver.h"),
    url="https://gitlab.arm.com/artificial-intelligence/ethos-u/ethos-u-core-driver",
    purl="pkg:generic/ethos-u-core-driver",
    license="Apache-2.0",
    include_dirs=("include",),
    sources=("src/*.c",),
    functions=("TVMEthosU",),
    tvm={
        (0, 8): "21.05", **{(0, minor): "21.11" for minor in range(9, 12)}, (0, 12): "22.08",
        **{(0, minor): "23.05" for minor in range(13, 19)},
    },
)  # fmt: skip
"""TVM's own ``tvm_ethosu_runtime.h`` and ``.c`` wrap the driver; they are no part of it (``apps/microtvm/ethosu``)."""

KNOWN = (CMSIS_NN, ETHOS_U)
_BY_NAME = {known.name: known for known in KNOWN}
_BY_HEADER = {header: known for known in KNOWN for header in known.headers}


def known_dependency(name: str) -> KnownDependency | None:
    """Return what is known of the library with this short name, however it is spelt; ``None`` for nothing."""
    return _BY_NAME.get(short_name(name))


def dependency_of_header(include: str) -> KnownDependency | None:
    """Return whose header ``include`` is, as code writes it between the brackets; ``None`` where nobody knows."""
    return _BY_HEADER.get(PurePosixPath(include).name)
