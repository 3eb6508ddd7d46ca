"""Every C file that mlfbuild generates or copies starts with its licence and its copyright."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

import mlfbuild
from mlfbuild.archive.merge import merge
from mlfbuild.jobs.tree.target_tree import TreeSettings, tree_files
from mlfbuild.library import CompileRequest, Library
from mlfbuild.library.cgen import LICENCE
from mlfbuild.native import NATIVE
from mlfbuild.report.sbom.licenses import OWN
from mlfbuild.targets import CPUS
from support.firmware_repo import tiny_network
from support.native import compile_bytes

PACKAGE = Path(mlfbuild.__file__).parent
SUFFIXES = {".c", ".h", ".S", ".ld"}
FRAGMENTS = {"run.c", "show_integer.c", "show_real.c", "buffers.c", "call.c", "shared_workspace.c"}
"""Templates of parts of a file."""
FILLED = "{{ licence }}"
"""How a template begins that prints the licence of generated code."""
JINJA_HEAD = re.compile(r"\A(?:\{#.*?#\}\s*|\{%.*?%\}\s*)+", re.DOTALL)
"""Comments and statements of a template before the first line that it prints."""


def test_licence_is_that_of_the_bill_of_materials() -> None:
    assert LICENCE.splitlines() == [
        f"/* SPDX-License-Identifier: {OWN} */", "/* SPDX-FileCopyrightText: The mlfbuild authors */",
    ]  # fmt: skip


def test_files_of_the_package() -> None:
    files = [path for path in PACKAGE.rglob("*") if path.suffix in SUFFIXES and path.name not in FRAGMENTS]
    assert len(files) > 100
    assert [path for path in files if not JINJA_HEAD.sub("", path.read_text()).startswith((LICENCE, FILLED))] == []


def without_licence(library: Library) -> Iterator[str]:
    for path, content in tree_files(library, settings=TreeSettings(verified_on="host")).items():
        if Path(path).suffix in SUFFIXES and not bytes(content).startswith(LICENCE.encode()):
            yield path


@pytest.mark.parametrize("executor", ["aot", "graph"])
def test_the_tree_of_a_model(tmp_path: Path, executor: str) -> None:
    (tmp_path / "net.tflite").write_bytes(tiny_network(1))
    request = CompileRequest("net", tmp_path / "net.tflite", CPUS["cortex-m4"], executor=executor)
    assert list(without_licence(NATIVE.compile(request))) == []


def test_a_merged_archive() -> None:
    both = merge([(f"{name}.tar", compile_bytes(tiny_network(1), name)) for name in ("one", "two")])
    assert list(without_licence(both)) == []


def test_constants_of_a_model_are_under_its_licence() -> None:
    (module,) = compile_bytes(tiny_network(1)).modules
    sources = [file for file in module.codegen if file.path.suffix == ".c"]
    assert all(b"\n * Constants come from that file and are also under its licence.\n" in file.data for file in sources)
