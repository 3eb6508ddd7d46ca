"""A bill of materials as an SPDX 2.3 document, JSON or tag-value, written by SPDX's library.

Every component is a package that contains its files; SPDX requires a SHA-1 hash of each and a verification code over
them. Licences are not reviewed: the statement of an author is *declared*. Only the licence of generated code, which
follows from the licences of model and generator, is *concluded*.
"""

from __future__ import annotations

import datetime as dt
import hashlib
import io
import re
from collections.abc import Iterable, Iterator

from license_expression import LicenseExpression
from spdx_tools.spdx.model.actor import Actor, ActorType
from spdx_tools.spdx.model.checksum import Checksum, ChecksumAlgorithm
from spdx_tools.spdx.model.document import CreationInfo, Document
from spdx_tools.spdx.model.extracted_licensing_info import ExtractedLicensingInfo
from spdx_tools.spdx.model.file import File, FileType
from spdx_tools.spdx.model.package import (
    ExternalPackageRef,
    ExternalPackageRefCategory,
    Package,
    PackagePurpose,
    PackageVerificationCode,
)
from spdx_tools.spdx.model.relationship import Relationship, RelationshipType
from spdx_tools.spdx.model.spdx_no_assertion import SpdxNoAssertion
from spdx_tools.spdx.validation.uri_validators import validate_download_location
from spdx_tools.spdx.writer.json.json_writer import write_document_to_stream
from spdx_tools.spdx.writer.tagvalue.tagvalue_writer import write_document_to_stream as write_tag_value_to_stream

from mlfbuild.report.sbom.bom import Bom, BomFile, Component, How, Kind
from mlfbuild.report.sbom.licenses import references, spdx_expression, spdx_licensing

_DOCUMENT = "SPDXRef-DOCUMENT"
_PURPOSES = {
    Kind.PROJECT: PackagePurpose.APPLICATION,
    Kind.FIRMWARE: PackagePurpose.FIRMWARE,
    Kind.MODEL: PackagePurpose.OTHER,
    Kind.ARCHIVE: PackagePurpose.ARCHIVE,
    Kind.PARAMETERS: PackagePurpose.FILE,
    Kind.CODE: PackagePurpose.SOURCE,
    Kind.LIBRARY: PackagePurpose.LIBRARY,
    Kind.TOOL: PackagePurpose.APPLICATION,
}
_RELATIONS = {
    How.CONTAINS: RelationshipType.CONTAINS,
    How.DEPENDS_ON: RelationshipType.DEPENDS_ON,
    How.GENERATED_FROM: RelationshipType.GENERATED_FROM,
}
_SOURCES = frozenset({".c", ".cc", ".cpp", ".h", ".hpp", ".inc", ".s", ".S", ".ld"})


def spdx_json(bom: Bom) -> str:
    """Return ``bom`` as an SPDX document in JSON."""
    text = io.StringIO()
    write_document_to_stream(_document(bom), text, validate=False)
    return text.getvalue() + "\n"


def spdx_tag_value(bom: Bom) -> str:
    """Return ``bom`` as an SPDX tag-value document."""
    text = io.StringIO()
    write_tag_value_to_stream(_document(bom), text, validate=False)
    return text.getvalue()


def _document(bom: Bom) -> Document:
    components = (bom.project, *bom.components)
    # The document names the tool that wrote it; all other tools are packages with a relation.
    tools = [one for one in components if one.kind is Kind.TOOL and one.name == "mlfbuild"]
    suppliers = [Actor(ActorType.ORGANIZATION, bom.project.supplier)] if bom.project.supplier else []
    return Document(
        CreationInfo(
            spdx_version="SPDX-2.3",
            spdx_id=_DOCUMENT,
            name=bom.project.name,
            document_namespace=f"https://spdx.org/spdxdocs/{_identifier(bom.project.name)}-{bom.identity()}",
            creators=[*suppliers, *(Actor(ActorType.TOOL, f"{one.name}-{one.version}") for one in tools)],
            created=dt.datetime.fromtimestamp(bom.created, tz=dt.timezone.utc).replace(tzinfo=None),
        ),
        packages=[_package(one) for one in components],
        files=[_file(one, file) for one in components for file in one.files],
        relationships=list(_relationships(bom, components)),
        extracted_licensing_info=list(_extracted(components)),
    )


def _relationships(bom: Bom, components: Iterable[Component]) -> Iterator[Relationship]:
    yield Relationship(_DOCUMENT, RelationshipType.DESCRIBES, _package_id(bom.project.ref))
    for one in bom.relations:
        source, target = _package_id(one.source), _package_id(one.target)
        if one.how is How.MADE_BY:
            # SPDX has this relation only from the tool to what it has built.
            yield Relationship(target, RelationshipType.BUILD_TOOL_OF, source)
        else:
            yield Relationship(source, _RELATIONS[one.how], target)
    for owner in components:
        for file in owner.files:
            yield Relationship(_package_id(owner.ref), RelationshipType.CONTAINS, _file_id(owner, file))


def _package(one: Component) -> Package:
    stated = _license(one.license)
    # Packages of SPDX have no properties, so these are in the comment.
    properties = [f"{name}: {value}" for name, value in one.properties.items()]
    if one.kind is Kind.MODEL:
        properties.insert(0, "machine-learning model")
    if one.author:
        properties.append(f"author: {one.author}")
    return Package(
        spdx_id=_package_id(one.ref),
        name=one.name,
        version=one.version or None,
        file_name=one.file or None,
        supplier=Actor(ActorType.ORGANIZATION, one.supplier) if one.supplier else SpdxNoAssertion(),
        download_location=_download_location(one),
        # SPDX 2.3, 7.9: the verification code is required if files are listed, and forbidden otherwise.
        files_analyzed=bool(one.files),
        verification_code=_verification_code(one.files) if one.files else None,
        checksums=[Checksum(ChecksumAlgorithm.SHA256, one.sha256)] if one.sha256 else [],
        source_info=f"Git commit {one.commit}" if one.commit else None,
        license_concluded=stated if one.license_concluded else SpdxNoAssertion(),
        license_declared=SpdxNoAssertion() if one.license_concluded else stated,
        copyright_text=SpdxNoAssertion(),
        description=one.description or None,
        comment="; ".join(properties) or None,
        external_references=[ExternalPackageRef(ExternalPackageRefCategory.PACKAGE_MANAGER, "purl", one.purl)]
        if one.purl
        else [],
        primary_package_purpose=_PURPOSES[one.kind],
    )


def _download_location(one: Component) -> str | SpdxNoAssertion:
    location = f"git+{one.url}@{one.commit}" if one.commit else one.url
    # An address that SPDX does not accept is stated as unknown, because the field may not be empty.
    return location if location and not validate_download_location(location) else SpdxNoAssertion()


def _verification_code(files: Iterable[BomFile]) -> PackageVerificationCode:
    """Return SPDX's digest of a package (clause 7.9): SHA-1 of the sorted SHA-1 values of its files in a row."""
    return PackageVerificationCode(_sha1("".join(sorted(file.sha1 for file in files))))


def _file(owner: Component, file: BomFile) -> File:
    suffix = file.path[file.path.rfind(".") :]
    return File(
        name=f"./{file.path}",
        spdx_id=_file_id(owner, file),
        checksums=[Checksum(ChecksumAlgorithm.SHA1, file.sha1), Checksum(ChecksumAlgorithm.SHA256, file.sha256)],
        file_types=[FileType.SOURCE if suffix in _SOURCES else FileType.BINARY if suffix == ".o" else FileType.OTHER],
        license_concluded=SpdxNoAssertion(),
        license_info_in_file=[SpdxNoAssertion()],
        copyright_text=SpdxNoAssertion(),
    )


# Licences ------------------------------------------------------------------------------------------------------------


def _license(text: str) -> LicenseExpression | SpdxNoAssertion:
    if not text:
        return SpdxNoAssertion()
    return spdx_licensing().parse(spdx_expression(text) or _reference_to(text))


def _reference_to(text: str) -> str:
    """Return the document's LicenseRef for a text that is not an SPDX expression."""
    return f"LicenseRef-{_sha1(text)[:12]}"


def _extracted(components: Iterable[Component]) -> Iterator[ExtractedLicensingInfo]:
    """Yield the document's entry of each licence that is not in SPDX's list."""
    texts: dict[str, str] = {}
    for one in components:
        expression = spdx_expression(one.license) if one.license else ""
        if expression is None:
            texts[_reference_to(one.license)] = one.license
        else:
            texts |= dict.fromkeys(references(expression), "The terms are not in this document.")
    yield from (ExtractedLicensingInfo(name, texts[name], SpdxNoAssertion()) for name in sorted(texts))


# Names ---------------------------------------------------------------------------------------------------------------


def _package_id(ref: str) -> str:
    return f"SPDXRef-Package-{_identifier(ref)}"


def _file_id(owner: Component, file: BomFile) -> str:
    return f"SPDXRef-File-{_sha1(f'{owner.ref}#{file.path}')}"


def _identifier(text: str) -> str:
    """Return ``text`` with only letters, digits, points and hyphens; a hash keeps different texts apart."""
    plain = re.sub(r"[^A-Za-z0-9.-]", "-", text)
    # Ids of SPDX may only have these characters (2.3, clause 3.2), and two refs could become the same.
    return plain if plain == text else f"{plain}-{_sha1(text)[:6]}"


def _sha1(text: str) -> str:
    return hashlib.sha1(text.encode(), usedforsecurity=False).hexdigest()
