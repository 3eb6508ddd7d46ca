"""`mlfbuild validate`: findings, exit codes, warnings."""

from dataclasses import replace

import pytest

from mlfbuild.archive import pack_archive
from mlfbuild.library import Library
from support.command import Folder
from support.libraries import native_module


def test_a_valid_archive(archives: Folder) -> None:
    ended = archives.run("validate", "tiny.tar")
    assert (ended.status, ended.err) == (0, "")
    assert ended.out.splitlines()[-1].startswith("tiny.tar: valid: 0 errors")
    report = archives.run("validate", "tiny.tar", "--format", "json").json
    assert (report["archive"], report["valid"], report["passed"], report["errors"]) == ("tiny.tar", True, True, 0)
    assert archives.run("validate", "tiny.tar", "-q").out == ""


def test_errors_fail(archives: Folder) -> None:
    module = replace(native_module(), codegen=())
    archives.write("empty.tar", pack_archive(Library((module,))))
    ended = archives.run("validate", "empty.tar", status=1)
    assert "MLF101" in ended.out
    assert ended.err.startswith("mlfbuild: empty.tar: ") and ended.err.count("\n") == 1
    assert archives.run("validate", "empty.tar", "-q") == ended, "quiet is not silent about errors"
    as_json = archives.run("validate", "empty.tar", "--format", "json", status=1)
    assert as_json.json["passed"] is False
    assert [finding["code"] for finding in as_json.json["findings"] if finding["severity"] == "error"] == ["MLF101"]


def test_warnings_fail_only_with_strict(archives: Folder) -> None:
    broken = replace(native_module(), codegen=tuple(
        replace(file, path=file.path.with_name("tiny_lib1.c")) if file.path.name == "tiny_lib0.c" else file
        for file in native_module().codegen
    ))  # fmt: skip
    archives.write("gap.tar", pack_archive(Library((broken,))))
    ended = archives.run("validate", "gap.tar")
    assert (ended.status, ended.err) == (0, "")
    assert "warning MLF102" in ended.out
    strict = archives.run("validate", "gap.tar", "--strict")
    assert (strict.status, strict.out) == (1, ended.out)
    event = archives.run("validate", "gap.tar", "--strict", "--format", "json").error
    assert (event["code"], event["place"]) == ("archive-invalid", "gap.tar")


@pytest.mark.parametrize("verb", ["inspect", "validate"])
def test_unreadable_archives(archives: Folder, verb: str) -> None:
    assert archives.refused(verb, "junk.tar") == (5, "archive-not-tar", "junk.tar")
    archives.write("main.c", "int main(void) { return 0; }\n" * 40)
    assert archives.refused(verb, "main.c") == (5, "unsupported-model-file", "main.c")
    assert archives.refused(verb, "none.tar") == (5, "no-such-input", "none.tar")
