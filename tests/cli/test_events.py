"""``--format json``: one event per line on stderr, which fits the schema, and only results on stdout."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from mlfbuild.cli.output.events import requested_format
from support import schemas, warm
from support.command import Ended, Folder

if TYPE_CHECKING:
    from jsonschema import Draft202012Validator


@pytest.fixture(scope="module")
def validator() -> Draft202012Validator:
    """Return the validator for the schema of events that the command prints."""
    schema = json.loads(warm.run("mlfbuild", "schema", "--events", check=True).stdout)
    return schemas.validator(schema)


def events(ended: Ended, validator: Draft202012Validator) -> list[dict[str, Any]]:
    """Return the events on stderr, checked by the schema, without times, which vary."""
    found = [json.loads(line) for line in ended.err.splitlines()]
    for event in found:
        validator.validate(event)
    for event in found:
        assert event.pop("seconds", 0) >= 0
    return found


def of_kind(found: list[dict[str, Any]], kind: str) -> list[dict[str, Any]]:
    return [event for event in found if event["event"] == kind]


@pytest.mark.usefixtures("host_tools")
def test_build_reports_each_job(folder: Folder, validator: Draft202012Validator) -> None:
    folder.write("main.c", '#warning "old"\nint main(void) { return 0; }\n')
    ended = folder.run("build", "--format", "json", "-j", "1")
    found = events(ended, validator)
    assert sorted(ended.json) == ["firmware", "models"]
    assert found[:3] == [
        {"event": "job-started", "job": 1, "verb": "compile", "title": "alpha for pc", "target": "pc",
         "model": "alpha"},
        {"event": "job-progress", "job": 1, "doing": "compiling"},
        {"event": "job-progress", "job": 1, "doing": "unpacking"},
    ]  # fmt: skip
    started = {event["job"]: event["title"] for event in of_kind(found, "job-started")}
    assert started == {1: "alpha for pc", 2: "beta for pc", 3: "app for pc"}
    assert of_kind(found, "job-started")[2]["firmware"] == "app"
    assert {event["status"] for event in of_kind(found, "job-finished")} == {"done"}
    image = [event for event in of_kind(found, "job-progress") if event["job"] == 3]
    assert [event["doing"] for event in image][:2] == ["configuring", "building"]
    last = image[-1]
    assert (last["doing"], last["done"]) == ("linking", last["of"])
    (output,) = of_kind(found, "output")
    assert output["job"] == 3
    assert '#warning "old"' in output["text"]

    again = events(folder.run("build", "--format", "json", "-j", "2"), validator)
    assert [event["status"] for event in of_kind(again, "job-finished")] == ["up-to-date"] * 3
    assert folder.run("build", "--format", "json", "-q").err == ""


@pytest.mark.usefixtures("host_tools")
def test_verify_reports_each_case(folder: Folder, validator: Draft202012Validator) -> None:
    folder.write_vectors("alpha", wrong=True)
    ended = folder.run("verify", "--format", "json", "-j", "1")
    found = events(ended, validator)
    assert ended.json[0]["passed"] is False
    assert of_kind(found, "message") == [
        {"event": "message", "text": 'not verified: model beta has no vectors (run `mlfbuild vectors beta`, or add '
         '"vectors: <file>.npz" with arrays in0.. and out0..)'},
    ]  # fmt: skip
    (job,) = (event["job"] for event in of_kind(found, "job-started") if event["verb"] == "verify")
    steps = [event for event in of_kind(found, "job-progress") if event["job"] == job]
    assert {"event": "job-progress", "job": job, "doing": "running", "done": 0, "of": 3} in steps
    assert of_kind(found, "job-finished")[-1] == {
        "event": "job-finished", "job": job, "status": "failed", "result": "FAILED",
    }  # fmt: skip
    assert found[-1]["event"] == "error"
    assert (found[-1]["exit_code"], found[-1]["kind"], ended.status) == (1, "check-failed", 1)


def test_mistakes_in_a_project_file_have_their_places(folder: Folder, validator: Draft202012Validator) -> None:
    folder.write("mlfbuild.yml", "mlfbuild: 1\ntargets: {pc: {cpu: hots}}\nmodels: {a: {source: a.tflite}}\nmodes: 1\n")
    ended = folder.run("build", "--format", "json")
    (error,) = events(ended, validator)
    assert (ended.status, ended.out) == (2, "")
    assert (error["kind"], error["exit_code"], error["file"], error["line"]) == ("project-file", 2, "mlfbuild.yml", 2)
    places = [(problem["file"], problem["line"], problem["column"]) for problem in error["problems"]]
    assert places[0] == ("mlfbuild.yml", 2, 21)
    assert ("mlfbuild.yml", 4, 1) in places
    assert error["message"] == "\n".join(problem["message"] for problem in error["problems"])


def test_a_model_that_fails_is_a_job_and_an_error(folder: Folder, validator: Draft202012Validator) -> None:
    folder.write("models/beta.tflite", b"no model")
    ended = folder.run("build", "--format", "json", "-j", "1")
    found = events(ended, validator)
    assert (ended.status, ended.out) == (5, "")
    statuses = {event["job"]: event["status"] for event in of_kind(found, "job-finished")}
    assert statuses == {1: "done", 2: "failed"}
    assert (found[-1]["exit_code"], found[-1]["kind"]) == (5, "input-file")
    assert (found[-1]["code"], found[-1]["place"]) == ("tflite-malformed", "models/beta.tflite: header")


@pytest.mark.usefixtures("host_tools")
def test_error_has_the_output_of_the_program(folder: Folder, validator: Draft202012Validator) -> None:
    folder.write("main.c", "int main(void) { return missing; }\n")
    found = events(folder.run("build", "--format", "json"), validator)
    assert (found[-1]["exit_code"], found[-1]["kind"]) == (7, "process-failed")
    assert "undeclared" in found[-1]["output"]
    assert "\n" not in found[-1]["message"]


@pytest.mark.parametrize(
    ("arguments", "ending"),
    [
        (["build", "--format=json", "--bogus"], "; see `mlfbuild build --help`"),
        (["--format", "json", "bulid"], "No such command 'bulid' (did you mean 'build'?); see `mlfbuild --help`"),
        (["cmake-dir", "--format", "json", "-j", "1"], "; see `mlfbuild cmake-dir --help`"),
        (["inspect", "missing.tar", "--format", "json"], ""),
    ],
)
def test_every_error_is_an_event(
    folder: Folder, validator: Draft202012Validator, arguments: list[str], ending: str
) -> None:
    ended = folder.run(*arguments)
    (error,) = events(ended, validator)
    assert error["event"] == "error"
    assert error["exit_code"] == ended.status
    assert error["message"].endswith(ending)


def test_a_full_disk_and_ctrl_c_are_events(folder: Folder, validator: Draft202012Validator) -> None:
    with Path("/dev/full").open("w") as full:
        ended = folder.spawn("schema", "--format", "json", stdout=full)
    (error,) = events(ended, validator)
    assert (ended.status, error["kind"], error["exit_code"]) == (8, "storage", 8)

    folder.write(
        "mlfbuild.yml",
        "mlfbuild: 1\ntargets: {pc: {cpu: host}}\nmodels:\n  alpha: {source: models/alpha.tflite, compiler: command, "
        'command: [sh, -c, "sleep 60", "{output}"]}\n',
    )
    process = subprocess.Popen(
        [sys.executable, "-m", "mlfbuild", "build", "--format", "json"], cwd=folder.root, stderr=subprocess.PIPE,
        stdout=subprocess.PIPE, text=True, start_new_session=True,
    )  # fmt: skip
    with process:
        assert process.stderr is not None
        err = process.stderr.readline() + process.stderr.readline()
        os.killpg(process.pid, signal.SIGINT)
        err += process.stderr.read()
    *_, error = events(Ended(process.wait(), "", err), validator)
    assert (process.returncode, error["kind"], error["exit_code"]) == (130, "interrupted", 130)
    assert error["message"].startswith("interrupted")


@pytest.mark.parametrize(
    ("line", "json"),
    [
        ("build --format json", True), ("--format=json build", True), ("build", False), ("build --format text", False),
        ("--format json build --format text", False), ("--format", False),
    ],
)  # fmt: skip
def test_command_lines_that_request_events(line: str, json: bool) -> None:
    assert (requested_format(line.split()) == "json") == json
