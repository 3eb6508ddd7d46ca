"""Provenance: an in-toto statement that says which inputs and which builder an image is from.

**What.** The statement (in-toto Attestation Framework, Statement v1) names its subjects by SHA-256: the image and the
archives in it. Its predicate is SLSA's provenance v1: the parameters of the build, the artifacts that it was made from,
and who ran it. Others read it: verifiers of SLSA, and ``mlfbuild verify --bundle``.

**Rules.** The same build gives the same bytes on every machine: no paths, no times but ``SOURCE_DATE_EPOCH``, no
random ids. Only what was hashed has a digest; versions that a program printed about itself are annotations. The
statement is a claim of its signer: without a signature (``core.check_signature``), it proves nothing.

**Example.** ``{"_type": "https://in-toto.io/Statement/v1", "subject": [{"name": "app.elf", "digest": {"sha256":
...}}], "predicateType": "https://slsa.dev/provenance/v1", "predicate": {"buildDefinition": ..., "runDetails": ...}}``

What it says about the inputs is that of the lock file (``usecases.lock``), which collects it; nothing is collected
here, and no file is read.
"""

from __future__ import annotations

import datetime as dt
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from mlfbuild.core import SHA256
from mlfbuild.library import Fields, parse_json

STATEMENT_TYPE = "https://in-toto.io/Statement/v1"
PREDICATE_TYPE = "https://slsa.dev/provenance/v1"
BUILD_TYPE = "pkg:pypi/mlfbuild#build/v1"
"""The meaning of ``externalParameters``: a build of a firmware for a target of a project file."""
_AGAIN = "write it again with mlfbuild provenance"
_LARGEST = 1 << 24
"""Bytes; a statement of thousands of files has about one million."""


@dataclass(frozen=True)
class Artifact:
    """A file, a repository or a program: a subject of a statement, or an input of the build."""

    name: str
    sha256: str = ""
    uri: str = ""
    commit: str = ""
    """Of Git, in hexadecimal."""
    annotations: Mapping[str, str] = field(default_factory=dict)

    def descriptor(self) -> dict[str, Any]:
        """Return its ``ResourceDescriptor``."""
        digest = {"sha256": self.sha256, "gitCommit": self.commit}
        members = {
            "name": self.name,
            "uri": self.uri,
            "digest": {name: value for name, value in digest.items() if value},
            "annotations": dict(sorted(self.annotations.items())),
        }
        return {name: value for name, value in members.items() if value}


@dataclass(frozen=True)
class Provenance:
    """The origin of an image."""

    subjects: tuple[Artifact, ...]
    """The image first, each with its SHA-256."""
    parameters: Mapping[str, Any]
    """The user's choices: project file, target, firmware and models."""
    dependencies: tuple[Artifact, ...]
    """The files and tools that the image was made from."""
    builder: str
    """URI of who ran the build."""
    version: str
    """Of mlfbuild."""
    date: int | None = None
    """Seconds since 1970 in ``SOURCE_DATE_EPOCH``; ``None`` if it is not set."""

    def to_text(self) -> str:
        """Return the statement as JSON; equal provenance gives equal text."""
        definition: dict[str, Any] = {"buildType": BUILD_TYPE, "externalParameters": dict(self.parameters)}
        details: dict[str, Any] = {"builder": {"id": self.builder, "version": {"mlfbuild": self.version}}}
        if self.date is not None:
            definition["internalParameters"] = {"SOURCE_DATE_EPOCH": self.date}  # it is in the archives
            finished = dt.datetime.fromtimestamp(self.date, tz=dt.timezone.utc)
            details["metadata"] = {"finishedOn": finished.strftime("%Y-%m-%dT%H:%M:%SZ")}
        definition["resolvedDependencies"] = [each.descriptor() for each in self.dependencies]
        statement = {
            "_type": STATEMENT_TYPE,
            "subject": [each.descriptor() for each in self.subjects],
            "predicateType": PREDICATE_TYPE,
            "predicate": {"buildDefinition": definition, "runDetails": details},
        }
        return json.dumps(statement, indent=2) + "\n"


@dataclass(frozen=True)
class ClaimedProvenance:
    """The content of a statement, regardless of who wrote it."""

    subjects: Mapping[str, str]
    """SHA-256 -> name."""
    builder: str


def read_provenance(data: bytes, where: str) -> ClaimedProvenance:
    """Return what the statement ``data``, the content of the file ``where``, says.

    Raises ``InputFileError`` if it is not a statement with SLSA's provenance of version 1 and its required fields.
    """
    parsed = parse_json(data, where, _AGAIN) if len(data) <= _LARGEST else None
    statement = Fields(parsed, where, advice=_AGAIN)
    for key, wanted in (("_type", STATEMENT_TYPE), ("predicateType", PREDICATE_TYPE)):
        if statement.text(key) != wanted:
            raise statement.error(key, f"is not {wanted}")
    subjects = _digests(statement.objects("subject"))
    if not subjects:
        raise statement.error("subject", "must not be empty")
    predicate = statement.member("predicate")
    definition = predicate.member("buildDefinition")
    definition.text("buildType")
    definition.member("externalParameters")
    return ClaimedProvenance(subjects, predicate.member("runDetails").member("builder").text("id"))


def is_statement(data: bytes) -> bool:
    """Return whether ``data`` looks like a statement of in-toto, or is empty."""
    return not data or STATEMENT_TYPE.encode() in data[:1000]


def _digests(subjects: Sequence[Fields]) -> dict[str, str]:
    found = {}
    for subject in subjects:
        digest = subject.member("digest")
        value = digest.text("sha256")
        if not SHA256.fullmatch(value):
            raise digest.error("sha256", "is not a SHA-256 of 64 lower-case hexadecimal digits")
        found[value] = subject.text("name", "")
    return found
