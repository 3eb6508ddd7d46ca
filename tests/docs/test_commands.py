"""Run the blocks of code in README.md and docs/: commands and their output, project files, C, CMake, Python, JSON."""

import ast
import json
import re
import subprocess
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from mlfbuild.core.errors import ProjectFileError
from mlfbuild.project import load_project
from support.document_folders import FOLDERS
from support.document_shell import Shell, problem, steps
from support.documents import PAGES, REPOSITORY, Block, Page, matches, read_page

WITH_BLOCKS = [page for page in map(read_page, PAGES) if page.blocks and not page.generated]
TARGETS = {
    "m4": {"cpu": "cortex-m4", "board": "mps2-an386"},
    "m55": {"cpu": "cortex-m55", "board": "mps3-an547"},
    "pc": {"cpu": "host"},
}
MODELS = {
    "digits": {"source": "models/digits.tflite"},
    "vww": {"source": "vww.tflite"},
    "kws": {"source": "kws.tflite"},
}
SMALL = {"mlfbuild": 1, "targets": TARGETS, "models": MODELS}
MOST_SKIPPED = 55  # pages about devices need boards
SWEPT = {
    "tutorial", "report", "supply-chain", "verify", "committed-tree", "running", "c-interface", "cmake",
    "packages", "init", "latency", "memory", "ci", "converting",
}  # fmt: skip
"""Pages whose commands take long. The README and all other pages run on each push."""


@pytest.fixture
def shell(tmp_path: Path, request: pytest.FixtureRequest, tool: Callable[..., str]) -> Callable[[Page], Shell]:
    """Return a function that prepares the folder of a page."""
    tool("bash", "gcc", "git", "arm-none-eabi-gcc", "cmake", "ninja", "qemu-system-arm")

    def prepare(page: Page) -> Shell:
        for name in ("folder", "programs"):
            (tmp_path / name).mkdir()
        FOLDERS[page.words.get("project", "empty")](tmp_path / "folder", lambda: request.getfixturevalue("shared"))
        return Shell(tmp_path / "folder", tmp_path / "programs")

    return prepare


@pytest.mark.parametrize(
    "page",
    [pytest.param(page, marks=[pytest.mark.sweep] if page.path.stem in SWEPT else []) for page in WITH_BLOCKS],
    ids=lambda page: page.path.relative_to(REPOSITORY).as_posix(),
)
def test_the_page_is_right(page: Page, shell: Callable[[Page], Shell]) -> None:
    here = shell(page)
    for block in page.blocks:
        reason = "" if "skip" in block.words or block.quoted else wrong(block, here)
        assert reason == "", f"{block.place}: {reason}"


def wrong(block: Block, shell: Shell) -> str:
    """Return the reason why ``block`` is wrong, or ``""`` if it is right."""
    if "before" in block.words:
        ran = shell.run(block.words["before"])
        if ran.status != 0:
            return f"before: {ran.printed}"
    if "file" in block.words:
        shell.path(block.words["file"]).write_text(block.text)
    if "merge" in block.words:
        merge(shell.path("mlfbuild.yml"), yaml.safe_load(block.text))
    return CHECKS.get(block.kind, untested)(block, shell)


def untested(block: Block, _shell: Shell) -> str:
    return "" if "file" in block.words else "it has no command, and docs/blocks.yml has no entry for it"


def console(block: Block, shell: Shell) -> str:
    shown_steps = list(steps(block.text))
    for number, (command, shown) in enumerate(shown_steps, 1):
        status = int(block.words.get("status", 0)) if number == len(shown_steps) else 0
        reason = problem(shell.run(command), shown, status, wrapped="wrapped" in block.words)
        if reason:
            return f"`{command}` {reason}"
    return ""


def output(block: Block, shell: Shell) -> str:
    status = int(block.words.get("status", 0))
    reason = problem(shell.run(block.words["run"]), block.text, status, wrapped="wrapped" in block.words)
    return f"`{block.words['run']}` {reason}" if reason else ""


def commands(block: Block, shell: Shell) -> str:
    ran = shell.run(block.text)
    status = int(block.words.get("status", 0))
    return "" if ran.status == status else f"exit status {ran.status}, not {status}:\n{ran.printed}"


def project_file(block: Block, shell: Shell) -> str:
    """Load a whole project file, or keys that are merged into a small one."""
    if "merge" in block.words:
        load_project(shell.path("mlfbuild.yml"))
        return ""
    path = shell.folder / "of-a-page.yml"
    found = yaml.safe_load(block.text) or {}
    if "plain" in block.words:
        return ""
    for key in reversed(block.words.get("inside", "").split(".") if "inside" in block.words else []):
        found = {key: found}
    path.write_text(block.text if "mlfbuild" in found else yaml.safe_dump(laid(SMALL, found), sort_keys=False))
    try:
        load_project(path)
    except ProjectFileError as error:
        return str(error)
    finally:
        path.unlink()
    return ""


def laid(below: Any, above: Any) -> Any:
    """Return two values of YAML merged key by key; those of ``above`` win."""
    if not (isinstance(below, dict) and isinstance(above, dict)):
        return above
    return {**below, **{key: laid(below.get(key), value) for key, value in above.items()}}


def merge(path: Path, over: dict[str, Any]) -> None:
    """Merge ``over`` into the project file at ``path``, key by key."""
    path.write_text(yaml.safe_dump(laid(yaml.safe_load(path.read_text()), over), sort_keys=False))


def json_text(block: Block, _shell: Shell) -> str:
    try:
        json.loads(block.text)
    except ValueError as error:
        return str(error)
    return ""


def python(block: Block, _shell: Shell) -> str:
    try:
        ast.parse(block.text)
    except SyntaxError as error:
        return str(error)
    return ""


def cmake(block: Block, shell: Shell) -> str:
    """Parse the block: CMake reads a file to its end before it runs the first command, which is ``return()``."""
    path = shell.folder / "of-a-page.cmake"
    path.write_text(f"return()\n{block.text}")
    done = subprocess.run(["cmake", "-P", path], capture_output=True, text=True)
    path.unlink()
    return done.stderr


def c(block: Block, shell: Shell) -> str:
    """Compile the block after the lines of ``with``, and as the body of a function if it has ``inside``.

    A block with ``file`` is compiled by the commands that follow.
    """
    if "file" in block.words:
        return ""
    before = f"{block.words.get('with', '')}\n"
    body = (
        f"int page(void);\nint page(void)\n{{\n{block.text}\nreturn 0;\n}}\n" if "inside" in block.words else block.text
    )
    path = shell.folder / "of-a-page.c"
    path.write_text(f"#include <stdint.h>\n{before}{body}")
    ran = shell.run(
        f"gcc -std=gnu11 -Wall -Wextra -Wno-unused -fsyntax-only $(find . -name include -printf '-I%p ') {path}"
    )
    return ran.printed


CHECKS: dict[str, Callable[[Block, Shell], str]] = {
    "console": console, "output": output, "sh": commands, "yaml": project_file, "json": json_text, "python": python,
    "cmake": cmake, "c": c,
}  # fmt: skip


def test_a_skipped_block_has_a_reason() -> None:
    skipped = [block for page in WITH_BLOCKS for block in page.blocks if "skip" in block.words]
    assert [block.place for block in skipped if len(block.words["skip"].split()) < 3] == []
    assert len(skipped) <= MOST_SKIPPED, Counter(block.page.name for block in skipped)
    assert sum(len(page.blocks) for page in WITH_BLOCKS) > 3 * len(skipped)


def test_only_generated_pages_are_untested() -> None:
    generated = {path for path in PAGES if read_page(path).generated}
    assert {path.parent.name for path in generated} == {"reference"}


def test_no_page_has_a_comment_about_its_tests() -> None:
    assert [path.name for path in PAGES if "<!-- docs-test" in path.read_text(encoding="utf-8")] == []


_TWO_ALIKE = "```\n$ a\n```\n\n```\n$ b one\n```\n\n```\n$ a\n```\n"


def test_a_block_is_found_by_its_first_line(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text(_TWO_ALIKE)
    blocks = {"$ a [2]": {"status": 1}, "$ b ...": {"wrapped": True, "plain": False}}
    found = read_page(page, {"page.md": {"project": "digits", "blocks": blocks}})
    assert found.words == {"project": "digits"}
    assert [block.words for block in found.blocks] == [{}, {"wrapped": ""}, {"status": "1"}]


@pytest.mark.parametrize(
    ("entry", "message"),
    [
        ({"blocks": {"$ c": {"status": 1}}}, "no block begins with this line: $ c"),
        ({"blocks": {"$ a": {"status": 1}}}, "2 blocks begin with this line"),
        ({"blocks": {"$ a [3]": {"status": 1}}}, "only 2 blocks begin with this line"),
        ({"blocks": {"$ b one": {"status": 1}, "$ b ...": {"merge": True}}}, "two entries for one block"),
        ({"blocks": {"$ b one": {"stauts": 1}}}, "unknown word: stauts"),
        ({"blocks": {"$ b one": {"status": "1"}}}, "not of type int: status"),
        ({"projekt": "digits"}, "unknown word: projekt"),
    ],
)
def test_an_entry_of_the_side_file_that_fits_nothing_is_refused(
    tmp_path: Path, entry: dict[str, Any], message: str
) -> None:
    page = tmp_path / "page.md"
    page.write_text(_TWO_ALIKE)
    with pytest.raises(ValueError, match=re.escape(message)):
        read_page(page, {"page.md": entry})


@pytest.mark.parametrize(
    ("shown", "printed", "same"),
    [
        ("a\nb\n", "a\nb\n", True),
        ("a\nb\n", "a\nc\n", False),
        ("a\n", "a\nb\n", False),
        ("a\n...\n", "a\nb\nc\n", True),
        ("...\nc\n", "a\nb\nc\n", True),
        ("a\n...\nc\n", "a\nc\n", True),
        ("sha256 8e3f...  by 0.1\n", "sha256 8e3f4b2c  by 0.1\n", True),
        ("sha256 8e3f...  by 0.1\n", "sha256 8e3f4b2c  by 0.2\n", False),
        ("", "", True),
        ("", "a\n", False),
        ("a\n", "", False),
        ("x.y\n", "xzy\n", False),
    ],
)
def test_output_is_compared_exactly_except_for_ellipses(shown: str, printed: str, same: bool) -> None:
    assert matches(shown, printed) is same


def test_figures_may_differ_with_another_compiler() -> None:
    assert matches("digits  13,528  5 %\n", "digits   9,528  7 %\n", any_number=True)
    assert not matches("digits  13,528\n", "digits  none\n", any_number=True)
    assert matches("a b\nc\n", "a b c\n", wrapped=True)
    assert not matches("a b\nc\n", "a b d\n", wrapped=True)


def test_a_wrong_block_is_found(tmp_path: Path, shell: Callable[[Page], Shell]) -> None:
    here = shell(Page(tmp_path, {}, ()))
    wrongs = {
        "console": ("", "$ echo right\nwrong\n", "`echo right` prints\nright\n"),
        "status": ("", "$ false\n", "exit status 1, not 0"),
        "sh": ("sh", "true\nfalse\ntrue\n", "exit status 1, not 0"),
        "yaml": ("yaml", "models:\n  a: {sauce: a.tflite}\n", "models.a.sauce: unknown key"),
        "json": ("json", '{"a": }', "Expecting value"),
        "python": ("python", "def f(:\n", "invalid syntax"),
        "cmake": ("cmake", "add_library(a", "Parse error"),
        "c": ("c", "int f(void) { return g; }\n", "undeclared (first use in this function)"),
        "nothing": ("", "a tree of files\n", "docs/blocks.yml has no entry"),
        "unknown": ("cobol", "ADD 1 TO A.\n", "docs/blocks.yml has no entry"),
    }
    for language, text, reason in wrongs.values():
        assert reason in wrong(Block(tmp_path, 1, language, text), here)
