"""Any content of a project file gives a project or messages, never a traceback."""

import random
import re
from pathlib import Path

import pytest
import yaml
from hypothesis import example, given, settings, strategies as st

from mlfbuild.core import Mistake
from mlfbuild.core.errors import ProjectFileError
from mlfbuild.project import Project, load_project
from mlfbuild.project.scalars import read_scalar
from support.examples import examples

COMPLETE = (Path(__file__).parent / "valid" / "complete.yml").read_text()
LINE = re.compile(r"\S+mlfbuild\.yml:\d+:\d+: [^\n]+")
PIECES = [
    "on", "010", "1e-3", "~", "", "- ", "? ", ": ", "{", "}", "[", "]", "&a ", "*a ", "!!str ", "<<: ", "\t", "\n", "'",
    '"', "|\n", ">\n", "#", "%", "@", "...\n", "---\n", "\\", "\x00", "\ud800", "é", "\u2028", "\x85", "null: ", "5: ",
    "models: ", "targets: ", "firmware: ", "dependencies: ", "git: ",
    "https://a@b/", "source: ", "board: ", "kws", "m4", "x" * 300, "9" * 5000, ".inf", "1:2:3",
]  # fmt: skip


def outcome(folder: Path, text: str) -> Project | list[str]:
    path = folder / "mlfbuild.yml"
    path.write_bytes(text.encode("utf-8", "surrogatepass"))
    try:
        return load_project(path)
    except ProjectFileError as error:
        return [str(problem) for problem in error.problems]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("project")


@settings(max_examples=examples(500), deadline=None)
@given(st.lists(st.tuples(st.floats(0, 1), st.integers(0, 12), st.sampled_from(PIECES)), min_size=1, max_size=3))
def test_mistakes_at_any_place_get_a_message(folder: Path, edits: list[tuple[float, int, str]]) -> None:
    text = COMPLETE
    for where, cut, piece in edits:
        place = int(where * len(text))
        text = text[:place] + piece + text[place + cut :]
    found = outcome(folder, text)
    assert isinstance(found, Project) or (found and all(LINE.fullmatch(problem) for problem in found))


@settings(max_examples=examples(300), deadline=None)
@given(st.randoms(use_true_random=False))
def test_lines_in_any_order_get_a_message(folder: Path, chance: random.Random) -> None:
    lines = COMPLETE.splitlines(keepends=True)
    text = "".join(chance.choice(lines) for _ in range(len(lines)))
    found = outcome(folder, text)
    assert isinstance(found, Project) or (found and all(LINE.fullmatch(problem) for problem in found))


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=8,
)
SECTION = st.dictionaries(
    st.sampled_from(["kws", "m4", "app", "cpu", "KWS"]),
    JSON
    | st.dictionaries(
        st.sampled_from(["source", "targets", "cpu", "board", "models", "options", "cmake", "git", "url", "version"]),
        JSON,
    ),
    max_size=3,
)


@given(st.dictionaries(st.sampled_from(["mlfbuild", "targets", "models", "firmware", "dependencies"]), JSON | SECTION))
def test_any_structure_gets_a_message(folder: Path, value: object) -> None:
    found = outcome(folder, yaml.safe_dump(value, allow_unicode=True, sort_keys=False))
    assert found and not isinstance(found, Project)


NUMBERS = st.text("0123456789_.:+-eExobB", min_size=1, max_size=9)
WORDS = st.sampled_from(
    [
        "on", "off", "yes", "no", "True", "FALSE", "null", "~", "y", "N", "=", "<<", ".inf", "-.INF", ".NaN",
        "2026-11-21", "12:30",
    ]
)  # fmt: skip


@settings(max_examples=examples(1000), deadline=None)
@given(NUMBERS | WORDS | st.text(max_size=12).filter(lambda text: text not in {"!", "&", "*"}))
@example("0b_")
@example("190:20:30.15")
def test_scalars_are_read_as_pyyaml_does_or_refused(text: str) -> None:
    try:
        value = read_scalar(text, plain=True)
    except Mistake as error:
        meant = re.search(r"; write (.*), or ", str(error))
        if meant:
            read_scalar(meant[1], plain=True)  # the hint is accepted
        return
    tag = yaml.SafeLoader("").resolve(yaml.ScalarNode, text, (True, False))
    loader = yaml.SafeLoader("")
    assert value == loader.construct_object(yaml.ScalarNode(tag, text))


@given(st.text(st.characters(exclude_categories=["Cc", "Cs"])))
def test_quoted_scalars_are_text(text: str) -> None:
    assert read_scalar(text, plain=False) == text


@pytest.mark.parametrize("value", ["[]", "{}", "[gcc]", "{gcc: 1}"])
def test_a_list_or_mapping_in_place_of_a_name(value: str, folder: Path) -> None:
    found = outcome(
        folder, COMPLETE.replace("targets:\n", f"targets:\n  odd: {{cpu: cortex-m4, c-compiler: {value}}}\n", 1)
    )
    assert isinstance(found, list)
    assert any("targets.odd.c-compiler" in problem for problem in found), found
