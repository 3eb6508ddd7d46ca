"""Reading reports again: what fits the schema and adds up, and one line for all else."""

from __future__ import annotations

import contextlib
import copy
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from hypothesis import given, settings, strategies as st

from mlfbuild.core.errors import InputFileError
from mlfbuild.report.compare import compare_reports, comparison_json
from mlfbuild.report.compare_text import comparison_text
from mlfbuild.report.html import page
from mlfbuild.report.read import read_report, runs_in, sizes_in
from mlfbuild.report.schema import FORMAT, report_schema
from mlfbuild.report.schema_check import mistake_in
from mlfbuild.report.text import sizes_text
from mlfbuild.usecases.report_files import saved
from support.report_sketch import chain, model
from support.reports import budget, image, kws, others, report

Json = dict[str, Any]
STACK = {"worst_case": 264, "reason": "", "path": ["mlf_kws_run", "conv"], "frames": [24, 240], "measured": 250}
UNKNOWN = {"worst_case": None, "reason": "it calls itself", "path": ["main"], "frames": [0], "measured": None}
GOOD = report(
    image(
        "app for m4",
        [kws(budget=budget(flash=9000), stack=STACK)],
        others(),
        baseline={"": {"flash": 1, "ram": 2}},
        stack=UNKNOWN,
    ),
    image("app for m7", [kws(), model("net", [chain(3)])], others()),
)
GOOD["compared"] = comparison_json(compare_reports(GOOD, report(image("app for m4", [kws(7000)], others()))))
NOT_JSON = "is no report, which `mlfbuild report -o FILE.json` writes: the text is not valid JSON: "
AGAIN = "; make it again with `mlfbuild report -o FILE.json`"


def reason(content: str | bytes, folder: Path) -> str:
    """Why ``content`` is refused, behind the name of its file."""
    path = folder / "old.json"
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    with pytest.raises(InputFileError) as caught:
        read_report(path)
    message = str(caught.value)
    assert caught.value.exit_code == 5 and message.isprintable() and len(message) < 400 + len(str(path))
    assert message.startswith(f"{path}: ")
    return message.removeprefix(f"{path}: ")


def spoilt(way: str, value: object) -> str:
    """The good report with another value at the place ``way``, or without it where ``value`` is ``...``."""
    made = copy.deepcopy(GOOD)
    *path, last = [int(part) if part.isdigit() else part for part in way.split("/")]
    place: Any = made
    for part in path:
        place = place[part]
    if value is ...:
        del place[last]
    else:
        place[last] = value
    return json.dumps(made)


def test_a_report_reads_back(tmp_path: Path) -> None:
    path = tmp_path / "old.json"
    path.write_text(json.dumps(GOOD))
    assert read_report(path) == GOOD
    sizes, budgets, whole = sizes_in(GOOD["images"][0])
    assert [(owner.name, owner.flash) for owner in sizes.models] == [("kws", 8656)]
    assert budgets["kws"].flash == 9000 and whole.flash is None
    assert "  model kws: 8,656 of 9,000 bytes of flash (96 %)" in sizes_text(sizes, budgets, whole)


def test_runs_read_back(tmp_path: Path) -> None:
    made = report(image("app for m4", [model("net", [chain(3)])], others()))
    network = made["images"][0]["models"][0]["networks"][0]
    path = tmp_path / "old.json"
    path.write_text(json.dumps(made))
    (run,) = runs_in(read_report(path)["images"][0])
    counts = [operator["instructions"] for operator in network["operators"]]
    assert [each.instructions for each in run.operators] == counts
    assert (run.target, run.model, run.profile.board) == ("m4", "net", "mps2-an386")
    assert run.profile.instructions == sum(counts) + 40
    assert runs_in(GOOD["images"][0]) == []
    network["operators"][1]["instructions"] += 1
    total = run.profile.instructions
    assert reason(json.dumps(made), tmp_path) == (
        f"is a damaged report: images[0].models[0].networks[0].profile.instructions: is {total:,}, but operators and "
        f"rest have {total + 1:,}{AGAIN}"
    )
    network["profile"]["instructions"] = 0
    assert "profile.instructions: must be at least 1" in reason(json.dumps(made), tmp_path)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("", f"{NOT_JSON}Expecting value: line 1"),
        ("{}", "is no report, which `mlfbuild report -o FILE.json` writes"),
        ("[]", "is no report, which"),
        ('{"mlfbuild_sizes": 1, "images": {}}', "is no report, which"),
        (b"\xff\xfe{}", f"{NOT_JSON}'utf-8' codec"),
        (json.dumps(GOOD)[:-1], f"{NOT_JSON}Expecting"),
        ("[" * 100_000, f"{NOT_JSON}it is nested too deeply"),
        ('{"mlfbuild_report": ' + "9" * 5000 + "}", "is no report, which"),
    ],
)  # fmt: skip
def test_what_is_no_report(content: str | bytes, message: str, tmp_path: Path) -> None:
    assert reason(content, tmp_path).startswith(message)


@pytest.mark.parametrize("version", [0, FORMAT - 1, FORMAT + 1, 10**30])
def test_another_version(version: int, tmp_path: Path) -> None:
    assert reason(spoilt("mlfbuild_report", version), tmp_path) == (
        f"is a report of version {version}, which another version of mlfbuild made; this one reads version {FORMAT}: "
        "make the report again with this one"
    )


@pytest.mark.parametrize(
    ("way", "value", "message"),
    [
        ("mlfbuild_report", str(FORMAT), f"mlfbuild_report: must be {FORMAT}"),
        ("mlfbuild_report", None, f"mlfbuild_report: must be {FORMAT}"),
        ("images", [], "images: must have at least 1 item"),
        ("images", {}, "images: must be a list"),
        ("images", ..., "images: is missing"),
        ("more", 1, "more: is no part of it"),
        ("\x1b[2J", 1, r"'\x1b[2J': is no part of it"),
        ("images/0/flash", -1, "images[0].flash: must be at least 0"),
        ("images/0/flash", 9196.0, "images[0].flash: must be a whole number"),
        ("images/0/flash", True, "images[0].flash: must be a whole number"),
        ("images/0/flash", "9196", "images[0].flash: must be a whole number"),
        ("images/0/flash", 2**63, "images[0].flash: is too large for a number of 64 bits"),
        ("images/0/flash", 9197, "images[0].flash: is 9,197, but its owners have 9,196"),
        ("images/0/sha256", "0" * 63 + "\n", "images[0].sha256: must look like ^[0-9a-f]{64}$"),
        ("images/0/sha256", "0" * 64 + "\n", "images[0].sha256: has more than 64 characters"),
        ("images/0/firmware", "\ud800", "images[0].firmware: is no text: it has half a character of UTF-16"),
        ("images/0/budget/flash", -1, "images[0].budget.flash: must be at least 0"),
        ("images/0/budget", ..., "images[0].budget: is missing"),
        ("images/0/models/0/pieces/1/kind", "magic", "images[0].models[0].pieces[1].kind: must be one of code, "),
        ("images/0/models/0/pieces/1/size", 7, "images[0].models[0].flash: is 8,656, but its pieces have 663"),
        ("images/0/models/0/pieces/1/flash", 1, "images[0].models[0].pieces[1].flash: must be true or false"),
        ("images/0/models/0/pieces/1/kind", "code",
         "images[0].models[0].kinds.flash.code: is 400, but its pieces have 8,400"),
        ("images/0/models", [kws(), kws()], "images[0].models: kws stands there twice"),
        ("images/1/target", "m4", "images[1]: app for m4 stands there twice"),
        ("images/0/baseline", {}, "images[0].baseline.: is missing"),
        ("images/1/models/1/networks/0/rest/code", 9999,
         "images[1].models[1].networks: have 11,921 bytes of flash, but the model 2,042"),
        ("images/1/models/1/networks/0/operators/1/inputs/0", 4,
         "images[1].models[1].networks[0].operators[1].inputs: 4 is the number of no tensor"),
        ("images/1/models/1/networks/0/operators/1/scratch", 4,
         "images[1].models[1].networks[0].operators[1].scratch: has none of the forms that it may have"),
        ("images/1/models/1/networks/0/tensors/1/last", 3,
         "images[1].models[1].networks[0].tensors[1]: is needed from operator 0 to 3 of 3"),
        ("images/1/models/1/networks/0/tensors/1/first", 2,
         "images[1].models[1].networks[0].tensors[1]: is needed from operator 2 to 1 of 3"),
        ("images/1/models/1/networks/0/profile/rest", 41, "images[1].models[1].networks[0].profile.instructions: is "),
        ("images/0/models/0/stack/frames/1", 241,
         "images[0].models[0].stack.worst_case: is 264, but its functions have 265"),
        ("images/0/stack/frames", [], "images[0].stack.frames: has 0 of 1 function"),
        ("compared/images/0/flash/now", "all", "compared.images[0].flash.now: must be a whole number or null"),
    ],
)  # fmt: skip
def test_what_is_damaged(way: str, value: object, message: str, tmp_path: Path) -> None:
    found = reason(spoilt(way, value), tmp_path)
    assert found.startswith(f"is a damaged report: {message}") and found.endswith(AGAIN)


def test_a_missing_file_and_a_folder(tmp_path: Path) -> None:
    for path, message in (
        (tmp_path / "none.json", "no such report; check the path$"),
        (tmp_path, "is a folder, not a report; name the file itself$"),
    ):
        with pytest.raises(InputFileError, match=message):
            read_report(path)


def read_or_one_line(path: Path) -> Json | None:
    """The report in ``path``, or nothing where it is refused in one line."""
    try:
        return dict(read_report(path))
    except InputFileError as error:
        message = str(error)
    assert message.isprintable() and message.startswith(f"{path}: ")
    return None


def places(value: object, way: tuple[str | int, ...] = ()) -> Iterator[tuple[str | int, ...]]:
    """Every place of a JSON value."""
    yield way
    pairs = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, member in pairs:
        yield from places(member, (*way, key))


PLACES = [way for way in places(GOOD) if way]
SCALARS = st.none() | st.booleans() | st.integers(-(2**70), 2**70) | st.floats(allow_nan=False) | st.text(max_size=8)
VALUES = st.recursive(SCALARS, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=6), inner))
CHANGES = st.lists(
    st.tuples(st.sampled_from(PLACES), st.sampled_from(["replace", "remove", "add", "copy"]), VALUES),
    min_size=1, max_size=4,
)  # fmt: skip


def mutated(changes: list[tuple[tuple[str | int, ...], str, Any]]) -> Json:
    made = copy.deepcopy(GOOD)
    for (*path, last), how, value in changes:
        place: Any = made
        with contextlib.suppress(LookupError, TypeError, AttributeError):  # an earlier change took the place away
            for part in path:
                place = place[part]
            if how == "remove":
                del place[last]
            elif how == "add" and isinstance(place, dict):
                place[str(value)] = value
            elif how == "copy" and isinstance(place, list):
                place.append(copy.deepcopy(place[last]))
            else:
                place[last] = value
    return made


@settings(max_examples=150, deadline=None)
@given(CHANGES)
def test_the_schema_is_judged_as_by_others(changes: list[Any]) -> None:
    made = mutated(changes)
    valid = jsonschema.Draft202012Validator(report_schema()).is_valid(made)
    found = mistake_in(made, report_schema())
    if valid and found:  # where we are stricter on purpose
        assert any(words in found for words in ("64 bits", "half a character", "a whole number"))
    else:
        assert valid == (found == "")


@settings(max_examples=150, deadline=None)
@given(CHANGES)
def test_mutations_are_refused_in_one_line_or_shown(
    tmp_path_factory: pytest.TempPathFactory, changes: list[Any]
) -> None:
    path = tmp_path_factory.getbasetemp() / "mutated.json"
    path.write_text(json.dumps(mutated(changes)))
    found = read_or_one_line(path)
    if found is None:
        return
    for verbose in (False, True):
        assert saved(path, operators=True).as_text(verbose=verbose).encode()
    assert page(found, GOOD).encode()
    comparison = compare_reports(found, GOOD)
    assert comparison_text(comparison, "old.json").encode()
    jsonschema.Draft202012Validator(report_schema()).validate({**found, "compared": comparison_json(comparison)})


@settings(max_examples=150, deadline=None)
@given(st.data())
def test_spoilt_bytes_are_refused_in_one_line_or_read(
    tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    content = bytearray(json.dumps(GOOD).encode())
    for _ in range(data.draw(st.integers(1, 6))):
        content[data.draw(st.integers(0, len(content) - 1))] = data.draw(st.integers(0, 255))
    path = tmp_path_factory.getbasetemp() / "spoilt.json"
    path.write_bytes(content)
    read_or_one_line(path)
