"""`mlfbuild inspect`."""

import re
from dataclasses import replace
from pathlib import Path

import numpy as np

from mlfbuild.archive import pack_archive
from mlfbuild.library import Library
from support.command import Folder
from support.libraries import graph_library


def test_a_graph_archive(folder: Folder) -> None:
    folder.write("net.tar", pack_archive(graph_library("net")))
    assert "graph executor" in folder.run("inspect", "net.tar").out


def test_text_and_json(archives: Folder) -> None:
    ended = archives.run("inspect", "net.tar")
    assert (ended.status, ended.err) == (0, "")
    assert ended.out.startswith(
        "Model Library Format version 7, 1 module; sizes in bytes\n\nmodule net: graph executor\n"
    )
    facts = archives.run("inspect", "net.tar", "--format", "json").json
    assert [module["name"] for module in facts["modules"]] == ["net"]
    assert archives.run("inspect", "-q", "net.tar") == ended, "it is what was asked for"


def test_one_module(archives: Folder) -> None:
    text = archives.run("inspect", "both.tar", "--model", "two").out
    assert "module two" in text and "module one" not in text
    assert [
        m["name"] for m in archives.run("inspect", "both.tar", "--model", "two", "--format", "json").json["modules"]
    ] == ["two"]
    assert archives.refused("inspect", "both.tar", "--model", "tow") == (2, "unknown-module", "both.tar")
    assert 'did you mean "two"?' in archives.run("inspect", "both.tar", "--model", "tow").err
    assert "(it has one, two)" in archives.run("inspect", "both.tar", "--model", "kws").err


def test_verbose_shows_complete_lists(archives: Folder) -> None:
    params = {f"p{i}": np.zeros((1, 2), np.float32) for i in range(60)}
    (module,) = graph_library().modules
    archives.write("wide.tar", pack_archive(Library((replace(module, params=params),))))
    short, full = archives.run("inspect", "wide.tar").out, archives.run("inspect", "wide.tar", "-v").out
    assert "52 more (-v shows all)" in short
    listed = [line.split() for line in full.splitlines()]
    assert all(["8", f"p{i}", "float32", "[1,", "2]"] in listed for i in range(1, 60))


def quoted(text: str) -> list[tuple[str, str]]:
    """Return the commands in a document with the quoted output; ``...`` stands for omitted lines."""
    return re.findall(r"^```\n\$ mlfbuild (.*?)\n(.*?)^```", text, re.DOTALL | re.MULTILINE)


def test_the_documentation_quotes_the_output(folder: Folder, shared: Path) -> None:
    for path in (shared / "archives").glob("*.tar"):
        (folder.root / path.name).symlink_to(path)
    commands = quoted((Path(__file__).parents[2] / "docs/archive-commands.md").read_text())
    assert [command.split()[0] for command, _ in commands] == [
        "inspect", "show", "compare", *["convert"] * 2, "merge", "split", "validate",
    ]  # fmt: skip
    for command, output in commands:
        rest = folder.run(*command.split()).out
        for part in filter(None, re.split(r"^\.\.\.\n", output, flags=re.MULTILINE)):
            assert part in rest, command
            rest = rest.split(part, 1)[1]
