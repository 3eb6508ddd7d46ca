"""The sections ``cache`` and ``jobs`` of a project file, as `mlfbuild` reads and reports them."""

import json

import pytest

from support.command import Folder


@pytest.mark.usefixtures("results_cache")
def test_an_unreachable_server_is_a_note_and_no_failure(folder: Folder) -> None:
    text = (folder.root / "mlfbuild.yml").read_text()
    folder.write("mlfbuild.yml", f'{text}cache: {{remote: "http://127.0.0.1:9/mlf", push: always}}\n')
    ended = folder.run("build", "--model", "alpha", "--format", "json", status=0)
    events = [json.loads(line) for line in ended.err.splitlines()]
    notes = [event["text"] for event in events if event["event"] == "output"]
    assert len(notes) == 1 and "127.0.0.1:9" in notes[0]


@pytest.mark.parametrize(
    ("keys", "mistake"),
    [
        ("cache: {push: always}", ("misplaced-key", "cache.push")),
        ('cache: {remote: "https://me:secret@cache.example/x"}', ("cache-remote-has-credentials", "cache.remote")),
        ("cache: {remote: cache.example}", ("cache-remote-invalid", "cache.remote")),
        ("cache: {remote: 'http://c/x', push: sometimes}", ("unknown-push", "cache.push")),
        ("jobs: {engine: ray}", ("unknown-engine", "jobs.engine")),
        ('jobs: {scheduler: "tcp://farm:8786"}', ("misplaced-key", "jobs.scheduler")),
        ("jobs: {engine: dask, scheduler: farm}", ("no-scheduler-address", "jobs.scheduler")),
    ],
)
def test_mistakes_in_the_sections_have_places(folder: Folder, keys: str, mistake: tuple[str, str]) -> None:
    folder.write("mlfbuild.yml", (folder.root / "mlfbuild.yml").read_text() + keys + "\n")
    ((code, place),) = folder.mistakes("check")
    assert (code, place.rpartition(" ")[2]) == mistake
    assert "secret" not in folder.run("check").err
