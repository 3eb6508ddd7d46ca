"""`mlfbuild provenance`: a statement that the libraries of in-toto accept, about the image as it was built."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from google.protobuf import json_format
from in_toto_attestation.predicates.provenance.v1.provenance_pb2 import Provenance as SlsaProvenance
from in_toto_attestation.v1.resource_descriptor import ResourceDescriptor
from in_toto_attestation.v1.statement import Statement
from in_toto_attestation.v1.statement_pb2 import Statement as StatementMessage

from mlfbuild import __version__
from mlfbuild.core import sha256
from mlfbuild.report.provenance import Artifact, Provenance
from support import warm
from support.command import CALLS_ALPHA, Folder
from support.firmware_repo import tiny_network
from support.schemas import cyclonedx_mistake
from support.signing import make_key, signer_line

PROJECT = """\
mlfbuild: 1
targets:
  pc: {cpu: host}
  m4: {cpu: cortex-m4}
models:
  alpha: {source: models/alpha.tflite, parameters: replaceable}
firmware:
  app: {sources: [main.c], targets: [pc]}
"""
ELF = "build/pc/app/app"


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory, tool: Callable[..., str]) -> Path:
    """Return the built project, with a key and its owner as the only allowed signer."""
    tool("cmake", "ninja", "gcc", "ssh-keygen")
    root = tmp_path_factory.mktemp("built")
    (root / "models").mkdir()
    (root / "mlfbuild.yml").write_text(PROJECT)
    (root / "main.c").write_text(CALLS_ALPHA)
    (root / "models/alpha.tflite").write_bytes(tiny_network(0))
    (root / "signers").write_text(signer_line(make_key(root / "key"), "ci@example.com"))
    warm.run("mlfbuild", "build", "-q", "-j", "1", "--target", "pc", cwd=root, check=True)
    return root


@pytest.fixture
def product(folder: Folder, built: Path) -> Folder:
    """Return a copy of the project for changes."""
    shutil.copytree(built, folder.root, dirs_exist_ok=True)
    return folder


def checked(text: str) -> Any:
    """Return the statement after the libraries of in-toto have accepted it, with all that SLSA requires in it."""
    found = json.loads(text)
    message = json_format.Parse(text, StatementMessage())
    Statement.copy_from_pb(message).validate()
    assert message.predicate_type == "https://slsa.dev/provenance/v1"
    predicate = json_format.ParseDict(found["predicate"], SlsaProvenance())
    definition, details = predicate.build_definition, predicate.run_details
    # The fields that https://slsa.dev/spec/v1.0/provenance requires.
    assert definition.build_type and len(definition.external_parameters) and details.builder.id
    for each in definition.resolved_dependencies:
        ResourceDescriptor.copy_from_pb(each).validate()
        assert each.uri or each.digest, each
    return found


def digests(descriptors: Any) -> dict[str, str]:
    return {each["name"]: each["digest"]["sha256"] for each in descriptors if "digest" in each}


def test_the_statement_is_valid_and_has_the_hashes_of_the_files(product: Folder) -> None:
    statement = checked(product.run("provenance", ELF, status=0).out)
    blob = "build/mlf/pc/alpha/codegen/host/parameters/alpha.bin"
    subjects = {"app": ELF, "alpha.tar": "build/mlf/pc/alpha.tar", "alpha.bin": blob}
    assert digests(statement["subject"]) == {
        name: sha256((product.root / path).read_bytes()) for name, path in subjects.items()
    }
    definition = statement["predicate"]["buildDefinition"]
    assert definition["externalParameters"] == {
        "project": "mlfbuild.yml", "target": "pc", "firmware": "app", "models": ["alpha"],
    }  # fmt: skip
    files = {"mlfbuild.yml", "models/alpha.tflite", "main.c"}
    assert digests(definition["resolvedDependencies"]) == {
        name: sha256((product.root / name).read_bytes()) for name in files
    }
    tools = {each["name"]: each["uri"] for each in definition["resolvedDependencies"] if "uri" in each}
    assert tools == {"cc": "pkg:generic/cc", "mlfbuild": f"pkg:pypi/mlfbuild@{__version__}"}
    details = {"builder": {"id": f"pkg:pypi/mlfbuild@{__version__}", "version": {"mlfbuild": __version__}}}
    assert statement["predicate"]["runDetails"] == details


def test_the_same_build_gives_the_same_bytes_in_every_folder(product: Folder, built: Path) -> None:
    elsewhere = product.run("provenance", str(built / ELF), "-f", str(built / "mlfbuild.yml"), status=0).out
    assert product.run("provenance", ELF).out == product.run("provenance", ELF).out == elsewhere
    assert str(built) not in elsewhere


def test_lock_file_and_builder(product: Folder) -> None:
    lock = product.write("mlfbuild.lock", "any lock file")
    statement = checked(product.run("provenance", ELF, "--builder", "https://ci.example.com/runner").out)
    dependencies = digests(statement["predicate"]["buildDefinition"]["resolvedDependencies"])
    assert dependencies["mlfbuild.lock"] == sha256(lock.read_bytes())
    assert statement["predicate"]["runDetails"]["builder"]["id"] == "https://ci.example.com/runner"


def test_dates_are_those_of_source_date_epoch() -> None:
    image, of = Artifact("app.elf", "0" * 64), {"target": "m4"}
    dated = checked(Provenance((image,), of, (), "https://b", "1.0", 1700000000).to_text())["predicate"]
    assert dated["runDetails"]["metadata"] == {"finishedOn": "2023-11-14T22:13:20Z"}
    assert dated["buildDefinition"]["internalParameters"] == {"SOURCE_DATE_EPOCH": 1700000000}
    undated = checked(Provenance((image,), of, (), "https://b", "1.0").to_text())["predicate"]
    assert "metadata" not in undated["runDetails"]


def test_a_copy_of_the_image_needs_its_target(product: Folder) -> None:
    shutil.copy(product.root / ELF, product.root / "copy.elf")
    assert product.refused("provenance", "copy.elf") == (2, "target-not-chosen", "copy.elf")
    statement = checked(product.run("provenance", "copy.elf", "--target", "pc").out)
    assert statement["subject"][0]["name"] == "copy.elf"
    assert "firmware" not in statement["predicate"]["buildDefinition"]["externalParameters"]


@pytest.mark.parametrize(
    ("file", "code"),
    [
        ("models/alpha.tflite", "image-out-of-date"),
        ("main.c", "image-out-of-date"),
        (ELF, "image-out-of-date"),
        ("build/mlf/pc/alpha.tar", "provenance-without-models"),
    ],
)
def test_nothing_is_claimed_of_images_that_are_not_made_from_what_is_here(
    product: Folder, file: str, code: str
) -> None:
    path = product.root / file
    if path.suffix == ".tar":
        path.unlink()
    else:
        path.write_bytes(tiny_network(5) if path.suffix == ".tflite" else path.read_bytes() + b"\n")
    status, found, place = product.refused("provenance", ELF)
    assert (status, found, Path(place).name) == (1, code, "app")


def test_an_archive_of_another_model_file(product: Folder) -> None:
    right, wrong = (sha256(tiny_network(seed)).encode() for seed in (0, 5))
    product.write("old.elf", (product.root / ELF).read_bytes().replace(right, wrong))
    assert product.refused("provenance", "old.elf", "--target", "pc") == (1, "image-out-of-date", "old.elf")


@pytest.mark.parametrize(
    ("arguments", "refused"),
    [
        ("gone.elf", (5, "no-such-input", "gone.elf")),
        (f"{ELF} --target gone", (2, "unknown-target", "target 'gone'")),
        ("main.c --target pc", (5, "not-an-elf-image", "main.c")),
        (f"{ELF} --build-dir gone", (2, "no-build-folder", "--build-dir gone")),
        (f"{ELF} -o main.c", (6, "output-of-another-kind", "main.c")),
        (f"{ELF} --builder ci", (2, "builder-not-uri", "--builder ci")),
        (f"{ELF} --sign key", (2, "option-needs-another", "--sign")),
        (f"{ELF} -o out.json --sign gone", (5, "no-such-input", "gone")),
    ],
)
def test_mistakes(product: Folder, arguments: str, refused: tuple[int, str, str]) -> None:
    assert product.refused("provenance", *arguments.split()) == refused
    assert not (product.root / "out.json").exists()


def test_a_statement_is_signed_and_written_again(product: Folder) -> None:
    written = product.run("provenance", ELF, "-o", "app.json", "--sign", "key", status=0)
    assert written.err == "app.json: written\napp.json.sig: written\n"
    product.run("verify-signature", "app.json", "--signers", "signers", "--identity", "ci@example.com", status=0)
    product.run("provenance", ELF, "-o", "app.json", status=0)  # replaces it by the same bytes
    product.run("verify-signature", "app.json", "--signers", "signers", status=0)


def test_bill_lists_the_parameters(product: Folder) -> None:
    bill = product.run("sbom", "--target", "pc", "--format", "json").json
    (blob,) = [one for one in bill["components"] if one["kind"] == "parameters"]
    (linked,) = [one for one in bill["components"] if one["ref"] == "model/alpha"]
    data = (product.root / "build/mlf/pc/alpha/codegen/host/parameters/alpha.bin").read_bytes()
    assert (blob["ref"], blob["sha256"], blob["license"]) == ("parameters/pc/alpha", sha256(data), linked["license"])
    related = {(one["source"], one["how"], one["target"]) for one in bill["relations"]}
    assert {
        ("code/pc/alpha", "contains", "parameters/pc/alpha"), ("parameters/pc/alpha", "generated from", "model/alpha"),
    } <= related  # fmt: skip
    for form in ("cyclonedx", "spdx"):
        text = product.run("sbom", "--target", "pc", "--as", form).out
        assert sha256(data) in text and (form != "cyclonedx" or cyclonedx_mistake(text) is None)
