"""Requirements and the lines for a project file, as words for messages."""

from __future__ import annotations

import re
from collections.abc import Sequence

from mlfbuild.core import listed, shown
from mlfbuild.library import Requirement, known_library
from mlfbuild.requirements.requirement_checks import without_secret
from mlfbuild.requirements.versions import is_range

# Addresses with a scheme, and words that begin with a letter. Everything else is quoted: a version 7.0 is a number in
# YAML, and `git@host:path` is not plain text for all parsers.
_PLAIN_IN_YAML = re.compile(r"(?!git@)[A-Za-z][A-Za-z0-9+.-]*://[\w./~+%-]+|[A-Za-z][\w.+/-]*", re.ASCII)


def origin(requirement: Requirement) -> str:
    """Return the model or archive that has the requirement."""
    return shown(requirement.origin) if requirement.origin else "an archive"


def library_title(name: str) -> str:
    """Return the usual name of the library ``name``.

    Libraries that mlfbuild knows have one, such as ``CMSIS-NN`` for ``cmsis-nn``. Any other name comes from an archive,
    and is returned without control characters.
    """
    known = known_library(name)
    return known.title if known else shown(name)


def requires(requirement: Requirement) -> str:
    """Return ``kws requires v4.1.0``, and how the version is known."""
    return f"{origin(requirement)} requires {shown(requirement.version)}{_tested(requirement)}"


def needs(requirements: Sequence[Requirement]) -> str:
    """Return which archives need a library, in which versions, and why; ``requirements`` are all for one library.

    For example, ``kws (kws.tar) needs CMSIS-NN v4.1.0 (the code includes arm_nnfunctions.h)``. ``requirements`` must
    not be empty. Texts of archives are made printable.
    """
    origins = list(dict.fromkeys(map(origin, requirements)))
    versions = [f"{shown(one.version)}{_tested(one)}" for one in requirements if one.version]
    headers = dict.fromkeys(shown(header) for one in requirements for header in one.headers)
    why = f"the code includes {listed(list(headers))}" if headers else "stated in the archive"
    library = " ".join([library_title(requirements[0].name), " and ".join(dict.fromkeys(versions))]).rstrip()
    return f"{listed(origins)} need{'s' if len(origins) == 1 else ''} {library} ({why})"


def _tested(requirement: Requirement) -> str:
    return f", the version that {shown(requirement.exporter)} was tested with" if requirement.exporter else ""


def unknown_version(requirement: Requirement) -> str:
    """Return that the version is unknown, and why that matters."""
    made_by = f" ({shown(requirement.exporter)})" if requirement.exporter else ""
    return (
        f"the version that the code of {origin(requirement)}{made_by} was made for is not known, and with another one "
        "it computes wrong results"
    )


def lines_to_add(requirements: Sequence[Requirement]) -> str:
    """Return the entry of ``dependencies`` in a project file for ``requirements``, as one line of YAML.

    For CMSIS-NN that is ``cmsis-nn: {git: https://github.com/ARM-software/CMSIS-NN, version: v4.1.0}``. What the user
    has to find out is in capitals: ``VERSION``, ``HASH``, ``FOLDER``.
    """
    name = requirements[0].name
    # A provider has one version, so a range cannot be suggested.
    version = next((one.version for one in requirements if one.version and not is_range(one.version)), "VERSION")
    stated = next((one for one in requirements if one.url and one.url_type in {"git", "url"}), None)
    # The archive's own statement comes first: it may be a fork of the known library.
    known = known_library(name)
    if stated is not None and stated.url_type == "url":
        place = f"url: {_scalar(without_secret(stated.url))}, sha256: HASH"
    elif stated is not None or known is not None:
        place = f"git: {_scalar(without_secret(stated.url) if stated else known.url if known else '')}"
    else:
        place = "path: FOLDER"
    lists = "" if known else ", sources: [src/*.c], include-dirs: [include]"
    return f"{_scalar(name)}: {{{place}, version: {_scalar(version)}{lists}}}"


def _scalar(text: str) -> str:
    """Return ``text`` in a form that YAML reads as text."""
    return text if _PLAIN_IN_YAML.fullmatch(text) else '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'
