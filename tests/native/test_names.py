"""Tensor names of any kind, some of which would break C."""

import re
from pathlib import Path

import pytest
from hypothesis import given, strategies as st

from mlfbuild.core.errors import UnsupportedModelError
from mlfbuild.jobs.tree import unpack
from mlfbuild.library import Library, macro_words
from mlfbuild.library.cgen.names import comment_text, member_name
from mlfbuild.native.graph.ops import Add
from support.errors import raises
from support.host_c import run_many_on_host
from support.native import compile_network, generated
from support.sketch import RANDOM, Sketch


@pytest.mark.parametrize(
    ("name", "member"),
    [
        ("input_1", "input_1"), ("serving_default_x:0", "serving_default_x_0"), ("+_+ ", "____"), ("42", "_42"),
        ("", "unnamed"), ("int", "int_"), ("class", "class_"), ("Workspace", "Workspace_"),
        ("workspace_", "workspace_"), ("__LINE__", "__LINE___"), ("_Bool", "_Bool_"), ("INT8_MAX", "INT8_MAX_"),
        ("Internal", "Internal"), ("unix", "unix_"), ("NULL", "NULL_"), ("größe", "gr____e"), ("\ud800", "___"),
    ],
)  # fmt: skip
def test_members(name: str, member: str) -> None:
    assert member_name(name) == member


@pytest.mark.parametrize(
    "name",
    ["*/ int x; /*", "??/\n#error", 'a\\\n"', "// \\", "\x00\x07\x1b[31m", "größe", "//*", "\ud800", "x" * 100_000],
)
def test_comments_are_harmless(name: str) -> None:
    text = comment_text(name)
    assert re.fullmatch(r"[\x20-\x7e]{1,100}", text)
    assert not re.search(r"\*|\\|\?|\"|#", text)


HOSTILE = ("*/ int x; /*", "??/\n#error no", "int", "workspace", "9 lives", "__FILE__", "größe\\", "y" * 3000)


def test_hostile_names_compile_and_run() -> None:
    s = Sketch("hostile")
    for name in HOSTILE:
        s.tensor(name, 3)
    for index in range(0, len(HOSTILE), 2):
        s.node(Add(), HOSTILE[index], HOSTILE[index + 1], s.tensor(f"sum of {HOSTILE[index]}", 3))
    graph = s.graph(list(HOSTILE), [node.outputs[0] for node in s.nodes])
    library = compile_network(graph)
    values = [RANDOM.integers(-9, 9, (3,), dtype="int8") for _ in HOSTILE]
    (outputs,) = run_many_on_host([(library, library.modules[0], values)])
    for index, output in enumerate(outputs):
        assert output.tolist() == (values[2 * index] + values[2 * index + 1] - 3).tolist()
    assert [info.name for info in library.modules[0].inputs] == list(HOSTILE)


@pytest.mark.parametrize(("first", "second"), [("a:0", "a/0"), ("int", "int_")])
def test_names_that_become_equal_in_c_are_rejected(first: str, second: str) -> None:
    s = Sketch()
    s.node(Add(), s.tensor(first, 2), s.tensor("b", 2), s.tensor(second, 2))
    with raises(UnsupportedModelError, "port-names-equal-in-c", at="net"):
        compile_network(s.graph([first, "b"], [second]))


MACROS = {"A": 3, "A_3": 4, "A_2": 5, "B": 6, "B_2": 6, "A_SUM": 3, "A_SUM_2": 4}
"""The words of macros for tensors a, A, a_2, B, b, a.sum and A.sum, and their elements."""


def differing_in_case(executor: str) -> Library:
    s, sizes = Sketch(), {"a": 3, "A": 4, "a_2": 5, "B": 6}
    for name, size in sizes.items():
        s.node(Add(), s.tensor(name, size), name, s.tensor(f"{name}.sum" if name != "B" else "b", size))
    return compile_network(s.graph(list(sizes), [node.outputs[0] for node in s.nodes]), executor=executor)


def test_names_that_differ_in_case_have_distinct_macros() -> None:
    library = differing_in_case("aot")
    values = [RANDOM.integers(-9, 9, (size,), dtype="int8") for size in (3, 4, 5, 6)]
    (outputs,) = run_many_on_host([(library, library.modules[0], values)])
    assert [len(output) for output in outputs] == [3, 4, 5, 6]
    header = generated(library, "tvmgen_net.h")
    assert {f"MLF_NET_{word}_ELEMENTS {size}\n" in header for word, size in MACROS.items()} == {True}
    assert {f"TVMGEN_NET_{word}_SIZE {size}\n" in header for word, size in MACROS.items()} == {True}


def test_names_that_differ_in_case_in_a_graph(tmp_path: Path) -> None:
    unpack(differing_in_case("graph"), tmp_path / "net", archive_id="0" * 64)
    (header,) = (tmp_path / "net").rglob("tvmgen_net.h")
    text = header.read_text()
    assert {f"TVMGEN_NET_{word}_SIZE {size}\n" in text for word, size in MACROS.items()} == {True}


@given(st.lists(st.text("aAbB_2", min_size=1, max_size=4)))
def test_macros_of_any_names_are_distinct(names: list[str]) -> None:
    words = macro_words(names)
    assert set(words) == set(names)
    assert len({*words.values()}) == len(words)
    assert all(word.startswith(name.upper()) for name, word in words.items())


def test_names_inside_the_network_are_not_restricted() -> None:
    s = Sketch()
    s.node(Add(), s.tensor("x", 2), "x", s.tensor("a:0", 2))
    s.node(Add(), "a:0", "x", s.tensor("a/0", 2))
    s.node(Add(), "a/0", "a:0", s.tensor("y", 2))
    assert "struct tvmgen_net_inputs {\n  void* x;\n};" in generated(
        compile_network(s.graph(["x"], ["y"])), "tvmgen_net.h"
    )
