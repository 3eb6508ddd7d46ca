"""`mlfbuild convert`: versions of the format, and names of modules."""

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from mlfbuild.archive import tar
from support.command import Folder
from support.old_archives import model_archive
from support.packed_archives import packed_archive
from support.sound_archives import shared_storage
from support.tvm_archives import tvm_files


def test_conversion_keeps_all_content(archives: Folder) -> None:
    ended = archives.run("convert", "net.tar", "--to", "5", "-o", "out/net5.tar")
    size = (archives.root / "out/net5.tar").stat().st_size
    assert (ended.status, ended.out, ended.err) == (0, f"out/net5.tar: version 5, {size:,} bytes\n", "")
    assert archives.run("inspect", "out/net5.tar").out.startswith("Model Library Format version 5,")
    back = archives.run("convert", "out/net5.tar", "-o", "net7.tar", "--format", "json").json
    assert back == {
        "archive": "net7.tar",
        "version": 7,
        "size": (archives.root / "net7.tar").stat().st_size,
        "moved": [],
    }
    for other in ("out/net5.tar", "net7.tar"):
        ended = archives.run("compare", "net.tar", other, status=0)
        assert ended.out.startswith(f"net.tar and {other} have the same meaning\n")
    assert archives.run("convert", "net.tar", "--to", "6", "-o", "net6.tar", "-q").out == ""


@pytest.mark.parametrize("form", ["json", "bson"])
def test_parameters_in_another_form_and_back(archives: Folder, form: str) -> None:
    assert archives.run("convert", "net.tar", "--params", form, "-o", "other.tar").status == 0
    assert archives.run("convert", "other.tar", "-o", "back.tar").status == 0
    for other in ("other.tar", "back.tar"):
        assert archives.run("compare", "net.tar", other).status == 0
    names = {other: set(tar.members((archives.root / other).open("rb"), other)) for other in ("other.tar", "back.tar")}
    assert names["other.tar"] - names["back.tar"] == {f"parameters/net.{form}"}


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (("both.tar", "--to", "5"), "format-holds-one-module"),
        (("both.tar", "--to", "1"), "format-holds-one-module"),
        (("tiny.tar", "--to", "0"), "format-version-not-written"),
        (("tiny.tar", "--to", "8"), "format-version-not-written"),
        (("tiny.tar", "--to", "-1"), "format-version-not-written"),
    ],
)
def test_impossible_versions_are_refused(archives: Folder, arguments: tuple[str, ...], code: str) -> None:
    assert archives.refused("convert", *arguments, "-o", "out.tar") == (2, code, "")
    assert not (archives.root / "out.tar").exists()


def test_unknown_fields_are_named_if_they_move(archives: Folder) -> None:
    files = model_archive(7)
    document = json.loads(files["metadata.json"])
    document["modules"]["add"]["memory"]["bank"] = 3
    document["tool"] = "x"
    files["metadata.json"] = json.dumps(document).encode()
    archives.write("odd.tar", b"".join(tar.pack(files, 0)))
    assert "/memory/bank = 3" in archives.run("inspect", "odd.tar").out
    assert archives.run("convert", "odd.tar", "-o", "same.tar", "--format", "json").json["moved"] == []
    ended = archives.run("convert", "odd.tar", "--to", "1", "-o", "one.tar")
    assert ended.out.splitlines()[1].endswith(": /memory/bank, /tool")
    assert archives.run("compare", "odd.tar", "one.tar").status == 0
    assert archives.run("compare", "odd.tar", "net.tar").status == 1
    document["tool"] = "y"
    files["metadata.json"] = json.dumps(document).encode()
    archives.write("other.tar", b"".join(tar.pack(files, 0)))
    assert archives.run("compare", "one.tar", "other.tar").status == 1


def test_modules_are_renamed(archives: Folder) -> None:
    assert archives.run("convert", "tiny.tar", "--module-name", "small", "-o", "small.tar").status == 0
    assert "module small: aot executor" in archives.run("inspect", "small.tar").out
    assert archives.run("merge", "tiny.tar", "small.tar", "-o", "merged.tar", "-q").status == 0
    names = ("--module-name", "one=first", "--module-name", "two=second")
    archives.run("convert", "both.tar", *names, "-o", "renamed.tar")
    facts = archives.run("inspect", "renamed.tar", "--format", "json").json
    assert [module["name"] for module in facts["modules"]] == ["first", "second"]


@pytest.mark.parametrize(
    ("archive", "name", "code"),
    [
        ("both.tar", "three=x", "module-unknown"),
        ("tiny.tar", "Tiny", "module-name-invalid"),
        ("tiny.tar", "tiny=", "module-name-invalid"),
    ],
)
def test_invalid_module_names(archives: Folder, archive: str, name: str, code: str) -> None:
    assert archives.refused("convert", archive, "--module-name", name, "-o", "out.tar") == (2, code, archive)
    assert not (archives.root / "out.tar").exists()


def test_one_of_several_modules_must_be_chosen(archives: Folder) -> None:
    arguments = ("convert", "both.tar", "--module-name", "x", "-o", "out.tar")
    assert archives.refused(*arguments) == (2, "module-not-chosen", "both.tar")


@pytest.mark.parametrize("verb", [("convert", "tiny.tar"), ("merge", "tiny.tar", "net.tar")])
def test_only_archives_are_overwritten(archives: Folder, verb: tuple[str, ...]) -> None:
    before = (archives.root / "tiny.tar").read_bytes()
    (archives.root / "link.tar").symlink_to("tiny.tar")
    for output in ("tiny.tar", "./tiny.tar", "link.tar"):
        assert archives.refused(*verb, "-o", output)[:2] == (6, "output-is-input")
    archives.write("notes.txt", "do not lose me")
    assert archives.refused(*verb, "-o", "notes.txt") == (6, "output-of-another-kind", "notes.txt")
    assert archives.run(*verb, "-o", "models").status == 2, "a folder"
    assert (archives.root / "notes.txt").read_text() == "do not lose me"
    assert (archives.root / "tiny.tar").read_bytes() == before
    assert archives.run(*verb, "-o", "both.tar").status == 0, "an archive may be written again"


def test_failed_conversion_leaves_no_files(archives: Folder) -> None:
    before = archives.files()
    assert archives.run("convert", "junk.tar", "-o", "out.tar").status == 5
    assert archives.run("merge", "tiny.tar", "junk.tar", "-o", "out.tar").status == 5
    assert archives.files() == before


@pytest.mark.parametrize("path", ["src/ADD.relay", "SRC/notes.txt"])
def test_names_that_differ_only_in_case_are_refused(archives: Folder, path: str) -> None:
    """A path that is free in one version may be taken in another."""
    archives.write("old.tar", b"".join(tar.pack({**model_archive(1), path: b"x"}, 0)))
    before = archives.files()
    for arguments in (("convert", "old.tar", "-o", "new.tar"), ("unpack", "old.tar", "-o", "tree")):
        assert archives.refused(*arguments) == (2, "archive-path-invalid", repr(path))
    assert archives.files() == before


def test_repairs_are_listed(archives: Folder) -> None:
    files = shared_storage()
    document = json.loads(files["metadata.json"])
    document["modules"]["net"]["memory"]["sids"][1]["size_bytes"] = 8
    document["modules"]["net"]["export_datetime"] = "2023-03-10 14:00:00Z"
    files["metadata.json"] = json.dumps(document).encode()
    archives.write("wrong.tar", b"".join(tar.pack(files, 0)))
    before = archives.run("validate", "wrong.tar", "--format", "json").json["findings"]
    assert [(finding["code"], finding["repairable"]) for finding in before] == [("MLF401", True), ("MLF206", True)]
    ended = archives.run("convert", "wrong.tar", "--repair", "-o", "right.tar")
    repaired, unchanged, counted, written = ended.out.splitlines()
    assert (ended.status, counted, written.partition(":")[0]) == (0, "1 repair", "right.tar")
    assert repaired == "repaired MLF401 metadata.json: modules.net.memory.sids[1]: 8 bytes -> 4 bytes"
    assert unchanged.startswith("unchanged MLF206 metadata.json: modules.net.export_datetime: 2023-03-10 14:00:00Z is")
    after = archives.run("validate", "right.tar", "--format", "json").json["findings"]
    assert [finding["code"] for finding in after] == ["MLF206"]
    facts = archives.run("convert", "wrong.tar", "--repair", "-o", "right.tar", "--format", "json").json
    assert [repair["code"] for repair in facts["repairs"]] == ["MLF401"]
    assert {"place", "before", "after"} <= facts["repairs"][0].keys()
    assert [date["place"] for date in facts["in_doubt"]] == [before[1]["place"]]


def test_a_repair_combines_with_a_version_and_a_name(archives: Folder) -> None:
    files = {**shared_storage()}
    files["metadata.json"] = files["metadata.json"].replace(b'"size_bytes": 4', b'"size_bytes": 8')
    archives.write("wrong.tar", b"".join(tar.pack(files, 0)))
    words = ("convert", "wrong.tar", "--repair", "--to", "5", "--module-name", "other", "-o", "right.tar")
    assert archives.run(*words).out.startswith("repaired MLF401 metadata.json: modules.net.memory.sids[1]: 8 bytes")
    facts = archives.run("inspect", "right.tar", "--format", "json").json
    assert (facts["version"], [module["name"] for module in facts["modules"]]) == (5, ["other"])
    assert "MLF401" not in archives.run("validate", "right.tar").out


def test_nothing_to_repair(archives: Folder) -> None:
    ended = archives.run("convert", "tiny.tar", "--repair", "-o", "same.tar")
    assert (ended.status, ended.out.splitlines()[0]) == (0, "nothing to repair")
    assert (archives.root / "same.tar").read_bytes() == (archives.root / "tiny.tar").read_bytes()
    assert "repairs" not in archives.run("convert", "tiny.tar", "-o", "x.tar", "--format", "json").json


@pytest.mark.parametrize(("name", "code"), [("conv-graph", "MLF401"), ("v5-kws_int8-graph", "MLF702")])
def test_a_repaired_archive_computes_the_same(
    name: str, code: str, archives: Folder, shared: Path, tool: Callable[[str], str]
) -> None:
    tool("gcc")
    files = tvm_files(shared, name)
    if code == "MLF702":
        files = packed_archive(files, "kws_int8")
    archives.write("wrong.tar", b"".join(tar.pack(files, 0)))
    vectors = np.load(shared / f"archives/{name}.npz")
    assert code in archives.run("convert", "wrong.tar", "--repair", "--to", "5", "-o", "right.tar").out
    np.savez(archives.root / "x.npz", in0=next(iter(vectors.values())))
    assert archives.run("run", "right.tar", "--inputs", "x.npz", "-o", "y.npz").status == 0
    (found,) = np.load(archives.root / "y.npz").values()
    np.testing.assert_allclose(found.reshape(vectors["out0"].shape), vectors["out0"], rtol=1e-5, atol=1e-6)
