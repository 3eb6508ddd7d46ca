"""`mlfbuild bundle`, and `flash` and `verify` with a bundle: they refuse images and bundles that do not match.

tests/examples/test_stages.py verifies an image with a bundle.
"""

import io
import json
import tarfile
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from mlfbuild.core import sha256
from support.command import Ended, Folder

ARCHIVES = ("alpha.tar", "beta.tar")


@pytest.fixture
def folder(folder: Folder) -> Folder:
    """Return a folder without a project file, with archives of both models, a bundle of them, and what is an image."""
    (folder.root / "mlfbuild.yml").unlink()
    ids = []
    for archive in ARCHIVES:
        model = archive.replace(".tar", ".tflite")
        assert folder.run("compile", f"models/{model}", "--cpu", "cortex-m4", "-o", archive, "-q").status == 0
        ids.append(f"mlf:{model[:-7]}:{sha256((folder.root / 'models' / model).read_bytes())}:1.0\0")
    folder.write("app.elf", "".join(ids))
    ended = bundled(folder, "b.mlfbundle", "--board", "mps2-an386")
    assert ended.status == 0, ended.err
    return folder


def bundled(folder: Folder, output: str, *more: str) -> Ended:
    return folder.run("bundle", *ARCHIVES, "--vectors", "alpha=alpha.npz", "-o", output, "--format", "json", *more)


def changed(folder: Folder, member: str, edit: Callable[[bytes], bytes | None]) -> None:
    """Edit a member of the bundle, and its hash in the manifest unless it is the manifest; ``None`` removes it."""
    path = folder.root / "b.mlfbundle"
    with tarfile.open(path) as tar:
        files = {item.name[2:]: tar.extractfile(item).read() for item in tar if item.isfile()}  # type: ignore[union-attr]
    data = edit(files.pop(member, b""))
    if data is not None:
        files[member] = data
    if data is not None and member != "bundle.json":
        manifest = json.loads(files["bundle.json"])
        if member in manifest["files"]:
            manifest["files"][member] = sha256(data)
            files["bundle.json"] = json.dumps(manifest).encode()
    write_tar(path, files)


def write_tar(path: Path, files: Mapping[str, bytes]) -> None:
    with tarfile.open(path, "w") as tar:
        for name, content in files.items():
            header = tarfile.TarInfo(f"./{name}")
            header.size = len(content)
            tar.addfile(header, io.BytesIO(content))


def edited(**keys: object) -> Callable[[bytes], bytes]:
    """Return an edit of a JSON object."""
    return lambda data: json.dumps({**json.loads(data), **keys}).encode()


def test_a_bundle_has_the_hashes_of_its_inputs(folder: Folder) -> None:
    ended = bundled(folder, "c.mlfbundle", "--board", "mps2-an386", "--elf", "app.elf")
    assert "beta" in ended.err  # has no vectors
    assert ended.json["image_sha256"] == sha256((folder.root / "app.elf").read_bytes())
    assert ended.json["bundle_sha256"] == sha256((folder.root / "c.mlfbundle").read_bytes())
    for model, archive in zip(ended.json["models"], ARCHIVES, strict=True):
        source = (folder.root / f"models/{model['module']}.tflite").read_bytes()
        assert model["archive_sha256"] == sha256((folder.root / archive).read_bytes())
        assert (model["archive"], model["model_id"]) == (archive, sha256(source))
    assert [model["vectors"] for model in ended.json["models"]] == [True, False]


def test_the_same_input_gives_the_same_bytes_without_names_of_the_machine(folder: Folder) -> None:
    assert bundled(folder, "again.mlfbundle", "--board", "mps2-an386").status == 0
    data = (folder.root / "again.mlfbundle").read_bytes()
    assert data == (folder.root / "b.mlfbundle").read_bytes()
    assert str(folder.root).encode() not in data


def test_images_of_other_models_are_refused(folder: Folder) -> None:
    good = (folder.root / "app.elf").read_bytes()
    other = good.replace(good[10:20], b"0123456789")
    for data, model in ((other, "alpha"), (good[: good.index(b"mlf:beta")], "beta"), (b"", "alpha")):
        folder.write("app.elf", data)
        for words in (("verify", "--in"), ("flash", "--elf")):
            found = folder.refused(words[0], "--bundle", "b.mlfbundle", words[1], "app.elf")
            assert found == (5, "model-of-another-bundle", f"app.elf: model {model}")


def test_an_image_other_than_the_chosen_one_is_refused(folder: Folder) -> None:
    good = (folder.root / "app.elf").read_bytes()
    assert bundled(folder, "b.mlfbundle", "--board", "mps2-an386", "--elf", "app.elf").status == 0
    folder.write("app.elf", good + b"\0")
    ended = folder.run("flash", "--bundle", "b.mlfbundle", "--elf", "app.elf", "--format", "json")
    assert (ended.status, ended.error["code"], ended.error["place"]) == (5, "image-of-another-bundle", "app.elf")
    assert sha256(good) in ended.error["reason"] and sha256(good + b"\0") in ended.error["reason"]


@pytest.mark.parametrize(
    ("member", "edit", "code", "place"),
    [
        ("bundle.json", lambda _: None, "not-a-bundle", ""),
        ("bundle.json", lambda _: b"{", "json-invalid", ": bundle.json"),
        ("bundle.json", edited(mlfbuild_bundle=3), "json-value-invalid", ": bundle.json: mlfbuild_bundle"),
        ("bundle.json", edited(models=[]), "json-value-invalid", ": bundle.json: models"),
        ("bundle.json", edited(image_sha256="x"), "json-value-invalid", ": bundle.json: image_sha256"),
        ("bundle.json", edited(target={"name": "t", "cpu": "z80"}), "json-value-invalid", ": bundle.json: target.cpu"),
        ("bundle.json",
         edited(target={"name": "t", "cpu": "cortex-m4", "memory": {"ram": {"origin": 1 << 31, "size": 1 << 32}}}),
         "json-value-invalid", ": bundle.json: target.memory.ram.size"),
        ("vectors/alpha.npz", lambda _: None, "bundle-damaged", ": 'vectors/alpha.npz'"),
        ("vectors/more.npz", lambda _: b"x", "bundle-damaged", ": 'vectors/more.npz'"),
        ("modules/alpha.json", edited(module="beta"), "bundle-damaged", ": 'modules/alpha.json'"),
        ("modules/alpha.json", edited(inputs=[]), "test-firmware-damaged", ": modules/alpha.json"),
    ],
)  # fmt: skip
def test_damaged_bundles_are_refused(
    folder: Folder, member: str, edit: Callable[[bytes], bytes | None], code: str, place: str
) -> None:
    changed(folder, member, edit)
    found = folder.refused("verify", "--bundle", "b.mlfbundle", "--in", "app.elf")
    assert found == (5, code, f"b.mlfbundle{place}")


def test_a_changed_byte_is_found_by_its_hash(folder: Folder) -> None:
    path = folder.root / "b.mlfbundle"
    data = bytearray(path.read_bytes())
    data[data.index(b"PK\x03\x04") + 4] ^= 1
    path.write_bytes(data)
    found = folder.refused("flash", "--bundle", "b.mlfbundle", "--elf", "app.elf")
    assert found == (5, "bundle-damaged", "b.mlfbundle: 'vectors/alpha.npz'")


def test_mistakes(folder: Folder) -> None:
    two = ("bundle", *ARCHIVES, "-o", "c.mlfbundle")
    bundle = ("--bundle", "b.mlfbundle")
    image = ("--in", "app.elf")
    cases = {
        (*two, "--vectors", "alpha.npz"): "module-not-chosen",
        (*two, "--vectors", "gamma=alpha.npz"): "unknown-module",
        (*two, "--vectors", "=alpha.npz"): "module-not-chosen",
        (*two, "--vectors", "alpha=alpha.npz", "--vectors", "alpha=beta.npz"): "vectors-twice",
        (*two, "alpha.tar"): "module-twice",
        (*two, "--cpu", "cortex-a9"): "bundle-core-unsupported",
        (*two, "--board", "mps3-an547"): "bundle-board-mismatch",
        (*two, "--target", "m4"): "option-not-applicable",
        ("bundle", "-o", "c.mlfbundle", "--board", "mps2-an386"): "option-not-applicable",
        ("verify", *bundle): "bundle-without-image",
        ("flash", *bundle): "bundle-without-image",
        ("verify", *bundle, *image, "--emulator"): "option-not-applicable",
        ("flash", *bundle, "app"): "option-not-applicable",
        ("verify", "--runner", "gdb=:3333"): "option-needs-another",
        ("flash", "--board", "mps2-an386"): "option-needs-another",
        ("verify", *bundle, *image, "--runner", "gdb"): "runner-key-invalid",
        ("verify", *bundle, *image, "--runner", "gdb=localhost"): "runner-key-invalid",
        ("verify", *bundle, *image, "--runner", "gdb=:3333", "--runner", "uart=a.c"): "runner-key-invalid",
    }
    found = {words: folder.refused(*words)[:2] for words in cases}
    assert found == {words: (2, code) for words, code in cases.items()}
    assert "c.mlfbundle" not in folder.files()
    assert bundled(folder, "c.mlfbundle").status == 0
    assert folder.refused("verify", "--bundle", "c.mlfbundle", *image)[:2] == (2, "runner-missing")


def test_an_archive_in_which_nothing_can_be_called(folder: Folder) -> None:
    metadata = {"version": 7, "model_name": "op", "memory": {}, "target": ["c"], "executors": [], "style": "operator"}
    files = {"metadata.json": json.dumps(metadata).encode(), "codegen/host/src/op_lib0.c": b""}
    write_tar(folder.root / "op.tar", files)
    words = ("bundle", "op.tar", "-o", "c.mlfbundle")
    assert folder.refused(*words, "--vectors", "alpha.npz")[:2] == (2, "bundle-without-modules")
    assert folder.refused(*words)[:2] == (2, "bundle-without-modules")
