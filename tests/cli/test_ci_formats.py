"""Results for CI: JUnit XML of `verify`, annotations of GitHub Actions, SARIF of `validate`."""

import re
from dataclasses import replace
from pathlib import Path
from typing import Any
from urllib.parse import unquote
from xml.etree import ElementTree as ET

import pytest

from mlfbuild.archive import pack_archive
from mlfbuild.cli.output.ci_formats import JUnitCase, annotation, error_annotations, write_junit
from mlfbuild.core import Diagnostic, InputFileError, ProcessFailedError, ProjectFileError
from mlfbuild.library import Library
from mlfbuild.verify import VerifyReport
from support.command import Folder
from support.libraries import native_module
from support.markdown import rows
from support.schemas import validator

VECTORS_OF_ALPHA = (5, 49)
"""Line and column of `vectors` of the model alpha in the project file."""


def _object(required: dict[str, Any], optional: dict[str, Any] | None = None) -> dict[str, Any]:
    properties = {**required, **(optional or {})}
    return {"type": "object", "properties": properties, "required": list(required), "additionalProperties": False}


_TEXT = {"type": "string", "minLength": 1}
_MESSAGE = _object({"text": _TEXT})
_LEVEL = {"enum": ["none", "note", "warning", "error"]}
_LOCATION = _object(
    {
        "physicalLocation": _object(
            {
                "artifactLocation": _object({"uri": {**_TEXT, "pattern": "^[A-Za-z0-9._~:/%+-]+$"}}),
                "region": _object({"startLine": {"type": "integer", "minimum": 1}}),
            }
        ),
        "logicalLocations": {"type": "array", "items": _object({"fullyQualifiedName": _TEXT, "kind": _TEXT})},
    }
)
SARIF = _object(
    {
        "$schema": {"const": "https://json.schemastore.org/sarif-2.1.0.json"},
        "version": {"const": "2.1.0"},
        "runs": {
            "type": "array",
            "items": _object(
                {
                    "tool": _object(
                        {
                            "driver": _object(
                                {
                                    "name": {"const": "mlfbuild"},
                                    "version": _TEXT,
                                    "rules": {
                                        "type": "array",
                                        "uniqueItems": True,
                                        "items": _object(
                                            {
                                                "id": _TEXT,
                                                "shortDescription": _MESSAGE,
                                                "help": _MESSAGE,
                                                "defaultConfiguration": _object({"level": _LEVEL}),
                                            }
                                        ),
                                    },
                                }
                            )
                        }
                    ),
                    "invocations": {"type": "array", "items": _object({"executionSuccessful": {"type": "boolean"}})},
                    "columnKind": {"enum": ["utf16CodeUnits", "unicodeCodePoints"]},
                    "results": {
                        "type": "array",
                        "items": _object(
                            {
                                "ruleId": _TEXT,
                                "ruleIndex": {"type": "integer", "minimum": 0},
                                "level": _LEVEL,
                                "message": _MESSAGE,
                                "locations": {"type": "array", "items": _LOCATION},
                                "partialFingerprints": {"type": "object", "additionalProperties": _TEXT},
                            }
                        ),
                    },
                }
            ),
        },
    }
)
"""The objects of SARIF 2.1.0 that mlfbuild writes; every other key is refused.

Logs of the archives in ../shared were valid by OASIS's own schema (commit e0583813 of oasis-tcs/sarif-spec).
"""


def junit(folder: Folder) -> ET.Element:
    return ET.parse(folder.root / "out/report.xml").getroot()


def cases(root: ET.Element) -> list[tuple[str | None, str | None, list[str]]]:
    return [(case.get("classname"), case.get("name"), [child.tag for child in case]) for case in root.iter("testcase")]


@pytest.mark.usefixtures("host_tools")
def test_junit_has_a_case_for_each_model_and_one_for_what_was_skipped(folder: Folder) -> None:
    assert folder.run("verify", "--junit", "out/report.xml", "-q").status == 0
    root = junit(folder)
    assert {name: root.get(name) for name in ("tests", "failures", "errors", "skipped")} == {
        "tests": "2", "failures": "0", "errors": "0", "skipped": "1",
    }  # fmt: skip
    (alpha, skipped) = cases(root)
    assert alpha == ("mlfbuild.verify.pc", "alpha", ["system-out"])
    assert skipped == ("mlfbuild.verify.skipped", "model.beta", ["skipped"])
    (reason,) = root.iter("skipped")
    assert reason.text == reason.get("message") and "beta has no vectors" in str(reason.text)
    before = (folder.root / "out/report.xml").read_bytes()
    assert folder.run("verify", "--junit", "out/report.xml").status == 0
    assert (folder.root / "out/report.xml").read_bytes() == before, "no durations"

    folder.write_vectors("alpha", wrong=True)
    ended = folder.run("verify", "--junit", "out/report.xml", "--format", "github", status=1)
    root = junit(folder)
    (failure,) = root.iter("failure")
    assert cases(root)[0] == ("mlfbuild.verify.pc", "alpha", ["failure"])
    assert "case 1" in str(failure.get("message")) and "element 2" in str(failure.text)
    (case, _) = root.iter("testcase")
    assert (case.get("file"), case.get("line")) == ("mlfbuild.yml", str(VECTORS_OF_ALPHA[0]))
    (line,) = [line for line in ended.err.splitlines() if line.startswith("::")]
    place = f"line={VECTORS_OF_ALPHA[0]},col={VECTORS_OF_ALPHA[1]}"
    assert line.startswith(f"::error file=mlfbuild.yml,{place},title=mlfbuild%3A verify-failed::mlfbuild.yml:")
    assert "target pc" in line and "case 1" in line
    assert "case 1" in ended.out, "the result is printed as text, too"

    folder.write("alpha.npz", b"no vectors")
    assert folder.run("verify", "--junit", "out/report.xml").status == 5
    (error,) = junit(folder).iter("error")
    assert (error.get("type"), junit(folder).get("errors")) == ("not-a-vectors-file", "1")


def test_junit_names_are_identifiers_and_readers_find_every_case(tmp_path: Path) -> None:
    from junitparser import JUnitXml

    right = VerifyReport("kws", "gdb localhost:3333", 3, 3, (), (), 64, 64, 8)
    wrong = replace(right, module="odd name|<b>", problems=("kws: case 1, output 0\x1b[31m <wrong>",), hint="look")
    broken = InputFileError("array-missing", place="v.npz", reason="has no 'in0' & 'in1'", hint="add them")
    write_junit(
        tmp_path / "out.xml",
        [
            JUnitCase("gdb localhost:3333", "kws", right),
            JUnitCase("gdb localhost:3333", wrong.module, wrong),
            JUnitCase("m4", "a.b", broken),
            JUnitCase("skipped", "model.c", None, text="model c has no vectors"),
        ],
    )
    report = JUnitXml.fromfile(str(tmp_path / "out.xml"))
    found = [(suite, case) for suite in report for case in suite]
    for name in (report.name, *(name for suite, case in found for name in (suite.name, case.classname, case.name))):
        assert re.fullmatch(r"[\w+-]+(\.[\w+-]+)*", name, re.ASCII), name
    assert [(case.classname, case.name) for _, case in found] == [
        ("mlfbuild.verify.gdb_localhost_3333", "kws"),
        ("mlfbuild.verify.gdb_localhost_3333", "odd_name_b_"),
        ("mlfbuild.verify.m4", "a.b"),
        ("mlfbuild.verify.skipped", "model.c"),
    ]
    assert len({(case.classname, case.name) for _, case in found}) == len(found)
    assert [(each.name, each.value) for each in found[0][0].properties()] == [
        ("target", "gdb localhost:3333"), ("device", "gdb localhost:3333"),
    ]  # fmt: skip
    assert [[type(each).__name__ for each in case.result] for _, case in found] == [
        [], ["Failure"], ["Error"], ["Skipped"],
    ]  # fmt: skip
    # GitLab shows the content of the element, not its message (lib/gitlab/ci/parsers/test/junit.rb).
    assert [[each.text for each in case.result] for _, case in found][2:] == [
        ["v.npz: has no 'in0' & 'in1'; add them"], ["model c has no vectors"],
    ]  # fmt: skip
    (failure,) = found[1][1].result
    assert "<wrong>" in failure.text and "look" in failure.text and "\x1b" not in failure.text
    assert (report.tests, report.failures, report.errors, report.skipped) == (4, 1, 1, 1)


def test_junit_of_an_older_run_does_not_survive_a_failed_build(folder: Folder) -> None:
    folder.write("out/report.xml", "<testsuites/>")
    folder.write("models/beta.tflite", b"TFL3 is missing")
    folder.run("verify", "--junit", "out/report.xml", status=5)
    (error,) = junit(folder).iter("error")
    assert "beta.tflite" in str(error.get("message"))


def test_a_junit_file_that_cannot_be_written_is_a_storage_error(folder: Folder) -> None:
    folder.write("models/beta.tflite", b"TFL3 is missing")
    assert folder.refused("verify", "--junit", "main.c/report.xml")[0] == 8


@pytest.mark.usefixtures("host_tools")
def test_verify_prints_a_table_in_markdown_and_the_error_below_it(folder: Folder) -> None:
    ended = folder.run("verify", "--format", "markdown", status=0)
    passed, skipped = rows(ended.out, 7)
    assert passed[:5] == ["passed", "alpha", "pc", "host", "3"]
    assert skipped[0] == "skipped" and "beta has no vectors" in skipped[1]
    folder.write_vectors("alpha", wrong=True)
    ended = folder.run("verify", "--format", "markdown")
    assert ended.status == 1 and rows(ended.out, 7)[0][:2] == ["failed", "alpha"]
    (listed,) = [line for line in ended.out.splitlines() if line.startswith("- ")]
    assert "case 1" in listed and "case 1" in ended.err
    folder.write("mlfbuild.yml", "mlfbuild: 1\ntargets: {pc: {cpu: '<b>|`x`'}}\n")
    ended = folder.run("build", "--format", "markdown")
    assert (ended.status, "``" in ended.out, "<b>|`x`" in ended.out) == (2, True, True)
    assert folder.run("boards", "--format", "markdown").status == 2


def test_mistakes_of_a_project_file_are_annotations_at_their_lines(
    folder: Folder, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder.write("sub/mlfbuild.yml", "mlfbuild: 1\ntargets: {pc: {cpu: hots}}\nmodels: {a: {sorce: b}}\n")
    monkeypatch.setenv("GITHUB_WORKSPACE", str(folder.root))
    monkeypatch.chdir(folder.root / "sub")
    ended = folder.run("check", "--format", "github")
    assert (ended.status, ended.out) == (2, "")
    first, second, *_ = ended.err.splitlines()
    assert first.startswith("::error file=sub/mlfbuild.yml,line=2,col=21,title=mlfbuild%3A unknown-cpu::")
    assert second.startswith("::error file=sub/mlfbuild.yml,line=3,")
    usage = folder.run("check", "--format", "github", "--frozen")
    assert usage.status == 2 and usage.err.startswith("::error title=mlfbuild%3A command-line-invalid::")


def test_annotations_escape_what_the_runner_reads() -> None:
    assert annotation("error", "a: 100 %\nb\r::error::c", title="x,y:z") == (
        "::error title=x%2Cy%3Az::a: 100 %25%0Ab\\r::error::c"
    )
    assert "\x1b" not in annotation("warning", "a\x1b[0m")
    assert annotation("error", f"{'n' * 5000}: too long for a file").startswith("::error title=mlfbuild::")


def test_an_error_is_one_annotation_and_each_finding_of_it_another() -> None:
    here = Path(__file__)
    (line,) = error_annotations(InputFileError("archive-not-tar", place=here, reason="no"))
    assert line.startswith(f"::error file={here.as_posix()},title=mlfbuild%3A archive-not-tar::")
    findings = [Diagnostic("one", f"{here}:3:4", "first"), Diagnostic("two", "gone.yml:5", "second")]
    first, second = error_annotations(ProjectFileError(findings))
    assert first.startswith(f"::error file={here.as_posix()},line=3,col=4,title=mlfbuild%3A one::")
    assert second == "::error title=mlfbuild%3A two::gone.yml:5: second"
    failed = ProcessFailedError("program-failed", "main.c:1: error: x\n", place="gcc", reason="failed")
    assert list(error_annotations(failed))[1:] == ["main.c:1: error: x"]


def test_sarif_of_an_invalid_archive(archives: Folder) -> None:
    name = "a b/leer ü%.tar"
    archives.write(name, pack_archive(Library((native_module_without_code(),))))
    ended = archives.run("validate", name, "--format", "sarif")
    assert ended.status == 1 and ended.err.startswith("mlfbuild: ")
    validator(SARIF).validate(ended.json)
    (run,) = ended.json["runs"]
    rules = [rule["id"] for rule in run["tool"]["driver"]["rules"]]
    assert [rules[result["ruleIndex"]] for result in run["results"]] == [result["ruleId"] for result in run["results"]]
    findings = archives.run("validate", name, "--format", "json").json["findings"]
    found = [(result["ruleId"], result["level"]) for result in run["results"]]
    assert found == [(finding["code"], finding["severity"]) for finding in findings] and ("MLF101", "error") in found
    places = [result["locations"][0]["physicalLocation"]["artifactLocation"]["uri"] for result in run["results"]]
    assert {unquote(place) for place in places} == {name} and " " not in places[0]
    assert len({result["partialFingerprints"]["mlfbuildFinding/v1"] for result in run["results"]}) == len(found)
    github = archives.run("validate", name, "--format", "github")
    assert "title=mlfbuild%3A MLF101::" in github.err and github.out == archives.run("validate", name).out


def native_module_without_code() -> Any:
    from dataclasses import replace

    return replace(native_module(), codegen=())


def test_sarif_of_a_valid_archive_has_no_errors(archives: Folder) -> None:
    ended = archives.run("validate", "tiny.tar", "--format", "sarif")
    validator(SARIF).validate(ended.json)
    assert (ended.status, "error" in {result["level"] for result in ended.json["runs"][0]["results"]}) == (0, False)


def test_sarif_is_refused_by_other_verbs(folder: Folder) -> None:
    for arguments in (["check", "--format", "sarif"], ["--format", "sarif", "check"]):
        assert folder.run(*arguments).status == 2
