"""`mlfbuild sbom` before and after a project is built."""

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from spdx_tools.spdx.parser.parse_anything import parse_file
from spdx_tools.spdx.validation.document_validator import validate_full_spdx_document

import mlfbuild
from mlfbuild.cli.sbom import sbom
from mlfbuild.core.files import sha256
from mlfbuild.report.sbom.bom_files import FORMS
from support import warm
from support.command import Folder
from support.errors import assert_printed
from support.firmware_repo import tiny_network
from support.schemas import cyclonedx_mistake
from support.tflite_metadata import described, metadata

PROJECT = """\
mlfbuild: 1
targets:
  m4: {cpu: cortex-m4, board: mps2-an386}
  pc: {cpu: host}
models:
  alpha: {source: models/alpha.tflite, license: CC-BY-4.0}
  beta: {source: models/beta.tflite, targets: [m4], license: mit}
firmware:
  app: {sources: [main.c], targets: [m4]}
"""
MAIN = """\
#include "tvmgen_alpha.h"

int main(void) {
  static int8_t in[8], out[4];
  struct tvmgen_alpha_inputs inputs = {in};
  struct tvmgen_alpha_outputs outputs = {out};
  return tvmgen_alpha_run(&inputs, &outputs);
}
"""
BUILD = "run `mlfbuild build` first"


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory, tool: Callable[..., str]) -> Path:
    """Return the built project."""
    tool("cmake", "ninja", "gcc", "arm-none-eabi-gcc")
    root = tmp_path_factory.mktemp("built")
    (root / "models").mkdir(parents=True)
    (root / "mlfbuild.yml").write_text(PROJECT)
    (root / "main.c").write_text(MAIN)
    for seed, name in enumerate(("alpha", "beta")):
        (root / f"models/{name}.tflite").write_bytes(tiny_network(seed))
    warm.run("mlfbuild", "build", "-q", "-j", "1", cwd=root, check=True)
    return root


@pytest.fixture
def product(folder: Folder, built: Path) -> Folder:
    """Return a copy of the project for changes."""
    shutil.copytree(built, folder.root, dirs_exist_ok=True)
    return folder


@pytest.fixture
def unbuilt(folder: Folder) -> Folder:
    folder.write("mlfbuild.yml", PROJECT)
    return folder


def components(bill: Any) -> dict[str, Any]:
    return {one["ref"]: one for one in bill["components"]}


def related(bill: Any, source: str) -> set[tuple[str, str]]:
    return {(one["how"], one["target"]) for one in bill["relations"] if one["source"] == source}


def test_version_of_the_project_file_is_the_default(product: Folder) -> None:
    text = (product.root / "mlfbuild.yml").read_text()
    product.write("mlfbuild.yml", text + "version: 2.0.1\n")
    assert product.run("sbom", "--format", "json").json["project"]["version"] == "2.0.1"


def test_all_built_components_are_listed(product: Folder) -> None:
    ended = product.run("sbom", "--format", "json", "--release", "1.2", "--supplier", "Bells Ltd")
    assert (ended.status, ended.err) == (0, "")
    found = components(ended.json)
    assert (ended.json["project"]["name"], ended.json["project"]["version"]) == ("app", "1.2")
    assert {ref for ref in found if not ref.startswith(("kernels/", "tool/gcc"))} == {
        "archive/m4/alpha", "archive/m4/beta", "archive/pc/alpha", "code/m4/alpha", "code/m4/beta", "code/pc/alpha",
        "board/mps2-an386", "firmware/m4/app", "model/alpha", "model/beta", "tool/mlfbuild",
    }  # fmt: skip
    elf = product.root / "build/m4/app/app.elf"
    assert found["firmware/m4/app"]["sha256"] == sha256(elf.read_bytes())
    assert (found["firmware/m4/app"]["version"], found["firmware/m4/app"]["supplier"]) == ("1.2", "Bells Ltd")
    assert (ended.json["project"]["version"], ended.json["project"]["supplier"]) == ("1.2", "Bells Ltd")
    assert found["model/alpha"]["sha256"] == sha256((product.root / "models/alpha.tflite").read_bytes())
    assert found["archive/m4/beta"]["sha256"] == sha256((product.root / "build/mlf/m4/beta.tar").read_bytes())
    assert found["tool/mlfbuild"]["purl"] == f"pkg:pypi/mlfbuild@{mlfbuild.__version__}"
    licenses = {ref: one["license"] for ref, one in found.items()}
    assert (licenses["model/beta"], licenses["code/m4/beta"]) == ("MIT", "Apache-2.0 AND MIT")
    [compiler] = [one for ref, one in found.items() if ref.startswith("tool/gcc")]
    version = subprocess.run(["arm-none-eabi-gcc", "-dumpfullversion"], capture_output=True, text=True, check=True)
    assert compiler["version"] == version.stdout.strip()


def test_relations_of_components(product: Folder) -> None:
    bill = product.run("sbom", "--format", "json").json
    [kernels] = [ref for ref in components(bill) if ref.startswith("kernels/")]
    assert related(bill, "code/m4/alpha") == {
        ("generated from", "model/alpha"), ("generated from", "archive/m4/alpha"), ("depends on", kernels),
        ("made by", "tool/mlfbuild"),
    }  # fmt: skip
    assert {("contains", "code/m4/alpha"), ("contains", "code/m4/beta"), ("depends on", "board/mps2-an386")} < related(
        bill, "firmware/m4/app"
    )
    # No image contains the code for this machine, so the product itself contains it.
    assert related(bill, "project") == {("contains", "firmware/m4/app"), ("contains", "code/pc/alpha")}


def test_files_of_components_are_compiled_files(product: Folder) -> None:
    found = components(product.run("sbom", "--format", "json").json)
    files = {file["path"]: file for file in found["code/m4/alpha"]["files"]}
    assert set(files) == {
        "m4/alpha/codegen/host/include/tvmgen_alpha.h", "m4/alpha/codegen/host/src/alpha_lib0.c",
    }  # fmt: skip
    source = product.root / "build/mlf/m4/alpha/codegen/host/src/alpha_lib0.c"
    assert files["m4/alpha/codegen/host/src/alpha_lib0.c"]["sha256"] == sha256(source.read_bytes())
    [ref] = [ref for ref in found if ref.startswith("kernels/")]
    headers = {Path(file["path"]).name for file in found[ref]["files"]}
    included = set(re.findall(r'#include "mlfbuild/(\w+\.h)"', source.read_text()))
    asked = ["arm-none-eabi-gcc", "-mcpu=cortex-m4", "-MM", "-I../include", source.name]
    read = subprocess.run(asked, cwd=source.parent, capture_output=True, text=True, check=True).stdout
    assert included and included < headers
    assert {Path(name).name for name in re.findall(r"mlfbuild/\S+\.h", read)} <= headers
    assert "svdf.h" not in headers, "kernels that no model calls stay out"


def test_documents_are_valid_and_reproducible(product: Folder, tmp_path_factory: pytest.TempPathFactory) -> None:
    names = ("bom.json", "app.cdx.json", "out/app.spdx.json", "app.spdx")
    outputs = [word for name in names for word in ("-o", name)]
    ended = product.run("sbom", *outputs)
    assert (ended.status, ended.out) == (0, "")
    assert ended.err == "".join(f"{name}: written\n" for name in names)
    texts = {name: (product.root / name).read_text() for name in names}
    assert cyclonedx_mistake(texts["bom.json"]) is None
    assert texts["bom.json"] == texts["app.cdx.json"]
    assert validate_full_spdx_document(parse_file(str(product.root / "out/app.spdx.json"))) == []
    assert texts["app.spdx"].startswith("## Document Information\nSPDXVersion: SPDX-2.3\n")
    other = tmp_path_factory.mktemp("elsewhere") / "checkout"
    shutil.copytree(product.root, other)
    command = [sys.executable, "-W", "error", "-m", "mlfbuild", "sbom", "-q", *outputs]
    done = subprocess.run(command, cwd=other, env={**os.environ, "PYTHONHASHSEED": "7"}, check=False)
    assert done.returncode == 0
    assert {name: (other / name).read_text() for name in names} == texts
    assert not [name for name, text in texts.items() if str(product.root) in text or str(other) in text]


def test_date_is_source_date_epoch(product: Folder, monkeypatch: pytest.MonkeyPatch) -> None:
    fixed = json.loads(product.run("sbom", "--as", "cyclonedx").out)
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "1700000000")
    dated = json.loads(product.run("sbom", "--as", "cyclonedx").out)
    assert fixed["metadata"]["timestamp"] == "1980-01-01T00:00:00+00:00"
    assert dated["metadata"]["timestamp"] == "2023-11-14T22:13:20+00:00"
    assert fixed["serialNumber"] != dated["serialNumber"]
    assert "Created: 2023-11-14T22:13:20Z" in product.run("sbom", "--as", "spdx-tag-value").out
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "today")
    assert product.refused("sbom") == (2, "source-date-invalid", "SOURCE_DATE_EPOCH")


def test_a_table_for_people(product: Folder) -> None:
    ended = product.run("sbom", "--name", "doorbell", "--release", "2.0", status=0)
    lines = [" ".join(line.split()) for line in ended.out.splitlines()]
    assert lines[0] == "doorbell 2.0"
    digest = sha256((product.root / "models/beta.tflite").read_bytes())
    assert f"beta MIT sha256:{digest[:12]}..." in lines
    assert "beta code for m4 Apache-2.0 AND MIT 2 files" in lines
    assert product.run("sbom", "-q").out == ""


def test_one_model_of_one_target(product: Folder) -> None:
    found = components(product.run("sbom", "--format", "json", "--target", "m4", "--model", "beta").json)
    assert {ref for ref in found if ref.startswith(("code/", "model/", "firmware/"))} == {"code/m4/beta", "model/beta"}


def test_bill_before_the_build(unbuilt: Folder) -> None:
    ended = unbuilt.run("sbom", "--format", "json", status=0)
    found = components(ended.json)
    assert set(found) == {"firmware/m4/app", "model/alpha", "model/beta", "tool/mlfbuild"}
    assert found["firmware/m4/app"]["sha256"] == ""
    assert related(ended.json, "firmware/m4/app") == {("depends on", "model/alpha"), ("depends on", "model/beta")}
    notes = [
        f"alpha for m4: has not been built, so its code is not in the bill; {BUILD}",
        f"beta for m4: has not been built, so its code is not in the bill; {BUILD}",
        f"app for m4: the image is not built, so the bill has no hash of it; {BUILD}",
        f"alpha for pc: has not been built, so its code is not in the bill; {BUILD}",
    ]  # fmt: skip
    assert ended.json["notes"] == notes
    assert [json.loads(line)["text"] for line in ended.err.splitlines()] == notes
    ended = unbuilt.run("sbom", "-o", "app.cdx.json", "--strict", status=1)
    assert ended.err.splitlines()[-2] == "app.cdx.json: written"
    event = unbuilt.run("sbom", "--strict", "--format", "json").error
    assert (event["code"], event["place"]) == ("bill-incomplete", "sbom")
    assert cyclonedx_mistake((unbuilt.root / "app.cdx.json").read_text()) is None


def test_changed_files_are_noted(product: Folder) -> None:
    tree = product.root / "build/mlf/m4/alpha"
    with (tree / "codegen/host/src/alpha_lib0.c").open("a") as file:
        file.write("/* mine */\n")
    (product.root / "build/mlf/pc/alpha/codegen/host/include/tvmgen_alpha.h").unlink()
    product.write("models/beta.tflite", tiny_network(5))
    ended = product.run("sbom", status=0)
    repair = "run `mlfbuild build` to restore it"
    assert ended.err.splitlines() == [
        f"build/mlf/m4/alpha/codegen/host/src/alpha_lib0.c: was edited; {repair}",
        "beta for m4: was built from another model file, with other settings, or by another mlfbuild; " + BUILD,
        f"build/mlf/pc/alpha/codegen/host/include/tvmgen_alpha.h: is missing; {repair}",
    ]


def test_an_image_of_another_model_file(product: Folder) -> None:
    product.write("models/alpha.tflite", tiny_network(5))
    assert product.run("build", "-q", "--model", "alpha").status == 0
    ended = product.run("sbom")
    assert ended.err == "app for m4: the image has the model alpha of another model file; build it again\n"


def test_images_of_another_build(product: Folder) -> None:
    elf = product.root / "build/m4/app/app.elf"
    shutil.copy(elf, product.root / "boot.elf")
    elf.unlink()
    arguments = ("sbom", "--target", "m4", "--format", "json")
    bill = product.run(*arguments, "--elf", "boot.elf").json
    image = components(bill)["firmware/m4/boot"]
    assert (image["file"], image["sha256"]) == ("boot.elf", sha256((product.root / "boot.elf").read_bytes()))
    assert ("contains", "code/m4/alpha") in related(bill, "firmware/m4/boot")
    assert ("contains", "code/m4/beta") not in related(bill, "firmware/m4/boot"), "the linker dropped it"
    (product.root / "boot.elf").rename(product.root / "app.elf")
    bill = product.run(*arguments, "--elf", "app.elf").json
    assert bill["notes"] == []
    assert components(bill)["firmware/m4/app"]["sha256"] == image["sha256"]
    product.write("none.elf", b"no image")
    ended = product.run("sbom", "--target", "m4", "--elf", "app.elf", "--elf", "none.elf", status=0)
    assert ended.err == (
        "none.elf: the image has no id of a model in the bill; name the linked ELF file, or its target\n"
    )


@pytest.mark.parametrize("license_key", ["", "license: LicenseRef-Acme"])
def test_unknown_licences(product: Folder, license_key: str) -> None:
    product.write("mlfbuild.yml", PROJECT.replace("license: mit", license_key))
    ended = product.run("sbom", "--as", "spdx-tag-value", "--strict")
    if license_key:
        assert (ended.status, ended.err) == (0, "")
        assert "PackageLicenseConcluded: Apache-2.0 AND LicenseRef-Acme\n" in ended.out
        assert "LicenseID: LicenseRef-Acme\n" in ended.out
        return
    assert ended.status == 1
    assert ended.err.splitlines()[0].startswith("mlfbuild.yml:7:9: models.beta: its licence is unknown; add `license:`")
    assert "PackageName: beta\n" in ended.out and "PackageLicenseDeclared: NOASSERTION\n" in ended.out


TVM = """\
mlfbuild: 1
targets:
  pc: {cpu: host}
models:
  add: {source: ARCHIVE, license: MIT}
"""


def test_an_archive_of_tvm(folder: Folder, shared: Path) -> None:
    archive = shared / "archives/add-aotc.tar"
    folder.write("add.tar", archive.read_bytes())
    folder.write("mlfbuild.yml", TVM.replace("ARCHIVE", "add.tar"))
    assert folder.run("build", "-q").status == 0
    ended = folder.run("sbom", "--format", "json")
    assert (ended.status, ended.err) == (0, "")
    found = components(ended.json)
    assert ended.json["project"]["name"] == "add"
    assert (found["tool/tvm-0.14.0"]["purl"], found["tool/tvm-0.14.0"]["license"]) == (
        "pkg:pypi/apache-tvm@0.14.0", "Apache-2.0",
    )  # fmt: skip
    assert found["model/add"]["file"] == "add.tar"
    assert found["code/pc/add"]["license"] == "", "what TVM's code has of others is not stated"
    [runtime] = [one for ref, one in found.items() if ref.startswith("runtime/")]
    assert (runtime["name"], runtime["license"]) == ("mlfbuild runtime", "Apache-2.0")
    assert {("made by", "tool/tvm-0.14.0"), ("depends on", runtime["ref"])} < related(ended.json, "code/pc/add")


def test_declared_dependencies_before_the_build(unbuilt: Folder, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MLFBUILD_CACHE", str(unbuilt.root / "cache"))
    dependencies = """\
dependencies:
  cmsis-nn: {git: https://github.com/ARM-software/CMSIS-NN, version: v7.0.0}
  odd: {git: file:///srv/odd, version: main, license: LicenseRef-Odd}
  local: {path: nn, version: "2.0"}
  zip: {url: https://x.example/nn.zip, sha256: DIGEST, license: MIT}
  installed: {package: NN, license: MIT}
""".replace("DIGEST", "ab" * 32)
    (unbuilt.root / "nn/src").mkdir(parents=True)
    unbuilt.write("nn/src/nn.c", "int nn;\n")
    unbuilt.write("mlfbuild.yml", PROJECT + dependencies)
    ended = unbuilt.run("sbom", "--format", "json", status=0)
    found = {ref: one for ref, one in components(ended.json).items() if ref.startswith("dependency/")}
    assert {ref: (one["version"], one["license"], one["purl"], one["url"]) for ref, one in found.items()} == {
        "dependency/cmsis-nn": (
            "v7.0.0", "Apache-2.0", "pkg:github/arm-software/cmsis-nn@v7.0.0",
            "https://github.com/ARM-software/CMSIS-NN",
        ),
        "dependency/odd": ("main", "LicenseRef-Odd", "pkg:generic/odd@main", ""),
        "dependency/local": ("2.0", "", "pkg:generic/local@2.0", ""),
        "dependency/zip": (
            "", "MIT", f"pkg:generic/zip?checksum=sha256:{'ab' * 32}&download_url=https://x.example/nn.zip",
            "https://x.example/nn.zip",
        ),
        "dependency/installed": ("", "MIT", "pkg:generic/installed", ""),
    }  # fmt: skip
    assert re.search(r"mlfbuild.yml:13:\d+: dependencies.local: its licence is unknown; add `license:`", ended.err)
    assert "dependencies.cmsis-nn: v7.0.0 of https://github.com/ARM-software/CMSIS-NN is not in " in ended.err
    for form in FORMS:
        assert "/srv" not in unbuilt.run("sbom", "--as", form).out, "another machine has other folders"


def test_a_licence_in_words_of_a_model_file(unbuilt: Folder) -> None:
    written = metadata(license="Apache License. Version 2.0", author="Ann", description="finds cats", version="v2")
    unbuilt.write("models/beta.tflite", described("", written))
    unbuilt.write("mlfbuild.yml", PROJECT.replace(", license: mit", ""))
    ended = unbuilt.run("sbom", "--format", "json")
    beta = components(ended.json)["model/beta"]
    assert (beta["license"], beta["author"], beta["description"], beta["version"]) == (
        "Apache License. Version 2.0", "Ann", "finds cats", "v2",
    )  # fmt: skip
    place, licence = "mlfbuild.yml:7:9: models.beta: ", "'Apache License. Version 2.0'"
    assert [note for note in ended.json["notes"] if note.startswith(place) and licence in note]
    assert "ExtractedText: Apache License. Version 2.0\n" in unbuilt.run("sbom", "--as", "spdx-tag-value").out
    unbuilt.write("mlfbuild.yml", PROJECT.replace("license: mit", "license: Apache-2.0"))
    assert "ExtractedText" not in unbuilt.run("sbom", "--as", "spdx-tag-value").out


def test_trees_of_other_build_systems(unbuilt: Folder) -> None:
    chosen = ("--target", "pc", "--model", "alpha", "--build-dir", "out")
    assert unbuilt.run("generate", *chosen).status == 0
    ended = unbuilt.run("sbom", "--format", "json", *chosen)
    assert (ended.status, ended.err) == (0, "")
    assert components(ended.json)["archive/pc/alpha"]["sha256"] == sha256(
        (unbuilt.root / "out/mlf/pc/alpha.tar").read_bytes()
    )


def test_documented_forms_can_be_written() -> None:
    [choice] = [parameter.type for parameter in sbom.params if parameter.name == "form"]
    assert tuple(choice.choices) == FORMS


# Mistakes ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "refused"),
    [
        ("-o bill.xml", (2, "unknown-bill-suffix", "bill.xml")),
        ("--as spdx -o models", (2, "output-is-folder", "models")),
        ("--as spdx -o main.c", (6, "output-of-another-kind", "main.c")),
        ("-o main.c/x.spdx", (8, "file-in-the-way", "main.c")),
        ("--target m5", (2, "unknown-target", "target 'm5'")),
        ("--model gamma", (2, "unknown-model", "model 'gamma'")),
        ("--elf no.elf", (2, "target-not-chosen", "no.elf")),
        ("--target m4 --elf nowhere.elf", (5, "no-such-input", "nowhere.elf")),
    ],
)
def test_mistakes(unbuilt: Folder, options: str, refused: tuple[int, str, str]) -> None:
    before = (unbuilt.root / "main.c").read_bytes()
    assert unbuilt.refused("sbom", *options.split()) == refused
    assert (unbuilt.root / "main.c").read_bytes() == before


def test_a_document_is_replaced_only_by_one_of_its_form(unbuilt: Folder) -> None:
    assert unbuilt.run("sbom", "-o", "a.spdx").status == 0
    assert unbuilt.run("sbom", "-o", "a.spdx").status == 0
    arguments = ("sbom", "-o", "a.spdx", "--as", "cyclonedx")
    assert unbuilt.refused(*arguments) == (6, "output-of-another-kind", "a.spdx")


def test_licences_in_the_project_file_are_checked(unbuilt: Folder) -> None:
    unbuilt.write("mlfbuild.yml", PROJECT.replace("license: mit", "license: Apache 2"))
    assert unbuilt.mistakes("sbom") == [("invalid-license", "mlfbuild.yml:7:62: models.beta.license")]


def test_damaged_archive_is_refused(product: Folder) -> None:
    product.write("build/mlf/m4/alpha.tar", b"no tar")
    assert product.refused("sbom") == (5, "archive-not-tar", "build/mlf/m4/alpha.tar")


def test_without_the_extra_the_packages_are_named(unbuilt: Folder) -> None:
    blocked = "import sys; sys.modules['spdx_tools'] = None; sys.modules['packageurl'] = None; "
    command = [
        sys.executable,
        "-c",
        f"{blocked}from mlfbuild.cli import main; sys.exit(main(['sbom', '-o', 'a.spdx']))",
    ]
    done = subprocess.run(command, cwd=unbuilt.root, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (3, "")
    packages = ("'spdx-tools>=0.8.5,<0.9'", "'packageurl-python>=0.16'")
    assert_printed(done.stderr, "extra-not-installed", "mlfbuild: sbom", *packages)
    assert not (unbuilt.root / "a.spdx").exists()
