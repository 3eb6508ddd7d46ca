"""`mlfbuild compare` of the content of archives; test_compare_inputs.py compares what they compute."""

from dataclasses import replace

from mlfbuild.archive import pack_archive
from mlfbuild.library import Library, MainMemory
from support.command import Folder
from support.firmware_repo import tiny_network
from support.libraries import native_module


def test_differences_are_printed(archives: Folder) -> None:
    changed = replace(native_module(), main=(MainMemory(1024, 1, 8),))
    archives.write("new.tar", pack_archive(Library((changed,))))
    ended = archives.run("compare", "tiny.tar", "new.tar", status=1)
    assert ended.out == (
        "tiny.tar -> new.tar: 1 difference\n\nmodule tiny\n  memory  workspace on CPU: 0 -> 1,024 bytes\n"
    )
    assert ended.err.startswith("mlfbuild: tiny.tar and new.tar: ") and ended.err.count("\n") == 1
    quiet = archives.run("compare", "tiny.tar", "new.tar", "-q")
    assert (quiet.status, quiet.out, quiet.err) == (1, "", ended.err)
    as_json = archives.run("compare", "tiny.tar", "new.tar", "--format", "json")
    assert (as_json.status, as_json.error["code"]) == (1, "archives-differ")
    assert (as_json.json["first"], as_json.json["second"], as_json.json["equal"]) == ("tiny.tar", "new.tar", False)
    assert as_json.json["differences"][0]["right"] == 1024


def test_equal_archives(archives: Folder) -> None:
    ended = archives.run("compare", "tiny.tar", "tiny.tar")
    assert (ended.status, ended.out, ended.err) == (0, "tiny.tar and tiny.tar have the same meaning\n", "")
    assert archives.run("compare", "tiny.tar", "tiny.tar", "-q").out == ""
    assert archives.run("compare", "tiny.tar", "junk.tar").status == 5


def test_a_copy_of_a_model_is_equal(archives: Folder) -> None:
    for name, seed in {"old": 1, "copy": 1, "new": 2}.items():
        archives.write(f"{name}.tflite", tiny_network(seed))
    assert archives.run("compare", "old.tflite", "copy.tflite").status == 0
    assert archives.run("compare", "old.tflite", "new.tflite").status == 1
