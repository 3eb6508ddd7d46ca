"""Reports that fit the schema and are consistent are read; others are refused in one line."""

import contextlib
import copy
import json
from collections.abc import Callable, Iterator
from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, strategies as st

from mlfbuild.core.errors import InputFileError
from mlfbuild.library import MEMORIES
from mlfbuild.project import CYCLE_COUNTERS, Budget
from mlfbuild.report.document.compare import compare_reports, comparison_json
from mlfbuild.report.document.read import FORMAT, mistake_in, read_report, report_schema, runs_in, sizes_in
from mlfbuild.report.document.report_files import saved_report
from mlfbuild.report.html import page
from mlfbuild.report.operators.cycles import CYCLE_KINDS
from mlfbuild.report.sizes.image import Berkeley
from mlfbuild.report.sizes.owners import FLASH_KINDS, RAM_KINDS
from mlfbuild.report.text.columns import used_part
from mlfbuild.report.text.comparison import comparison_text
from mlfbuild.report.text.sizes import sizes_text
from support.report_sketch import chain, model, modelled
from support.reports import budget, image, kws, others, report
from support.schemas import validator

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
    image("app for m7", [kws(), model("net", [modelled(chain(3))])], others()),
)
GOOD["compared"] = comparison_json(compare_reports(GOOD, report(image("app for m4", [kws(7000)], others()))))


def refusal(content: str | bytes, folder: Path) -> InputFileError:
    """Return the error for a report with this ``content``; its place is within the file."""
    path = folder / "old.json"
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    with pytest.raises(InputFileError) as caught:
        read_report(path)
    message = str(caught.value)
    assert message.isprintable() and len(message) < 400 + len(str(path))
    assert message.startswith(f"{path}: ")
    caught.value.place = caught.value.place.removeprefix(str(path)).removeprefix(": ")
    return caught.value


def spoilt(way: str, value: object) -> str:
    """Return the valid report with ``value`` at the path ``way``, or without it if ``value`` is ``...``."""
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


def test_only_what_is_taken_exceeds_a_budget_of_nothing() -> None:
    assert [used_part(taken, limit) for taken, limit in ((0, 0), (1, 0), (1, 4))] == ["0 %", "over", "25 %"]


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
    error = refusal(json.dumps(made), tmp_path)
    assert error.place == "images[0].models[0].networks[0].profile.instructions"
    assert f"{run.profile.instructions:,}" in error.reason and f"{run.profile.instructions + 1:,}" in error.reason
    network["profile"]["instructions"] = 0
    assert refusal(json.dumps(made), tmp_path).place == "images[0].models[0].networks[0].profile.instructions"


def test_modelled_cycles_read_back(tmp_path: Path) -> None:
    network = GOOD["images"][1]["models"][1]["networks"][0]
    path = tmp_path / "old.json"
    path.write_text(json.dumps(GOOD))
    (run,) = runs_in(read_report(path)["images"][1])
    found = run.profile.cycles
    assert found is not None and run.profile.part is not None
    assert (vars(found), found.total) == (
        network["profile"]["modelled"]["by_kind"],
        network["profile"]["modelled"]["cycles"],
    )
    assert run.profile.part.exactness == "modelled, +-12 %"
    shown = saved_report(path, operators=True).as_text()
    assert f"{found.total:,} cycles, " in shown and "(modelled, +-12 %)" in shown
    assert "removed, because it is the same for every input or nothing reads it" in shown


@pytest.mark.parametrize("content", ["{}", "[]", '{"mlfbuild_sizes": 1, "images": {}}'])
def test_other_json_is_refused(content: str, tmp_path: Path) -> None:
    error = refusal(content, tmp_path)
    assert (error.code, error.place) == ("not-a-report", "")
    assert "`mlfbuild report -o FILE.json`" in error.hint


@pytest.mark.parametrize(
    "content", ["", b"\xff\xfe{}", json.dumps(GOOD)[:-1], "[" * 100_000, '{"mlfbuild_report": ' + "9" * 5000 + "}"]
)
def test_damaged_json_is_refused(content: str | bytes, tmp_path: Path) -> None:
    assert refusal(content, tmp_path).exit_code == 5


@pytest.mark.parametrize("version", [0, FORMAT - 1, FORMAT + 1, 10**30])
def test_other_versions_are_refused(version: int, tmp_path: Path) -> None:
    error = refusal(spoilt("mlfbuild_report", version), tmp_path)
    assert (error.code, error.place) == ("report-version", "")
    assert str(version) in error.reason and str(FORMAT) in error.reason


@pytest.mark.parametrize(
    ("way", "value", "place"),
    [
        ("mlfbuild_report", str(FORMAT), "mlfbuild_report"),
        ("mlfbuild_report", None, "mlfbuild_report"),
        ("images", [], "images"),
        ("images", {}, "images"),
        ("images", ..., "images"),
        ("more", 1, "more"),
        ("\x1b[2J", 1, r"'\x1b[2J'"),
        ("images/0/flash", -1, "images[0].flash"),
        ("images/0/flash", 9196.0, "images[0].flash"),
        ("images/0/flash", True, "images[0].flash"),
        ("images/0/flash", "9196", "images[0].flash"),
        ("images/0/flash", 2**63, "images[0].flash"),
        ("images/0/flash", 9197, "images[0].flash"),
        ("images/0/sha256", "0" * 63 + "\n", "images[0].sha256"),
        ("images/0/sha256", "0" * 64 + "\n", "images[0].sha256"),
        ("images/0/firmware", "\ud800", "images[0].firmware"),
        ("images/0/budget/flash", -1, "images[0].budget.flash"),
        ("images/0/budget", ..., "images[0].budget"),
        ("images/0/models/0/pieces/1/kind", "magic", "images[0].models[0].pieces[1].kind"),
        ("images/0/models/0/pieces/1/size", 7, "images[0].models[0].flash"),
        ("images/0/models/0/pieces/1/flash", 1, "images[0].models[0].pieces[1].flash"),
        ("images/0/models/0/pieces/1/kind", "code", "images[0].models[0].kinds.flash.code"),
        ("images/0/models", [kws(), kws()], "images[0].models"),
        ("images/1/target", "m4", "images[1]"),
        ("images/0/baseline", {}, "images[0].baseline."),
        ("images/1/models/1/networks/0/rest/code", 9999, "images[1].models[1].networks"),
        ("images/1/models/1/networks/0/operators/1/inputs/0", 4, "images[1].models[1].networks[0].operators[1].inputs"),
        ("images/1/models/1/networks/0/operators/1/scratch", 4, "images[1].models[1].networks[0].operators[1].scratch"),
        ("images/1/models/1/networks/0/tensors/1/last", 3, "images[1].models[1].networks[0].tensors[1]"),
        ("images/1/models/1/networks/0/tensors/1/first", 2, "images[1].models[1].networks[0].tensors[1]"),
        (
            "images/1/models/1/networks/0/profile/modelled/by_kind/waiting",
            1,
            "images[1].models[1].networks[0].profile.modelled.by_kind.waiting",
        ),
        (
            "images/1/models/1/networks/0/profile/modelled/cycles",
            1,
            "images[1].models[1].networks[0].profile.modelled.cycles",
        ),
        ("images/1/models/1/networks/0/operators/1/cycles", 1, "images[1].models[1].networks[0].operators[1].cycles"),
        ("images/1/models/1/networks/0/profile/rest", 41, "images[1].models[1].networks[0].profile.instructions"),
        ("images/0/models/0/stack/frames/1", 241, "images[0].models[0].stack.worst_case"),
        ("images/0/stack/frames", [], "images[0].stack.frames"),
        ("compared/images/0/flash/now", "all", "compared.images[0].flash.now"),
    ],
)  # fmt: skip
def test_damaged_reports_are_refused(way: str, value: object, place: str, tmp_path: Path) -> None:
    error = refusal(spoilt(way, value), tmp_path)
    assert (error.code, error.place) == ("report-damaged", place)


@pytest.mark.parametrize(
    ("way", "value", "fact"),
    [
        ("images/0/flash", 9197, "9,197, but its owners have 9,196"),
        ("images/0/models/0/pieces/1/size", 7, "8,656, but its pieces have 663"),
        ("images/1/models/1/networks/0/rest/code", 9999, "11,921 bytes of flash, but the model has 2,042"),
        ("images/0/models/0/stack/frames/1", 241, "264, but its functions have 265"),
    ],
)
def test_wrong_sums_are_refused(way: str, value: object, fact: str, tmp_path: Path) -> None:
    assert fact in refusal(spoilt(way, value), tmp_path).reason


def test_a_missing_file_and_a_folder_are_refused(tmp_path: Path) -> None:
    for path in (tmp_path / "none.json", tmp_path):
        with pytest.raises(InputFileError) as caught:
            read_report(path)
        assert str(caught.value).startswith(f"{path}: ")


def read_or_one_line(path: Path) -> Json | None:
    """Return the report in ``path``, or ``None`` if it is refused in one line."""
    try:
        return dict(read_report(path))
    except InputFileError as error:
        message = str(error)
    assert message.isprintable() and message.startswith(f"{path}: ")
    return None


def places(value: object, way: tuple[str | int, ...] = ()) -> Iterator[tuple[str | int, ...]]:
    """Yield every path in a JSON value."""
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
        with contextlib.suppress(LookupError, TypeError, AttributeError):  # an earlier change removed the place
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


@pytest.fixture(scope="module")
def fits() -> Callable[[object], bool]:
    return validator(report_schema()).is_valid


@given(changes=CHANGES)
def test_schema_check_agrees_with_jsonschema(changes: list[Any], fits: Callable[[object], bool]) -> None:
    made = mutated(changes)
    valid = fits(made)
    found = mistake_in(made, report_schema())
    if valid and found:  # stricter on purpose
        assert any(words in found[1] for words in ("64 bits", "surrogate", "a whole number"))
    else:
        assert valid == (found is None)


@given(CHANGES)
def test_mutated_reports_are_refused_in_one_line_or_shown(
    tmp_path_factory: pytest.TempPathFactory, changes: list[Any]
) -> None:
    path = tmp_path_factory.getbasetemp() / "mutated.json"
    path.write_text(json.dumps(mutated(changes)))
    found = read_or_one_line(path)
    if found is None:
        return
    for verbose in (False, True):
        assert saved_report(path, operators=True).as_text(verbose=verbose).encode()
    assert page(found, GOOD).encode()
    comparison = compare_reports(found, GOOD)
    assert comparison_text(comparison, "old.json").encode()
    validator(report_schema()).validate({**found, "compared": comparison_json(comparison)})


@given(st.data())
def test_damaged_bytes_are_refused_in_one_line_or_read(
    tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    content = bytearray(json.dumps(GOOD).encode())
    for _ in range(data.draw(st.integers(1, 6))):
        content[data.draw(st.integers(0, len(content) - 1))] = data.draw(st.integers(0, 255))
    path = tmp_path_factory.getbasetemp() / "spoilt.json"
    path.write_bytes(content)
    read_or_one_line(path)


def test_lists_of_the_schema_are_those_of_the_code() -> None:
    definitions = report_schema()["$defs"]
    kinds = [*FLASH_KINDS, *RAM_KINDS]
    of = {name: kind["properties"] for name, kind in definitions.items() if "properties" in kind}
    assert report_schema()["properties"]["mlfbuild_report"]["const"] == FORMAT
    assert of["piece"]["kind"]["enum"] == kinds
    for owner in ("model", "other"):
        found = of[owner]["kinds"]["properties"]
        assert {memory: list(kind["properties"]) for memory, kind in found.items()} == {
            "flash": list(FLASH_KINDS),
            "ram": list(RAM_KINDS),
        }
    owners = of["compared"]["images"]["items"]["properties"]["owners"]["items"]["properties"]
    assert list(owners["kinds"]["properties"]) == kinds
    assert list(of["network"]["rest"]["properties"]) == list(FLASH_KINDS)
    assert set(FLASH_KINDS) <= set(definitions["operator"]["required"])
    assert of["tensor"]["memory"]["enum"] == list(MEMORIES)
    assert list(of["cycles"]) == list(CYCLE_KINDS)
    assert of["measured"]["counter"]["enum"] == list(CYCLE_COUNTERS)
    assert set(of["budget"]) == {field.name for field in fields(Budget)}
    assert list(of["image"]["size"]["properties"]) == [field.name for field in fields(Berkeley)]
