"""`mlfbuild show`: texts of the program, with the C functions of their operators."""

from dataclasses import replace
from pathlib import Path

import pytest

from mlfbuild.archive import pack_archive
from mlfbuild.library import Library, content
from support.command import Folder
from support.libraries import graph_library
from support.terminal import Terminal
from support.tvm_archives import tvm_files

HOSTILE = "def @main(%x: int8) {\r\n  add(%x) /* \x1b[2J\x1b]0;kws\a\u202e */\n}\n"


def written(archives: Folder, text: str) -> None:
    (module,) = graph_library("net").modules
    archives.write("net.tar", pack_archive(Library((replace(module, source_text=text.encode()),))))


@pytest.mark.parametrize(
    ("archive", "part", "member"),
    [
        ("conv-graph", "relay", "src/conv.relay"),
        ("conv-graph", "graph", "executor-config/graph/conv.graph"),
        ("v5-add-graph", "graph", "executor-config/graph/graph.json"),
        ("operator-add", "tir", "src/tir-1.txt"),
    ],
)
def test_one_text_is_printed_as_it_is(archive: str, part: str, member: str, folder: Folder, shared: Path) -> None:
    ended = folder.run("show", str(shared / f"archives/{archive}.tar"), part)
    assert (ended.status, ended.err) == (0, "")
    assert ended.out.encode() == tvm_files(shared, archive)[member]


def test_bytes_of_a_text_do_not_change(archives: Folder) -> None:
    written(archives, HOSTILE)
    done = archives.spawn("show", "net.tar", "relay", env={"NO_COLOR": "1"})
    assert done.out.replace("\r\n", "\n") == HOSTILE.replace("\r\n", "\n")
    with (archives.root / "out.txt").open("wb") as file:
        archives.spawn("show", "net.tar", "relay", stdout=file)
    assert (archives.root / "out.txt").read_bytes() == HOSTILE.encode()


def test_all_texts_have_titles_and_operators(archives: Folder) -> None:
    lines = archives.run("show", "net.tar").out.splitlines()
    assert [line for line in lines if line.startswith("module")] == ["module net: relay", "module net: graph"]
    assert lines[-2].split("  ")[0] == "operator"
    tensors = ["float32[1,2],", "float32[1,2]", "->", "float32[1,2]"]
    assert lines[-1].split() == ["add", "tvmgen_net_add", "codegen/host/src/net_lib1.c:2", *tensors]


def test_json_has_texts_graph_and_operators(folder: Folder, shared: Path) -> None:
    facts = folder.run("show", str(shared / "archives/conv-graph.tar"), "--format", "json").json
    relay, graph = facts["parts"]
    assert relay["text"].encode() == tvm_files(shared, "conv-graph")["src/conv.relay"]
    assert [node["op"] for node in graph["graph"]["nodes"]].count("tvm_op") == len(graph["operators"]) == 6
    source = tvm_files(shared, "conv-graph")["codegen/host/src/conv_lib1.c"].decode().splitlines()
    for operator in graph["operators"]:
        (function,) = operator["functions"]
        assert function["file"] == "codegen/host/src/conv_lib1.c"
        assert f"{function['name']}(" in source[function["line"] - 1]
        assert operator["outputs"][0]["dtype"] == "float32"
    assert [(each["name"], each["line"]) for each in relay["operators"]][:2] == [("nn.conv2d", 2), ("nn.relu", 3)]


def test_a_function_is_printed(folder: Folder, shared: Path) -> None:
    archive, name = str(shared / "archives/conv-graph.tar"), "tvmgen_conv_fused_nn_softmax"
    text = folder.run("show", archive, "--function", name).out
    assert text in tvm_files(shared, "conv-graph")["codegen/host/src/conv_lib1.c"].decode()
    assert (text.startswith(f"TVM_DLL int32_t {name}("), text.endswith("}\n")) == (True, True)
    facts = folder.run("show", archive, "--function", name, "--format", "json").json
    assert facts["text"] + "\n" == text
    assert (facts["module"], facts["file"]) == ("conv", "codegen/host/src/conv_lib1.c")


@pytest.mark.parametrize(
    ("arguments", "status", "code"),
    [
        (("tiny.tar", "graph"), 2, "no-such-program-part"),
        (("net.tar", "tir"), 2, "no-such-program-part"),
        (("both.tar", "--model", "three"), 2, "unknown-module"),
        (("net.tar", "--function", "tvmgen_net_sub"), 2, "no-such-function"),
        (("both.tar", "--function", "mlf_offset"), 0, ""),
        (("net.tar", "graph", "--function", "tvmgen_net_add"), 2, "function-with-part"),
        (("net.tar", "all"), 2, "command-line-invalid"),
        (("junk.tar",), 5, "archive-not-tar"),
    ],
)
def test_requests_that_cannot_be_met(archives: Folder, arguments: tuple[str, ...], status: int, code: str) -> None:
    ended = archives.run("show", *arguments, "--format", "json", status=status)
    assert not code or ended.error["code"] == code


def test_a_function_of_an_object_has_no_text(folder: Folder, shared: Path) -> None:
    archive = str(shared / "archives/conv-llvm_graph_m4.tar")
    words = ("show", archive, "--function", "tvmgen_conv_fused_nn_softmax")
    assert folder.refused(*words)[:2] == (2, "function-without-source")
    (graph,) = folder.run("show", archive, "graph", "--format", "json").json["parts"]
    functions = [each for operator in graph["operators"] for each in operator["functions"]]
    assert {each["file"] for each in functions if each["name"] != "__nop"} == {"codegen/host/lib/conv_lib1.o"}
    assert {each["line"] for each in functions} == {None}


def test_functions_of_one_name_are_chosen_by_module(archives: Folder) -> None:
    first, second = graph_library("a").modules[0], graph_library("b").modules[0]
    files = [
        replace(file, content=file.data + b"\nstatic int helper(void) { return 0; }\n")
        for file in (*first.codegen, *second.codegen)
        if file.path.name.endswith("_lib1.c")
    ]
    modules = tuple(replace(each, codegen=(file,)) for each, file in zip((first, second), files, strict=True))
    archives.write("two.tar", pack_archive(Library(modules)))
    assert archives.refused("show", "two.tar", "--function", "helper")[:2] == (2, "function-not-chosen")
    assert archives.run("show", "two.tar", "--function", "helper", "--model", "b").status == 0


# Terminals -----------------------------------------------------------------------------------------------------------


def test_a_terminal_gets_colours_and_the_operators(archives: Folder) -> None:
    written(archives, "def @main(%x: Tensor[(1, 2), float32]) {\n  add(%x, 1f) /* a comment */\n}\n")
    seen = Terminal((160, 40)).run(archives.root, "show", "net.tar", "relay")
    assert seen.status == 0
    assert "\x1b[" in seen.raw
    assert seen.lines[:2] == ["def @main(%x: Tensor[(1, 2), float32]) {", "  add(%x, 1f) /* a comment */"]
    assert seen.lines[-1].split() == ["add", "2"]
    plain = Terminal((160, 40)).run(archives.root, "show", "net.tar", "relay", NO_COLOR="1")
    assert ("\x1b" in plain.raw, plain.lines) == (False, seen.lines)


@pytest.mark.parametrize("environment", [{}, {"NO_COLOR": "1"}, {"CI": "true"}, {"TERM": "dumb"}])
def test_escapes_in_a_text_do_not_reach_a_terminal(archives: Folder, environment: dict[str, str]) -> None:
    written(archives, HOSTILE)
    assert_harmless(Terminal((100, 40)).run(archives.root, "show", "net.tar", "relay", **environment).raw)


def test_a_large_text_is_printed_in_parts(archives: Folder, monkeypatch: pytest.MonkeyPatch) -> None:
    from mlfbuild.cli import show

    monkeypatch.setattr(show, "_MAX_COLOURED", 8)
    monkeypatch.setattr(content, "CHUNK", 7)
    monkeypatch.setattr("sys.stdout.isatty", lambda: True)
    written(archives, f"{HOSTILE}é€\n")
    printed = archives.run("show", "net.tar", "relay").out
    assert_harmless(printed)
    assert "é€\n" in printed


def assert_harmless(raw: str) -> None:
    assert "\x1b[2J" not in raw
    assert "\x1b]0;" not in raw
    assert "\a" not in raw
    assert "\u202e" not in raw
    assert r"\x1b" in raw
