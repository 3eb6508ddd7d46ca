"""A bill of materials as a CycloneDX 1.6 document in JSON, written by OWASP's library.

CycloneDX has one relation, "depends on": a component that contains another one, or is generated from it, depends on it.
Tools are in the metadata. Information without a field in CycloneDX is a property with a name that begins with
``mlfbuild:``.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterable, Iterator

from cyclonedx.model import (
    ExternalReference,
    ExternalReferenceType,
    HashAlgorithm,
    HashType,
    Property,
    XsUri,
    bom as cdx,
)
from cyclonedx.model.component import Commit, Component as CdxComponent, ComponentType, Pedigree
from cyclonedx.model.contact import OrganizationalContact, OrganizationalEntity
from cyclonedx.model.license import DisjunctiveLicense, LicenseAcknowledgement, LicenseExpression
from cyclonedx.model.tool import ToolRepository
from cyclonedx.output.json import JsonV1Dot6
from cyclonedx.spdx import is_supported_id
from packageurl import PackageURL

from mlfbuild.report.sbom.bom import Bom, BomFile, Component, How, Kind
from mlfbuild.report.sbom.licenses import spdx_expression

# component.type of CycloneDX 1.6. It has no type for generated source, and "library" is what it calls any code that is
# part of a product.
_TYPES = {
    Kind.PROJECT: ComponentType.APPLICATION,
    Kind.FIRMWARE: ComponentType.FIRMWARE,
    Kind.MODEL: ComponentType.MACHINE_LEARNING_MODEL,
    Kind.ARCHIVE: ComponentType.FILE,
    Kind.PARAMETERS: ComponentType.DATA,
    Kind.CODE: ComponentType.LIBRARY,
    Kind.LIBRARY: ComponentType.LIBRARY,
    Kind.TOOL: ComponentType.APPLICATION,
}


def cyclonedx_json(bom: Bom) -> str:
    """Return ``bom`` as a CycloneDX document.

    Equal bills give equal text: the serial number is the bill's identity, and the time is that of ``created``.
    """
    made = {one.ref: _component(one) for one in (bom.project, *bom.components)}
    kinds = {one.ref: one.kind for one in bom.components}
    document = cdx.Bom(
        serial_number=bom.identity(),
        metadata=cdx.BomMetaData(
            component=made[bom.project.ref],
            # The metadata lists tools by themselves, so they are not components of the product.
            tools=ToolRepository(components=[made[ref] for ref, kind in kinds.items() if kind is Kind.TOOL]),
            timestamp=dt.datetime.fromtimestamp(bom.created, tz=dt.timezone.utc),
        ),
        components=[made[ref] for ref, kind in kinds.items() if kind is not Kind.TOOL],
    )
    for ref, component in made.items():
        # Relations to tools stay out: a dependency must be between components of the list.
        if kinds.get(ref) is not Kind.TOOL:
            wanted = bom.related(ref, How.CONTAINS, How.DEPENDS_ON, How.GENERATED_FROM)
            document.register_dependency(component, [made[target] for target in wanted])
    return JsonV1Dot6(document).output_as_string(indent=2) + "\n"


def _component(one: Component) -> CdxComponent:
    return CdxComponent(
        bom_ref=one.ref,
        type=_TYPES[one.kind],
        name=one.name,
        version=one.version or None,
        authors=[OrganizationalContact(name=one.author)] if one.author else [],
        supplier=OrganizationalEntity(name=one.supplier) if one.supplier else None,
        description=one.description or None,
        purl=PackageURL.from_string(one.purl) if one.purl else None,
        licenses=_licenses(one),
        hashes=_hashes(one.sha256),
        external_references=_origins(one),
        pedigree=Pedigree(commits=[Commit(uid=one.commit)]) if one.commit else None,
        properties=_properties(one),
        components=[_file(one, file) for file in one.files],
    )


def _file(owner: Component, file: BomFile) -> CdxComponent:
    hashes = [*_hashes(file.sha256), HashType(alg=HashAlgorithm.SHA_1, content=file.sha1)]
    return CdxComponent(bom_ref=f"{owner.ref}#{file.path}", type=ComponentType.FILE, name=file.path, hashes=hashes)


def _hashes(sha256: str) -> list[HashType]:
    return [HashType(alg=HashAlgorithm.SHA_256, content=sha256)] if sha256 else []


def _properties(one: Component) -> Iterator[Property]:
    yield from (Property(name=f"mlfbuild:{name}", value=value) for name, value in one.properties.items())
    if one.file:
        yield Property(name="mlfbuild:file", value=one.file)


def _licenses(one: Component) -> Iterable[DisjunctiveLicense | LicenseExpression]:
    if not one.license:
        return []
    said = LicenseAcknowledgement.CONCLUDED if one.license_concluded else LicenseAcknowledgement.DECLARED
    expression = spdx_expression(one.license)
    if expression is None:
        return [DisjunctiveLicense(name=one.license, acknowledgement=said)]
    # A single id has a field of its own, by which scanners search; an expression is only text.
    if is_supported_id(expression):
        return [DisjunctiveLicense(id=expression, acknowledgement=said)]
    return [LicenseExpression(expression, acknowledgement=said)]


def _origins(one: Component) -> list[ExternalReference]:
    if not one.url:
        return []
    kind = ExternalReferenceType.VCS if one.commit else ExternalReferenceType.DISTRIBUTION
    return [ExternalReference(type=kind, url=XsUri(one.url))]
