"""``mlfbuild fleet report``: its outputs, and what it says about reports that are missing or damaged."""

import json
import sys
from pathlib import Path

import pytest

from support.command import Folder
from support.fleet_repo import FleetRepo, app, git
from support.markdown import rows


@pytest.fixture
def fleet(folder: Folder, monkeypatch: pytest.MonkeyPatch) -> Folder:
    """Return the folder, in which the command has a cache of its own."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(folder.root / "cache"))
    return folder


@pytest.fixture
def repo(fleet: Folder, monkeypatch: pytest.MonkeyPatch) -> FleetRepo:
    """Return the repository in which the command runs; its second commit makes an image larger."""
    made = FleetRepo(fleet.root / "a repository")
    made.commit("Add it", {"reports/app.json": app(8000), "other.json": b"{}"})
    made.commit("Use the larger model", {"reports/app.json": app(9200)})
    monkeypatch.chdir(made.folder)
    return made


def test_the_second_run_parses_only_new_contents(fleet: Folder, repo: FleetRepo) -> None:
    for parsed in (3, 0):
        ended = fleet.run("fleet", "report", "--git", "main", "-v", status=0)
        assert f"3 files read, {parsed} of them parsed" in ended.err
    repo.commit("Again", {"reports/app.json": app(9300)})
    assert "4 files read, 1 of them parsed" in fleet.run("fleet", "report", "--git", "main", "-v").err


def test_the_table_has_the_growth_over_the_range(fleet: Folder, repo: FleetRepo) -> None:
    ended = fleet.run("fleet", "report", "--git", "main~1..main", status=0)
    assert ended.err == ""
    assert f"{repo.commits[1][:8]}  app for m4  flash  10,396  +1,200  Use the larger model" in ended.out
    (row,) = rows(fleet.run("fleet", "report", "--git", "main", "--format", "markdown", status=0).out, 7)
    assert row[:5] == ["app", "m4", "10,396", "+1,200", "3,040"]
    assert row[5] == "99 % of flash of kws"


@pytest.mark.usefixtures("repo")
def test_files_have_the_form_of_their_suffix(fleet: Folder) -> None:
    pytest.importorskip("pyarrow")
    names = ["fleet.html", "fleet.txt", "fleet.md", "fleet.csv", "fleet.json", "fleet.parquet"]
    outputs = [word for name in names for word in ("-o", name)]
    for _ in range(2):  # the second time, it replaces its own files
        assert fleet.run("fleet", "report", "--git", "main", *outputs, status=0).out == ""
    for name in ("csv", "json"):
        printed = fleet.run("fleet", "report", "--git", "main", "--format", name, status=0).out
        assert printed == Path(f"fleet.{name}").read_text()
    assert Path("fleet.parquet").read_bytes()[:4] == b"PAR1"
    assert [row["current"] for row in json.loads(Path("fleet.json").read_text())["rows"]] == [False, True]
    assert Path("fleet.html").read_text().startswith("<!DOCTYPE html>")
    Path("mine.json").write_text("{}")
    assert fleet.refused("fleet", "report", "--git", "main", "-o", "mine.json")[:2] == (6, "output-of-another-kind")
    assert fleet.refused("fleet", "report", "--git", "main", "-o", "x.pdf")[:2] == (2, "unknown-fleet-form")


@pytest.mark.usefixtures("repo")
def test_parquet_needs_pyarrow(fleet: Folder, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    ended = fleet.run("fleet", "report", "--git", "main", "-o", "x.parquet", status=3)
    assert "pip install 'pyarrow" in ended.err and not Path("x.parquet").exists()


@pytest.mark.usefixtures("repo")
@pytest.mark.parametrize(
    ("arguments", "status", "code"),
    [
        ([], 2, "option-needs-another"),
        (["."], 5, "no-reports"),
        (["nope"], 5, "no-such-input"),
        ([".", "--git", "main"], 2, "options-exclude-each-other"),
        ([".", "--path", "*.json"], 2, "option-needs-another"),
        (["--git", "v1..main"], 2, "git-revision-unknown"),
        (["--git", "main", "--path", "*.json"], 5, "no-reports"),
    ],
)
def test_a_wrong_command_is_refused(fleet: Folder, arguments: list[str], status: int, code: str) -> None:
    assert fleet.refused("fleet", "report", *arguments)[:2] == (status, code)


def test_a_repository_is_needed(fleet: Folder, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(fleet.root.parent))
    assert fleet.refused("fleet", "report", "--git", "HEAD")[:2] == (5, "not-a-git-repository")
    made = FleetRepo(fleet.root / "empty")
    monkeypatch.chdir(made.folder)
    assert fleet.refused("fleet", "report", "--git", "HEAD")[:2] == (5, "git-without-commits")


@pytest.mark.usefixtures("repo")
def test_git_must_be_installed(fleet: Folder, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MLFBUILD_GIT", "no-such-git")
    assert fleet.refused("fleet", "report", "--git", "main")[:2] == (3, "program-not-found")


def test_a_damaged_report_does_not_hide_the_others(fleet: Folder, repo: FleetRepo) -> None:
    repo.commit("Break it", {"reports/app.json": app(1)[:99], "b.json": app(2, "fan for m7")})
    ended = fleet.run("fleet", "report", "--git", "main", status=5)
    assert "10,396" in ended.out and "fan" in ended.out
    assert "reports/app.json: the text is not valid JSON" in ended.err
    repo.commit("Mend it", {"reports/app.json": app(3)})
    ended = fleet.run("fleet", "report", "--git", "main", status=0)
    assert f"note: commit {repo.commits[2][:8]}: reports/app.json: the text is not valid JSON" in ended.err


def test_an_image_in_two_reports_has_two_rows(fleet: Folder) -> None:
    for path in ("x y/app.json", "z/app.json"):
        fleet.write(path, app(len(path)))
    ended = fleet.run("fleet", "report", "x y", "z", status=0)
    assert ended.err == "note: app for m4 is in 2 files, each with a row: x y/app.json, z/app.json\n"
    assert [line.split("  ")[-1] for line in ended.out.splitlines()[3:]] == ["x y/app.json", "z/app.json"]


def test_a_shallow_clone_is_noted(fleet: Folder, repo: FleetRepo, monkeypatch: pytest.MonkeyPatch) -> None:
    git(fleet.root, "clone", "-q", "--depth=1", f"file://{repo.folder}", "clone")
    monkeypatch.chdir(fleet.root / "clone")
    assert "`git fetch --unshallow`" in fleet.run("fleet", "report", "--git", "HEAD", status=0).err


def test_a_partial_clone_is_not_fetched(fleet: Folder, repo: FleetRepo, monkeypatch: pytest.MonkeyPatch) -> None:
    git(repo.folder, "config", "uploadpack.allowFilter", "true")
    git(fleet.root, "clone", "-q", "-n", "--filter=blob:none", f"file://{repo.folder}", "clone")
    monkeypatch.chdir(fleet.root / "clone")
    assert fleet.refused("fleet", "report", "--git", "HEAD")[:2] == (7, "git-clone-partial")


@pytest.mark.usefixtures("repo")
def test_a_cache_that_cannot_be_written_is_not_needed(fleet: Folder, monkeypatch: pytest.MonkeyPatch) -> None:
    fleet.write("file", "in the way")
    monkeypatch.setenv("XDG_CACHE_HOME", str(fleet.root / "file"))
    assert "3 of them parsed" in fleet.run("fleet", "report", "--git", "main", "-v", status=0).err


@pytest.mark.usefixtures("repo")
def test_a_damaged_cache_is_named(fleet: Folder) -> None:
    for number in range(200):
        fleet.write(f"many/{number}.json", app(number))
    fleet.run("fleet", "report", str(fleet.root / "many"), status=0)
    path = fleet.root / "cache/mlfbuild/fleet/figures.sqlite"
    content = path.read_bytes()
    path.write_bytes(content[: 3 * 4096] + bytes(len(content) - 3 * 4096))
    assert fleet.refused("fleet", "report", str(fleet.root / "many")) == (8, "fleet-cache-unusable", str(path))
    path.write_bytes(b"no database")
    fleet.run("fleet", "report", str(fleet.root / "many"), status=0)
