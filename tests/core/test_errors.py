"""Errors are fields; their text and their JSON are views."""

import pickle
import re
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path

import pytest

from mlfbuild.core import (
    Diagnostic,
    DriftError,
    InputFileError,
    MlfError,
    ProcessFailedError,
    ProjectFileError,
    ToolNotFoundError,
)
from support.wordings import wordings

ROOT = Path(__file__).parents[2]
ERROR = InputFileError("archive-truncated", place="kws.tar", reason="the archive ends early", hint="copy it again")


def test_text_is_place_reason_and_hint_on_one_line() -> None:
    assert str(ERROR) == "kws.tar: the archive ends early; copy it again"
    assert str(InputFileError("x", reason="no place, no hint")) == "no place, no hint"


def test_an_outer_place_comes_first() -> None:
    outer = ERROR.within("project.yml")
    assert (type(outer), outer.code, outer.place) == (InputFileError, "archive-truncated", "project.yml: kws.tar")
    assert ERROR.place == "kws.tar"


@pytest.mark.parametrize(
    "error",
    [
        ERROR,
        ProcessFailedError("link-failed", "ld: error", reason="the linker failed"),
        DriftError("lock-drift", place="mlfbuild.lock", reason="2 entries differ", problems=["a", "b"]),
        ProjectFileError([Diagnostic("unknown-key", "mlfbuild.yml:3:1", "unknown key")]),
    ],
)
def test_errors_can_be_pickled(error: MlfError) -> None:
    copy = pickle.loads(pickle.dumps(error))
    assert (type(copy), vars(copy), str(copy)) == (type(error), vars(error), str(error))


def test_the_kind_is_the_class() -> None:
    assert ToolNotFoundError.kind() == "tool-not-found"


def test_codes_are_kebab_case_and_belong_to_one_class() -> None:
    kinds = defaultdict(set)
    for found in wordings():
        if found.has_fields and "{" not in found.code:
            assert re.fullmatch(r"[a-z][a-z0-9]*(-[a-z0-9]+)+", found.code), found
            kinds[found.code].add(found.kind)
    assert {code: classes for code, classes in kinds.items() if len(classes - {"Diagnostic", "Mistake"}) > 1} == {}


def test_all_wordings(golden: Callable[[str, str], None]) -> None:
    rows = {
        f"{found.code} ({found.kind})\n"
        + "".join(f"    {name}: {text}\n" for name in ("place", "reason", "hint") if (text := found.words.get(name)))
        for found in wordings()
        if found.has_fields
    }
    golden("\n".join(sorted(rows)), "wordings.txt")


def test_every_error_has_a_code_and_a_reason() -> None:
    assert [found for found in wordings() if not found.code or not found.has_fields] == []


def test_troubleshooting_describes_codes_that_exist() -> None:
    text = (ROOT / "docs/troubleshooting.md").read_text()
    codes = re.findall(r"^\| `.*` \| `([a-z-]+)` \|", text, re.MULTILINE)
    assert len(codes) == 10
    assert set(codes) <= {wording.code for wording in wordings()} | {"unknown-key"}
    exit_codes = {int(code) for code in re.findall(r"^\| (\d+) \|", text, re.MULTILINE)}
    assert exit_codes == {*range(9), 130}
