"""`mlfbuild compile`: one model file becomes an archive."""

import gzip
import re
import subprocess
from collections.abc import Callable

import numpy as np
import pytest

from mlfbuild.archive import pack_archive
from support.command import Folder
from support.libraries import native_library
from support.onnx_models import QuantizedNetwork, Scale


def test_compile_inspect_and_unpack(folder: Folder) -> None:
    size = folder.run(
        "compile", "models/alpha.tflite", "--cpu", "cortex-m4", "-o", "out/a.tar", "--format", "json"
    ).json
    assert size == {
        "model": "alpha", "archive": "out/a.tar", "size": (folder.root / "out/a.tar").stat().st_size, "constants": 80,
        "workspace": 16, "workspace_bound": 16, "notes": [],
    }  # fmt: skip
    facts = folder.run("inspect", "out/a.tar", "--format", "json").json
    assert [module["name"] for module in facts["modules"]] == ["alpha"]
    assert facts["modules"][0]["inputs"][0]["shape"] == [1, 8]
    assert "module alpha" in (page := folder.run("inspect", "out/a.tar").out)
    assert "16    peak use, the least that any memory plan needs\n" in page
    assert folder.run("unpack", "out/a.tar", "-o", "tree").out.startswith("tree: ")
    assert (folder.root / "tree/mlf.cmake").is_file()
    again = folder.run("unpack", "out/a.tar", "-o", "tree", "--format", "json").json
    assert (again["directory"], again["written"], again["removed"]) == ("tree", [], [])
    assert again["unchanged"]


def test_memory_and_its_bound_are_printed(folder: Folder) -> None:
    lines = folder.run("compile", "models/alpha.tflite", "--cpu", "cortex-m4", "-o", "a.tar").out.splitlines()
    plan = "  constants 80 bytes, workspace 16 bytes"
    assert lines[1:] == [f"{plan} (peak use 16, so no plan is smaller)"]
    assert folder.run("compile", "models/alpha.tflite", "--cpu", "cortex-m4", "-o", "a.tar", "-q").out == ""
    folder.run("convert", "a.tar", "--to", "5", "-o", "old.tar")  # what is known is kept
    assert folder.run("compile", "old.tar", "--cpu", "cortex-m4", "-o", "b.tar", "-v").out.splitlines()[1] == lines[1]


def test_the_name_of_the_model_follows_from_its_file(folder: Folder) -> None:
    for file, name in (("KWS-v2.tflite", "kws_v2"), ("1st.tflite", "model_1st"), ("board.tflite", "model_board")):
        folder.write(file, (folder.root / "models/alpha.tflite").read_bytes())
        assert folder.run("compile", file, "--cpu", "host", "-o", "a.tar", "--format", "json").json["model"] == name
    ended = folder.run("compile", "1st.tflite", "--cpu", "host", "-o", "a.tar", "--name", "first")
    assert ended.out.startswith("a.tar: model first for host, ")


def test_the_name_of_the_output_selects_archive_tree_or_c_file(folder: Folder, tool: Callable[[str], str]) -> None:
    words = ("compile", "models/alpha.tflite", "--cpu", "cortex-m4", "-o")
    assert folder.run(*words, "alpha/", "--format", "json").json["directory"] == "alpha"
    assert folder.run(*words, "a.tar", "-q").status == folder.run("unpack", "a.tar", "-o", "tree").status == 0
    tree = {path.name: path.read_bytes() for path in (folder.root / "alpha").rglob("*") if path.is_file()}
    assert tree == {path.name: path.read_bytes() for path in (folder.root / "tree").rglob("*") if path.is_file()}
    assert folder.run(*words, "alpha").status == 0, "a tree that mlfbuild wrote needs no slash"

    assert folder.run(*words, "tree.c/", "--format", "json").json["directory"] == "tree.c", "a slash is a folder"
    hint = folder.run(*words, "alpha.tar.gz", "--format", "json").error["hint"]
    assert "alpha.tar," in hint

    made = folder.run(*words, "out/net.c", "--format", "json").json
    assert made["sources"] == ["out/net.c", "out/tvmgen_alpha.h"]
    main = '#include "tvmgen_alpha.h"\nint main(void) { return tvmgen_alpha_run((void *)0, (void *)0) == 0; }\n'
    folder.write("out/main.c", main)
    command = [tool("gcc"), "-Wall", "-Wextra", "-Werror", "main.c", "net.c", "-o", "app"]
    subprocess.run(command, cwd=folder.root / "out", check=True)
    assert folder.run(*words, "out/net.c").status == 0, "a file that mlfbuild wrote is written again"
    folder.write("out/tvmgen_alpha.h", "mine")
    assert folder.refused(*words, "out/net.c") == (6, "output-of-another-kind", "out/tvmgen_alpha.h")


@pytest.mark.parametrize(
    "words",
    [
        ["a.tar"],
        ["models/alpha.tflite", "--executor", "graph"],
        ["models/alpha.tflite", "-O", "layout=standard"],
        ["models/alpha.tflite", "-O", "interface-api=packed"],
        ["models/alpha.tflite", "--extension", "board=nucleo"],
    ],
)
def test_what_one_c_file_cannot_hold_is_rejected(folder: Folder, words: list[str]) -> None:
    folder.write("a.tar", pack_archive(native_library("tiny")))
    assert folder.refused("compile", *words, "--cpu", "host", "-o", "net.c") == (2, "not-one-c-file", "-o net.c")
    assert not (folder.root / "net.c").exists()


def test_an_archive_is_copied_unchanged(folder: Folder) -> None:
    folder.write("tiny.tar", pack_archive(native_library("tiny")))
    assert folder.run("compile", "tiny.tar", "--cpu", "host", "-o", "again.tar").status == 0
    assert (folder.root / "again.tar").read_bytes() == (folder.root / "tiny.tar").read_bytes()


@pytest.mark.parametrize("name", ["a.tar.gz", "a.TGZ", "a.model-lib", "a.model-library-format", "a.bin", "a"])
def test_archives_are_recognised_by_content(archives: Folder, name: str) -> None:
    data = (archives.root / "tiny.tar").read_bytes()
    archives.write(name, gzip.compress(data) if name.lower().endswith("gz") else data)
    assert archives.run("compare", "tiny.tar", name).status == 0
    assert archives.run("unpack", name, "-o", "tree").status == 0
    ended = archives.run("compile", name, "--cpu", "host", "-o", "out.tar")
    assert ended.status == 0 and re.fullmatch(r"compile \w+ for host: compiled \(\d+\.\d s\)\n", ended.err)
    assert (archives.root / "out.tar").read_bytes() == data


def test_the_name_of_the_model_has_no_suffix(archives: Folder) -> None:
    data = gzip.compress((archives.root / "tiny.tar").read_bytes())
    archives.write("Key-Words.tar.gz", data)
    ended = archives.run("compile", "Key-Words.tar.gz", "--cpu", "host", "-o", "out.tar")
    assert ended.out.startswith("out.tar: model key_words for host, ")


def several_functions(count: int) -> bytes:
    """Return a quantised ONNX network with ``count`` operators that have no integer form."""
    network = QuantizedNetwork()
    name = network.input("x", (1, 8), Scale(0.05, 100))
    network.constants["axis"] = np.int64(1)
    for number in range(count):
        name = network.add("Cos", [name], f"y{number}")
        name = network.add("CumSum", [name, "axis"], f"z{number}")
    network.output(network.quantized(name, Scale(0.1, 100)), 2)
    return network.bytes()


def test_operators_in_float32_are_listed(folder: Folder) -> None:
    """Of a quantised network, on stderr: the first five, and all with -v; the archive records them."""
    folder.write("net.onnx", several_functions(3))
    words = ("compile", "net.onnx", "--cpu", "host", "-o", "net.tar")
    step, *lines = folder.run(*words).err.splitlines()
    assert step.startswith("compile net for host: compiled (")
    assert [line.split(" runs in float32, ")[0] for line in lines[:2]] == [
        "note: net.onnx: node 1 (Cos) writing 'y0'",
        "note: net.onnx: node 2 (CumSum) writing 'z0'",
    ]
    assert len(lines) == 6
    assert lines[5].startswith("note: net.onnx: 1 more")
    assert len(folder.run(*words, "-v").err.splitlines()) == 7
    assert not folder.run(*words, "-q").err
    notes = folder.run(*words, "--format", "json").json["notes"]
    assert [note.split()[1] for note in notes] == ["1", "2", "3", "4", "5", "6"]
    assert folder.run("inspect", "net.tar", "--format", "json").json["modules"][0]["notes"] == notes
    assert folder.run("inspect", "net.tar").out.count("runs in float32") == 6


def test_a_build_lists_operators_in_float32_when_it_compiles(folder: Folder) -> None:
    folder.write("net.onnx", several_functions(1))
    folder.write("mlfbuild.yml", "mlfbuild: 1\ntargets: {pc: {cpu: host}}\nmodels: {net: {source: net.onnx}}\n")
    assert "note: net for pc: node 1 (Cos) writing 'y0' runs in float32" in folder.run("build").err
    assert "note:" not in folder.run("build").err
