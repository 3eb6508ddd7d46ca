"""CycloneDX and SPDX documents of a bill, checked by the validators of their libraries, and read back."""

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from cyclonedx.model.bom import Bom as CdxBom
from spdx_tools.spdx.model import ActorType, Document, RelationshipType
from spdx_tools.spdx.parser.parse_anything import parse_file
from spdx_tools.spdx.validation.document_validator import validate_full_spdx_document

from mlfbuild.library.requirement import Requirement
from mlfbuild.report.sbom.bom import Bom, Component, How, Kind
from mlfbuild.report.sbom.bom_files import CYCLONEDX, FORMS, SPDX, SPDX_TAG_VALUE, document, form_of
from mlfbuild.report.sbom.components import required_component, tvm_tool
from mlfbuild.report.sbom.sbom_document import Bill, bom_file
from support.schemas import cyclonedx_mistake


def sample() -> Bom:
    """Return a bill with a component of each kind, and every kind of licence."""
    bill = Bill(Component("project", Kind.PROJECT, "doorbell", "2.1", supplier="Bells Ltd"), 315532800)
    tool = bill.add(Component("tool/mlfbuild", Kind.TOOL, "mlfbuild", "0.1.0", "pkg:pypi/mlfbuild@0.1.0", "Apache-2.0"))
    image = Component("firmware/m4/app", Kind.FIRMWARE, "app", "2.1", file="app.elf", sha256="1" * 64)
    model = Component(
        "model/kws", Kind.MODEL, "kws", license="Apache License. Version 2.0", description="hears words", author="Ann",
        file="kws.tflite", sha256="2" * 64, purl=f"pkg:generic/kws?checksum=sha256:{'2' * 64}",
    )  # fmt: skip
    code = Component(
        "code/m4/kws", Kind.CODE, "kws code for m4", license="Apache-2.0 AND LicenseRef-Acme", license_concluded=True,
        properties={"target": "m4"}, files=(bom_file("m4/kws/b.c", b"int b;\n"), bom_file("m4/kws/a.h", b"\n")),
    )  # fmt: skip
    library = Component(
        "dependency/cmsis-nn", Kind.LIBRARY, "CMSIS-NN", "v7.0.0", "pkg:github/arm-software/cmsis-nn@v7.0.0",
        "Apache-2.0", url="https://github.com/ARM-software/CMSIS-NN", commit="ab" * 20,
    )  # fmt: skip
    archive = Component("archive/m4/kws", Kind.ARCHIVE, "kws.tar", file="kws.tar", sha256="3" * 64)
    unknown = Component("dependency/nn_x", Kind.LIBRARY, "nn_x", url="https://x.example/nn.zip", sha256="4" * 64)
    for one in (image, model, code, library, archive, unknown):
        bill.add(one)
    bill.relate(image.ref, How.CONTAINS, code.ref)
    bill.relate(code.ref, How.GENERATED_FROM, model.ref)
    bill.relate(code.ref, How.DEPENDS_ON, library.ref)
    bill.relate(code.ref, How.MADE_BY, tool)
    return bill.done()


@pytest.fixture(scope="module")
def bom() -> Bom:
    return sample()


def read_spdx(text: str, name: str, folder: Path) -> Document:
    path = folder / name
    path.write_text(text)
    read = parse_file(str(path))
    assert validate_full_spdx_document(read) == []
    return read


@pytest.mark.parametrize(
    ("form", "name"), [(CYCLONEDX, "x.cdx.json"), (SPDX, "x.spdx.json"), (SPDX_TAG_VALUE, "x.spdx")]
)
def test_documents_in_full(bom: Bom, form: str, name: str, golden: Callable[[str, str], None]) -> None:
    assert form_of(Path(name)) == form
    assert document(bom, form) == document(sample(), form)
    text = document(bom, form)
    golden(text if name.endswith(".spdx") else f"{json.dumps(json.loads(text), indent=1, sort_keys=True)}\n", name)


def test_cyclonedx_is_valid_and_read_back(bom: Bom) -> None:
    text = document(bom, CYCLONEDX)
    assert cyclonedx_mistake(text) is None
    read = CdxBom.from_json(json.loads(text))  # type: ignore[attr-defined]  # a decorator adds it
    assert read.serial_number == bom.identity()
    assert read.metadata.component.supplier.name == "Bells Ltd"
    found = {str(one.bom_ref): one for one in read.components}
    assert set(found) == {one.ref for one in bom.components if one.kind is not Kind.TOOL}
    assert str(found["dependency/cmsis-nn"].purl) == "pkg:github/arm-software/cmsis-nn@v7.0.0"
    assert found["model/kws"].type.value == "machine-learning-model"
    assert {file.name for file in found["code/m4/kws"].components} == {"m4/kws/a.h", "m4/kws/b.c"}
    assert [str(tool.purl) for tool in read.metadata.tools.components] == ["pkg:pypi/mlfbuild@0.1.0"]
    wanted = {str(one.ref): {str(other.ref) for other in one.dependencies} for one in read.dependencies}
    assert wanted["code/m4/kws"] == {"model/kws", "dependency/cmsis-nn"}
    assert wanted["project"] == {"firmware/m4/app", "archive/m4/kws", "dependency/nn_x"}


# Its parser of tag-value does not close a file of tables.
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning", "ignore::ResourceWarning")
def test_spdx_is_valid_and_read_back(bom: Bom, tmp_path: Path) -> None:
    for form, name in ((SPDX, "x.spdx.json"), (SPDX_TAG_VALUE, "x.spdx")):
        read = read_spdx(document(bom, form), name, tmp_path)
        packages = {package.name: package for package in read.packages}
        assert set(packages) == {one.name for one in (bom.project, *bom.components)}
        creators = [(one.actor_type, one.name) for one in read.creation_info.creators]
        assert creators == [(ActorType.ORGANIZATION, "Bells Ltd"), (ActorType.TOOL, "mlfbuild-0.1.0")]
        assert (packages["doorbell"].supplier.name, str(packages["kws"].supplier)) == ("Bells Ltd", "NOASSERTION")
        nn = packages["CMSIS-NN"]
        assert nn.download_location == f"git+https://github.com/ARM-software/CMSIS-NN@{'ab' * 20}"
        assert nn.source_info == f"Git commit {'ab' * 20}"
        assert [(ref.reference_type, ref.locator) for ref in nn.external_references] == [
            ("purl", "pkg:github/arm-software/cmsis-nn@v7.0.0")
        ]
        assert (str(nn.license_declared), str(nn.license_concluded)) == ("Apache-2.0", "NOASSERTION")
        assert str(packages["kws code for m4"].license_concluded) == "Apache-2.0 AND LicenseRef-Acme"
        assert str(packages["nn_x"].license_declared) == "NOASSERTION"
        words = {one.license_id: one.extracted_text for one in read.extracted_licensing_info}
        assert words[str(packages["kws"].license_declared)] == "Apache License. Version 2.0"
        assert "LicenseRef-Acme" in words
        said = {(one.spdx_element_id, one.relationship_type, one.related_spdx_element_id) for one in read.relationships}
        code = packages["kws code for m4"].spdx_id
        assert (code, RelationshipType.GENERATED_FROM, packages["kws"].spdx_id) in said
        assert (packages["mlfbuild"].spdx_id, RelationshipType.BUILD_TOOL_OF, code) in said
        assert ("SPDXRef-DOCUMENT", RelationshipType.DESCRIBES, packages["doorbell"].spdx_id) in said
        assert sum(source == code and how is RelationshipType.CONTAINS for source, how, _ in said) == 2


def test_the_verification_code_is_that_of_the_specification(bom: Bom) -> None:
    # printf 'int b;\n' | sha1sum, printf '\n' | sha1sum; then of both in order, without anything between them
    read = json.loads(document(bom, SPDX))
    [code] = [package for package in read["packages"] if package["name"] == "kws code for m4"]
    assert code["packageVerificationCode"] == {"packageVerificationCodeValue": VERIFICATION_CODE}


VERIFICATION_CODE = "61ce7367c5bac81ae99a8bed780b532429779af8"


def test_different_content_has_another_identity(bom: Bom) -> None:
    other = replace(bom, project=replace(bom.project, version="2.2"))
    assert other.identity() != bom.identity()
    assert replace(bom, notes=("something",)).identity() == bom.identity()


def test_unknown_licence_names_stay_distinct() -> None:
    bill = Bill(Component("project", Kind.PROJECT, "p"), 0)
    for name in ("a_b", "a-b", "a b", "a.b"):
        bill.add(Component(f"dependency/{name}", Kind.LIBRARY, name))
    ids = {package["SPDXID"] for package in json.loads(document(bill.done(), SPDX))["packages"]}
    assert len(ids) == 5


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning", "ignore::ResourceWarning")
def test_odd_texts_do_not_break_a_document(form: str, tmp_path: Path) -> None:
    odd = '<text>x</text> PackageName: "evil" \\ \u00e9 \U0001f600 #%: (a) {b}'
    bill = Bill(Component("project", Kind.PROJECT, odd, odd), 0)
    bill.add(Component("tool/mlfbuild", Kind.TOOL, "mlfbuild", "0.1.0"))
    bill.add(
        Component("model/kws", Kind.MODEL, "kws", odd, license=odd, description=odd, author=odd, properties={"a": odd},
                  file=odd, files=(bom_file(odd, b""),))
    )  # fmt: skip
    text = document(bill.done(), form)
    if form == CYCLONEDX:
        assert cyclonedx_mistake(text) is None
        assert json.loads(text)["metadata"]["component"]["version"] == odd
    elif form == SPDX:
        packages = {package.name: package for package in read_spdx(text, "x.spdx.json", tmp_path).packages}
        assert packages["kws"].description == odd
    else:
        assert [line for line in text.splitlines() if line.startswith("PackageName:")] == [
            f"PackageName: {odd}", "PackageName: kws", "PackageName: mlfbuild",
        ]  # fmt: skip


HOSTILE = ("a\nPackageName: evil", "\ud800", "../..", "@", "/", "%", "?#", "\x00\x1b[2J", ".", " ", "\u202e")


@pytest.mark.parametrize("text", HOSTILE, ids=ascii)
def test_names_and_versions_of_archives_are_not_trusted(text: str) -> None:
    bill = Bill(Component("project", Kind.PROJECT, "p"), 0)
    bill.add(required_component(Requirement(text, text)))
    bill.add(tvm_tool(text))
    bill.add(Component("code/m4/kws", Kind.CODE, "kws", files=(bom_file(f"m4/{text}.c", b""),), properties={"a": text}))
    bom = bill.done()
    assert cyclonedx_mistake(document(bom, CYCLONEDX)) is None
    documents = [document(bom, form).encode() for form in (SPDX, SPDX_TAG_VALUE)]
    names = [line for line in documents[1].splitlines() if line.startswith(b"PackageName: ")]
    assert len(names) == 4 and b"PackageName: evil" not in names
