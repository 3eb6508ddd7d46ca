"""The verbs that work on archives alone: what they say, how they end, what they leave behind."""

from __future__ import annotations

import gzip
import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from mlfbuild.archive import pack_archive, tar
from mlfbuild.library import Library, MainMemory
from support.command import Folder
from support.libraries import graph_library, native_library, native_module
from support.old_archives import model_archive


@pytest.fixture
def archives(folder: Folder) -> Folder:
    """A folder with ``tiny.tar``, ``net.tar`` (a graph), ``both.tar`` and ``junk.tar``."""
    folder.write("tiny.tar", pack_archive(native_library("tiny")))
    folder.write("net.tar", pack_archive(graph_library("net")))
    folder.write("both.tar", pack_archive(native_library("one", "two")))
    folder.write("junk.tar", b"junk" * 300)
    return folder


# inspect


def test_inspect(archives: Folder) -> None:
    ended = archives.run("inspect", "net.tar")
    assert (ended.status, ended.err) == (0, "")
    assert ended.out.startswith(
        "Model Library Format version 7, 1 module; sizes in bytes\n\nmodule net: graph executor\n"
    )
    facts = archives.run("inspect", "net.tar", "--format", "json").json
    assert [module["name"] for module in facts["modules"]] == ["net"]
    assert archives.run("inspect", "-q", "net.tar") == ended, "it is what was asked for"


def test_inspect_of_one_module(archives: Folder) -> None:
    text = archives.run("inspect", "both.tar", "--model", "two").out
    assert "module two" in text and "module one" not in text
    assert [
        m["name"] for m in archives.run("inspect", "both.tar", "--model", "two", "--format", "json").json["modules"]
    ] == ["two"]
    ended = archives.run("inspect", "both.tar", "--model", "tow")
    assert (ended.status, ended.out) == (2, "")
    assert ended.err == """mlfbuild: both.tar: has no module 'tow' (did you mean "two"?)\n"""
    ended = archives.run("inspect", "both.tar", "--model", "kws")
    assert ended.err == "mlfbuild: both.tar: has no module 'kws' (it has one, two)\n"


def test_inspect_shows_all_when_asked(archives: Folder) -> None:
    params = {f"p{i}": np.zeros((1, 2), np.float32) for i in range(60)}
    (module,) = graph_library().modules
    archives.write("wide.tar", pack_archive(Library((replace(module, params=params),))))
    short, full = archives.run("inspect", "wide.tar").out, archives.run("inspect", "wide.tar", "-v").out
    assert "52 more (-v shows all)" in short
    assert [f"{8:>25}    p{i}  float32 [1, 2]" in full.splitlines() for i in range(1, 60)] == [True] * 59


# validate


def test_validate(archives: Folder) -> None:
    ended = archives.run("validate", "tiny.tar")
    assert (ended.status, ended.err) == (0, "")
    assert ended.out.splitlines()[-1].startswith("tiny.tar: valid: 0 errors")
    report = archives.run("validate", "tiny.tar", "--format", "json").json
    assert (report["archive"], report["valid"], report["passed"], report["errors"]) == ("tiny.tar", True, True, 0)
    assert archives.run("validate", "tiny.tar", "-q").out == ""


def test_validate_fails_on_errors(archives: Folder) -> None:
    module = replace(native_module(), codegen=())
    archives.write("empty.tar", pack_archive(Library((module,))))
    ended = archives.run("validate", "empty.tar")
    assert ended.status == 1
    assert "MLF101" in ended.out
    assert ended.err == "mlfbuild: empty.tar: is not valid: 1 error; see above\n"
    assert archives.run("validate", "empty.tar", "-q") == ended, "quiet is not silent about errors"
    as_json = archives.run("validate", "empty.tar", "--format", "json")
    assert as_json.status == 1
    assert as_json.json["passed"] is False
    assert [finding["code"] for finding in as_json.json["findings"] if finding["severity"] == "error"] == ["MLF101"]


def test_validate_lets_warnings_pass_unless_strict(archives: Folder) -> None:
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
    assert strict.err == "mlfbuild: gap.tar: 2 warnings (--strict); see above\n"


@pytest.mark.parametrize("verb", ["inspect", "validate"])
def test_what_cannot_be_read(archives: Folder, verb: str) -> None:
    for name, reason in (("junk.tar", "junk.tar: is not a tar file"), ("none.tar", "none.tar: no such archive")):
        ended = archives.run(verb, name, "--format", "json")
        assert (ended.status, ended.out) == (5, "")
        assert ended.err.startswith(f'{{"event":"error","exit_code":5,"kind":"input-file","message":"{reason}')
        assert ended.err.count("\n") == 1


# convert


def test_convert_and_compare(archives: Folder) -> None:
    ended = archives.run("convert", "net.tar", "--to", "5", "-o", "out/net5.tar")
    size = (archives.root / "out/net5.tar").stat().st_size
    assert (ended.status, ended.out, ended.err) == (0, f"out/net5.tar: version 5, {size:,} bytes\n", "")
    assert archives.run("inspect", "out/net5.tar").out.startswith("Model Library Format version 5,")
    back = archives.run("convert", "out/net5.tar", "-o", "net7.tar", "--format", "json").json
    assert back == {"archive": "net7.tar", "version": 7, "size": (archives.root / "net7.tar").stat().st_size}
    for other in ("out/net5.tar", "net7.tar"):
        ended = archives.run("compare", "net.tar", other)
        assert ended.status == 0, ended.out
        assert ended.out.startswith(f"net.tar and {other} mean the same\n")
    assert archives.run("convert", "net.tar", "--to", "6", "-o", "net6.tar", "-q").out == ""


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        (("both.tar", "--to", "5"), "holds one module, and this library has 2: one, two"),
        (("tiny.tar", "--to", "4"), "version 4"),
        (("tiny.tar", "--to", "8"), "version 8"),
        (("tiny.tar", "--to", "-1"), "version -1"),
    ],
)  # fmt: skip
def test_convert_refuses_what_a_version_cannot_hold(archives: Folder, arguments: tuple[str, ...], reason: str) -> None:
    ended = archives.run("convert", *arguments, "-o", "out.tar")
    assert (ended.status, ended.out) == (2, "")
    assert reason in ended.err and ended.err.count("\n") == 1
    assert not (archives.root / "out.tar").exists()


def test_convert_gives_modules_other_names(archives: Folder) -> None:
    assert archives.run("convert", "tiny.tar", "--module-name", "small", "-o", "small.tar").status == 0
    assert "module small: aot executor" in archives.run("inspect", "small.tar").out
    assert archives.run("merge", "tiny.tar", "small.tar", "-o", "merged.tar", "-q").status == 0
    names = ("--module-name", "one=first", "--module-name", "two=second")
    archives.run("convert", "both.tar", *names, "-o", "renamed.tar")
    facts = archives.run("inspect", "renamed.tar", "--format", "json").json
    assert [module["name"] for module in facts["modules"]] == ["first", "second"]


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        (
            ("both.tar", "--module-name", "x"),
            "both.tar: holds several modules (one, two); say which: --module-name OLD=x",
        ),
        (("both.tar", "--module-name", "three=x"), "both.tar: there is no module 'three' to be renamed (of one, two)"),
        (("tiny.tar", "--module-name", "Tiny"), "tiny.tar: 'Tiny' is no name for a module; use small letters"),
        (("tiny.tar", "--module-name", "tiny="), "tiny.tar: '' is no name for a module; use small letters"),
    ],
)
def test_convert_refuses_names_that_modules_cannot_have(
    archives: Folder, arguments: tuple[str, ...], reason: str
) -> None:
    ended = archives.run("convert", *arguments, "-o", "out.tar")
    assert (ended.status, ended.out) == (2, "")
    assert reason in ended.err and ended.err.count("\n") == 1
    assert not (archives.root / "out.tar").exists()


@pytest.mark.parametrize("verb", [("convert", "tiny.tar"), ("merge", "tiny.tar", "net.tar")])
def test_nothing_is_written_over_that_is_not_an_older_result(archives: Folder, verb: tuple[str, ...]) -> None:
    before = (archives.root / "tiny.tar").read_bytes()
    (archives.root / "link.tar").symlink_to("tiny.tar")
    for output in ("tiny.tar", "./tiny.tar", "link.tar"):
        ended = archives.run(*verb, "-o", output)
        assert ended.status == 6
        assert "is also the input; choose another file for -o" in ended.err
    archives.write("notes.txt", "do not lose me")
    ended = archives.run(*verb, "-o", "notes.txt")
    assert ended.status == 6
    assert "notes.txt: exists and is not a plain tar" in ended.err
    assert archives.run(*verb, "-o", "models").status == 2, "a folder"
    assert (archives.root / "notes.txt").read_text() == "do not lose me"
    assert (archives.root / "tiny.tar").read_bytes() == before
    assert archives.run(*verb, "-o", "both.tar").status == 0, "an archive may be written again"


def test_nothing_is_left_where_reading_fails(archives: Folder) -> None:
    before = archives.files()
    assert archives.run("convert", "junk.tar", "-o", "out.tar").status == 5
    assert archives.run("merge", "tiny.tar", "junk.tar", "-o", "out.tar").status == 5
    assert archives.files() == before


# merge


def test_merge(archives: Folder) -> None:
    ended = archives.run("merge", "tiny.tar", "net.tar", "both.tar", "-o", "all.tar")
    size = (archives.root / "all.tar").stat().st_size
    assert (ended.status, ended.err) == (0, "")
    assert ended.out == f"all.tar: 4 modules (net, one, tiny, two), {size:,} bytes\n"
    result = archives.run("merge", "tiny.tar", "net.tar", "-o", "two.tar", "--format", "json").json
    assert (result["archive"], result["modules"]) == ("two.tar", ["net", "tiny"])
    comparison = archives.run("compare", "tiny.tar", "two.tar", "--format", "json").json
    assert [(entry["what"], entry["name"]) for entry in comparison["differences"]] == [("module", "net")]


def test_merge_refuses_what_does_not_fit_together(archives: Folder) -> None:
    archives.write("again.tar", pack_archive(native_library("tiny")))
    ended = archives.run("merge", "tiny.tar", "again.tar", "-o", "out.tar")
    assert (ended.status, ended.out) == (1, "")
    assert "tiny.tar" in ended.err and "again.tar" in ended.err and ended.err.count("\n") == 1
    assert not (archives.root / "out.tar").exists()


# compare


def test_compare_tells_what_differs(archives: Folder) -> None:
    changed = replace(native_module(), main=(MainMemory(1024, 1, 8),))
    archives.write("new.tar", pack_archive(Library((changed,))))
    ended = archives.run("compare", "tiny.tar", "new.tar")
    assert ended.status == 1
    assert ended.out == (
        "tiny.tar -> new.tar: 1 difference\n\nmodule tiny\n  memory      workspace on CPU: 0 -> 1,024 bytes\n"
    )
    assert ended.err == "mlfbuild: tiny.tar and new.tar differ\n"
    quiet = archives.run("compare", "tiny.tar", "new.tar", "-q")
    assert (quiet.status, quiet.out, quiet.err) == (1, "", ended.err)
    as_json = archives.run("compare", "tiny.tar", "new.tar", "--format", "json")
    assert as_json.status == 1
    assert (as_json.json["first"], as_json.json["second"], as_json.json["equal"]) == ("tiny.tar", "new.tar", False)
    assert as_json.json["differences"][0]["right"] == 1024


def test_compare_of_equal_archives(archives: Folder) -> None:
    ended = archives.run("compare", "tiny.tar", "tiny.tar")
    assert (ended.status, ended.out, ended.err) == (0, "tiny.tar and tiny.tar mean the same\n", "")
    assert archives.run("compare", "tiny.tar", "tiny.tar", "-q").out == ""
    assert archives.run("compare", "tiny.tar", "junk.tar").status == 5


# What an archive is called


@pytest.mark.parametrize("name", ["a.tar.gz", "a.TGZ", "a.model-lib", "a.model-library-format", "a.bin", "a"])
def test_an_archive_by_any_name(archives: Folder, name: str) -> None:
    data = (archives.root / "tiny.tar").read_bytes()
    archives.write(name, gzip.compress(data) if name.lower().endswith("gz") else data)
    assert archives.run("compare", "tiny.tar", name).status == 0
    assert archives.run("unpack", name, "-o", "tree").status == 0
    ended = archives.run("compile", name, "--cpu", "host", "-o", "out.tar")
    assert (ended.status, ended.err) == (0, "")
    assert (archives.root / "out.tar").read_bytes() == data


@pytest.mark.parametrize("name", ["kws.tar.gz", "kws.model-library-format", "kws.model-lib"])
def test_a_project_takes_an_archive_by_any_name(archives: Folder, name: str) -> None:
    data = pack_archive(native_library("tiny"))
    archives.write(name, gzip.compress(data) if name.endswith("gz") else data)
    archives.write(
        "mlfbuild.yml", f"mlfbuild: 1\ntargets: {{pc: {{cpu: host}}}}\nmodels: {{kws: {{source: {name}}}}}\n"
    )
    ended = archives.run("build", "-q")
    assert (ended.status, ended.out) == (0, "")
    fragment = (archives.root / "build/mlf/pc/kws/mlf.cmake").read_text()
    assert "add_library(mlf::tiny ALIAS mlf_tiny)" in fragment and "add_library(mlf::kws ALIAS mlf_tiny)" in fragment


def test_the_name_of_a_model_comes_without_the_suffix(archives: Folder) -> None:
    data = gzip.compress((archives.root / "tiny.tar").read_bytes())
    archives.write("Key-Words.tar.gz", data)
    ended = archives.run("compile", "Key-Words.tar.gz", "--cpu", "host", "-o", "out.tar")
    assert ended.out.startswith("out.tar: model key_words for host, ")


# Archives of TVM


def test_every_archive_of_tvm_goes_through_every_verb(folder: Folder, shared: Path) -> None:
    for path in sorted((shared / "archives").glob("*.tar")):
        assert folder.run("inspect", str(path)).status == 0, path
        assert folder.run("validate", str(path)).status == 0, path
        ended = folder.run("convert", str(path), "-o", "seven.tar")
        assert (ended.status, ended.err) == (0, ""), path
        ended = folder.run("compare", str(path), "seven.tar")
        assert (ended.status, ended.err) == (0, ""), (path, ended.out)
        ended = folder.run("unpack", str(path), "-o", f"tree/{path.stem}")
        assert (ended.status, ended.err) == (0, ""), path
        assert (folder.root / f"tree/{path.stem}/README.md").is_file(), path
        again = folder.run("unpack", str(path), "-o", f"tree/{path.stem}", "--format", "json").json
        assert (again["written"], again["removed"]) == ([], []), path


# The manual


def quoted(text: str) -> list[tuple[str, str]]:
    """Commands in a document and what it says they print, ``...`` for lines left out."""
    return re.findall(r"^```\n\$ mlfbuild (.*?)\n(.*?)^```", text, re.DOTALL | re.MULTILINE)


def test_the_manual_quotes_what_is_printed(folder: Folder, shared: Path) -> None:
    for path in (shared / "archives").glob("*.tar"):
        (folder.root / path.name).symlink_to(path)
    documents = [Path(__file__).parents[2] / f"docs/{name}.md" for name in ("archive", "validate")]
    commands = [command for document in documents for command in quoted(document.read_text())]
    assert [command.split()[0] for command, _ in commands] == [
        "inspect",
        "compare",
        "convert",
        "convert",
        "merge",
        "validate",
    ]
    for command, output in commands:
        rest = folder.run(*command.split()).out
        for part in filter(None, re.split(r"^\.\.\.\n", output, flags=re.MULTILINE)):
            assert part in rest, command
            rest = rest.split(part, 1)[1]


@pytest.mark.parametrize("path", ["src/ADD.relay", "SRC/notes.txt"])
def test_names_that_only_case_tells_apart_are_refused(archives: Folder, path: str) -> None:
    """What stands at a free place in one version may stand in the way in another."""
    archives.write("old.tar", b"".join(tar.pack({**model_archive(1), path: b"x"}, 0)))
    before = archives.files()
    for arguments in (("convert", "old.tar", "-o", "new.tar"), ("unpack", "old.tar", "-o", "tree")):
        ended = archives.run(*arguments)
        assert (ended.status, ended.out) == (2, "")
        assert "only in case; rename it" in ended.err and ended.err.count("\n") == 1
    assert archives.files() == before
