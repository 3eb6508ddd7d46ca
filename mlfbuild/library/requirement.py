"""The libraries that the code of a module requires, stated in the archive or recognised by the headers it includes.

Headers do not identify the release, and code that is linked with another release computes wrong results. Therefore the
release of a known library is the one that TVM tests with: ``docker/install`` of each tag of ``apache/tvm`` installs
CMSIS-NN in ``ubuntu_install_cmsis.sh`` and the Ethos-U driver in ``ubuntu_install_ethosu_driver_stack.sh``. TVM 0.8 to
0.11 took CMSIS-NN from commits of ``ARM-software/CMSIS_5``, which are not releases of CMSIS-NN, so no release is known
for them.

TVM's C runtime is part of the archives that need it: ``bundling`` has the paths of its files.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import PurePosixPath
from typing import NamedTuple

from mlfbuild.c_analysis import MAX_TEXT, TEXT_SUFFIXES, included_files, tokens
from mlfbuild.library.content import text_of
from mlfbuild.library.dependency_problems import archive_folder
from mlfbuild.library.requirement_names import short_name
from mlfbuild.library.value import ExternalDependency, Module

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
    """Return the library with this short name in any spelling, ``None`` if it is not known.

    For example, ``CMSIS_NN`` for ``CMSIS-NN`` or ``cmsis_nn``. A library that is not known can still be required
    and provided.
    """
    return _BY_NAME.get(short_name(name))


def library_of_header(include: str) -> KnownLibrary | None:
    """Return the known library with the header ``include`` (the text between the brackets), or ``None``.

    Only the name of the file counts: code may include ``arm_nnfunctions.h`` from any folder.
    """
    return _BY_HEADER.get(PurePosixPath(include).name)


_HEADERS = tuple(header.encode() for known in KNOWN for header in known.headers)


@dataclass(frozen=True)
class Requirement:
    """A library that code requires; the project file provides it under the same short name."""

    name: str
    """In lower case, with hyphens: ``cmsis-nn``."""
    version: str
    """A tag, a release or a range, as the archive states it; empty if unknown."""
    url: str = ""
    url_type: str = ""
    origin: str = ""
    """The model or archive, for messages."""
    headers: tuple[str, ...] = ()
    """The headers by which it was recognised; empty if the metadata names it."""
    exporter: str = ""
    """Program that made the code, such as ``TVM 0.14.0``, if the version follows from it or is unknown."""

    @property
    def title(self) -> str:
        """Name and version."""
        return f"{self.name} {self.version}".strip()

    @property
    def declared(self) -> bool:
        """Whether the archive's metadata states it."""
        return not self.headers


def requirements_of(module: Module, *, tvm: str = "") -> tuple[Requirement, ...]:
    """Return the libraries that ``module`` requires, without TVM's runtime: first those that the metadata names.

    Others are recognised by headers of known libraries that the code includes and does not contain. Their version is
    the one that the exporting release of TVM was tested with: ``tvm`` if the metadata does not state the release. The
    origin is the module's name. Only the sources of modules that mlfbuild did not compile are read.
    """
    exporter = exporter_version(module) or tvm
    named = (item for item in module.external_dependencies if item.short_name.strip() and not _is_runtime(item))
    declared = dict.fromkeys(_declared(item, module, exporter) for item in named)
    names = {requirement.name for requirement in declared}
    made_by = f"TVM {exporter}" if exporter else ""
    found = (
        Requirement(known.name, known.version_for_tvm(exporter), known.url, "git", module.name, headers, made_by)
        for known, headers in _foreign_headers(module)
    )
    return (*declared, *(requirement for requirement in found if requirement.name not in names))


def with_requirements(module: Module, *, tvm: str = "") -> Module:
    """Return ``module`` whose external dependencies also name the recognised libraries.

    Libraries of unknown version are left out: a repository without a version is not a valid entry (``MLF801``).
    """
    added = tuple(
        ExternalDependency(found.name, found.url, found.url_type, found.version)
        for found in requirements_of(module, tvm=tvm)
        if found.version and not found.declared
    )
    return replace(module, external_dependencies=(*module.external_dependencies, *added)) if added else module


def exporter_version(module: Module) -> str:
    """Return the release of TVM that exported ``module``, the version of its C runtime; empty if it is not stated.

    Empty for modules that mlfbuild compiled, which name a runtime if they need one.
    """
    if module.model_id:
        return ""
    return next((item.version_spec for item in module.external_dependencies if _is_runtime(item)), "")


def runtime_requirement(module: Module) -> Requirement | None:
    """Return TVM's runtime if the metadata of ``module`` names one outside the archive, otherwise ``None``.

    Builds with mlfbuild do not need it.
    """
    found = next((item for item in module.external_dependencies if _is_runtime(item)), None)
    if found is None or archive_folder(found) is not None:
        return None
    return Requirement(STANDALONE_CRT, found.version_spec, found.url, found.url_type, module.name)


def _is_runtime(dependency: ExternalDependency) -> bool:
    return short_name(dependency.short_name) == short_name(STANDALONE_CRT)


def _declared(item: ExternalDependency, module: Module, exporter: str) -> Requirement:
    name, stated = short_name(item.short_name), item.version_spec.strip()
    known = known_library(name)
    tested = known.version_for_tvm(exporter) if known is not None else ""
    # A version that the archive states differently does not follow from the exporter.
    made_by = f"TVM {exporter}" if exporter and stated in {"", tested} else ""
    return Requirement(name, stated or tested, item.url, item.url_type, module.name, exporter=made_by)


def _foreign_headers(module: Module) -> list[tuple[KnownLibrary, tuple[str, ...]]]:
    """Return the known libraries of which ``module`` includes headers, each with these headers."""
    if module.model_id:  # mlfbuild compiled it: the metadata names all libraries
        return []
    # A header that the archive contains is not that of a library elsewhere.
    own = {file.path.name for file in module.codegen}
    foreign = [name for name in dict.fromkeys(_includes(module)) if name.rpartition("/")[2] not in own]
    known = {found.name: found for name in foreign if (found := library_of_header(name))}.values()
    return [(library, tuple(name for name in foreign if library_of_header(name) is library)) for library in known]


def _includes(module: Module) -> Iterator[str]:
    for file in module.codegen:
        if file.path.suffix in TEXT_SUFFIXES and len(file.content) <= MAX_TEXT:
            content = bytes(file.content)
            # Most of the text is constants, and reading tokens is slow.
            if any(header in content for header in _HEADERS):
                yield from included_files(tokens(text_of(content)))
