"""The overview of committed reports: versions, changes and commits, from a real repository."""

import cProfile
import csv
import io
import json
import sqlite3
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from mlfbuild.core import InputFileError, UsageError
from mlfbuild.report.fleet import columns, fleet_of_commits, fleet_of_folders
from mlfbuild.report.fleet.forms import NAMES, fleet_csv, fleet_json, fleet_parquet, fleet_text, rows
from mlfbuild.report.fleet.git_history import Commit
from mlfbuild.report.fleet.overview import Fleet, FleetImage, Version
from mlfbuild.report.fleet.table import FigureTable
from mlfbuild.report.html import fleet_page
from support import report_sketch as sketch
from support.fleet_repo import FleetRepo, app, git

BASELINE = b'{"mlfbuild_sizes": 1, "images": {"hub for m7": {"": {"flash": 900, "ram": 80}}}}'
OLDER = app(8000).replace(b'"mlfbuild_report": 2', b'"mlfbuild_report": 1')
ALL = "**/*.json"


@pytest.fixture(scope="module")
def repo(tmp_path_factory: pytest.TempPathFactory) -> FleetRepo:
    """Return a repository with an image that grows, one that is removed, a baseline, and files that are neither."""
    made = FleetRepo(tmp_path_factory.mktemp("fleet") / "repository")
    made.commit("Add them", {"a b/app.json": app(8000), "fan.json": app(500, "fan for m7"), "package.json": b"{}"})
    made.commit("Use the larger model", {"a b/app.json": app(8400)})
    made.commit("Add a baseline", {"sizes.json": BASELINE, "notes.txt": b"mlfbuild_report"})
    made.commit("Break it", {"a b/app.json": app(8400)[:200]})
    made.commit("Remove the fan", {"fan.json": None, "a b/app.json": app(8100), "package.json": b"[]"})
    return made


@pytest.fixture(autouse=True)
def in_repository(repo: FleetRepo, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(repo.folder)


@pytest.fixture
def table() -> Iterator[FigureTable]:
    with FigureTable(None) as made:
        yield made


def history_of(fleet: Fleet, title: str, column: str = "flash") -> list[tuple[str, object]]:
    (image,) = (image for image in fleet.images if image.title == title)
    return [(version.commit.subject if version.commit else "", version.value(column)) for version in image.versions]


def test_each_image_has_the_commits_that_changed_it(repo: FleetRepo, table: FigureTable) -> None:
    fleet = fleet_of_commits("main", ALL, table)
    others = 400 + 256 + 500 + 40
    assert history_of(fleet, "app for m4") == [
        ("Add them", 8000 + others), ("Use the larger model", 8400 + others), ("Remove the fan", 8100 + others),
    ]  # fmt: skip
    assert history_of(fleet, "hub for m7") == [("Add a baseline", 900)]
    assert [(image.title, image.removed and image.removed.id) for image in fleet.images] == [
        ("app for m4", None), ("fan for m7", repo.commits[4]), ("hub for m7", None),
    ]  # fmt: skip
    assert [image.report for image in fleet.present] == ["a b/app.json", "sizes.json"]
    assert [(each.commit.id, each.column, each.now - each.before) for each in fleet.changes] == [
        (repo.commits[4], "flash", -300), (repo.commits[1], "flash", 400),
    ]  # fmt: skip
    assert [commit.id for commit in fleet.commits] == repo.commits
    (broken,) = fleet.unreadable
    assert (broken.current, broken.commit and broken.commit.id) == (False, repo.commits[3])
    assert broken.problem.place == "a b/app.json" and "not valid JSON" in broken.problem.reason


def test_a_range_begins_with_the_state_before_it(table: FigureTable) -> None:
    fleet = fleet_of_commits("main~1..", ALL, table)
    # The report was damaged then, so its images begin with the next commit.
    assert [subject for subject, _ in history_of(fleet, "app for m4")] == ["Remove the fan"]
    fleet = fleet_of_commits("main~4..main~2", ALL, table)
    assert [subject for subject, _ in history_of(fleet, "app for m4")] == ["Add them", "Use the larger model"]
    assert [version.date for version in fleet.images[0].versions] == ["2025-06-15T15:06:40Z", "2025-06-16T15:06:40Z"]
    assert fleet.images[0].growth("flash") == 400
    # Nothing changed in this range.
    fleet = fleet_of_commits("main~3..main~2", "**/app.json", table)
    assert history_of(fleet, "app for m4") == [("Use the larger model", 8400 + 1196)]


def test_a_content_is_parsed_once(tmp_path: Path) -> None:
    path = tmp_path / "figures.sqlite"
    with FigureTable(path) as table:
        first = fleet_of_commits("main~1", ALL, table)
        assert table.parsed == 6
    with FigureTable(path) as table:
        assert fleet_of_commits("main~1", ALL, table) == first
        assert table.parsed == 0
        fleet_of_commits("main", ALL, table)
        assert table.parsed == 2
    made = FleetRepo(tmp_path / "other")
    made.commit("Copy it", {"x.json": app(8000)})
    with FigureTable(path) as table, pytest.MonkeyPatch.context() as patch:
        patch.chdir(made.folder)
        assert len(fleet_of_commits("main", ALL, table).images) == 1
        assert table.parsed == 0


def test_images_of_a_file_keep_their_order_in_the_table(tmp_path: Path) -> None:
    sizes = {f"app{number:02} for m4": {"": {"flash": 900, "ram": 80}} for number in range(12)}
    (tmp_path / "sizes.json").write_text(json.dumps({"mlfbuild_sizes": 1, "images": sizes}))
    with FigureTable(tmp_path / "figures.sqlite") as table:
        first, again = (fleet_of_folders([tmp_path], table) for _ in range(2))
        assert table.parsed == 1
    assert first == again
    assert [image.title for image in again.images] == [*sizes]


@pytest.mark.parametrize("form", [fleet_text, fleet_csv, fleet_json, fleet_page])
def test_the_work_grows_as_the_images_and_not_faster(form: Callable[[Fleet], str]) -> None:
    commits = tuple(Commit(f"{number:040x}", 86_400 * number, "Change it") for number in range(4))

    def calls(images: int) -> int:
        found = []
        for number in range(images):
            kept = (columns.sizes_only(f"app{number}", "m4", {"flash": 900 + each}) for each in range(4))
            found.append(FleetImage(f"{number}.json", tuple(map(Version, commits, kept))))
        profile = cProfile.Profile()
        profile.runcall(form, Fleet(tuple(found), commits))
        return sum(entry.callcount for entry in profile.getstats())

    calls(1)  # loads modules and templates
    first, second, third = calls(50), calls(100), calls(200)
    assert third - second < 2.2 * (second - first)


def test_the_table_is_made_again_if_it_is_damaged_or_of_another_version(tmp_path: Path) -> None:
    path = tmp_path / "figures.sqlite"
    path.write_bytes(b"no database" * 100)
    with FigureTable(path) as table:
        fleet_of_commits("main", ALL, table)
    with sqlite3.connect(path) as database:
        database.execute("UPDATE mlfbuild SET fingerprint = 'other'")
        database.execute("UPDATE figures SET flash = 1")
    database.close()
    with FigureTable(path) as table:
        assert history_of(fleet_of_commits("main", ALL, table), "hub for m7") == [("Add a baseline", 900)]
        assert table.parsed == 8


def test_a_merge_is_one_change(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, table: FigureTable) -> None:
    made = FleetRepo(tmp_path / "merged", "sha256")
    base = made.commit("Base", {"a.json": app(100), "b.json": app(50, "fan for m4")})
    side = made.commit("Side", {"a.json": app(200)}, branch="side", parents=(base,))
    side = made.commit("Side again", {"a.json": app(300)}, branch="side", parents=(side,))
    main = made.commit("Main", {"b.json": app(60, "fan for m4")}, parents=(base,))
    made.commit("Merge the side", {"a.json": app(300)}, parents=(main, side))
    monkeypatch.chdir(made.folder)
    git(made.folder, "config", "log.diffMerges", "combined")
    git(made.folder, "config", "log.showSignature", "true")
    git(made.folder, "config", "diff.relative", "true")
    fleet = fleet_of_commits("main", ALL, table)
    assert [subject for subject, _ in history_of(fleet, "app for m4")] == ["Base", "Merge the side"]
    assert [subject for subject, _ in history_of(fleet, "fan for m4")] == ["Base", "Main"]
    fleet = fleet_of_commits("side..main", ALL, table)
    assert [subject for subject, _ in history_of(fleet, "app for m4")][-1] == "Merge the side"


@pytest.mark.parametrize("path", ["x\ny.json", ":100644 0 x.json", "-x.json", "ö.json", "\udcff.json"])
def test_paths_and_subjects_are_only_text(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, table: FigureTable, path: str
) -> None:
    made = FleetRepo(tmp_path / "odd")
    made.commit(":100644 100644 a b M\x1b[2J", {path: app(100)})
    made.commit("0" * 40 + " 1", {path: app(200)})
    monkeypatch.chdir(made.folder)
    (image,) = fleet_of_commits("main", ALL, table).images
    assert image.report == path.replace("\n", "\\n").replace("\udcff", "\\xff")
    assert [str(version.commit and version.commit.subject) for version in image.versions] == [
        ":100644 100644 a b M\\x1b[2J", "0" * 40 + " 1",
    ]  # fmt: skip


@pytest.mark.parametrize("revisions", ["foo", "foo..main", "main..foo", "main...main~1", "--all", "-1..main"])
def test_an_unknown_revision_is_refused(table: FigureTable, revisions: str) -> None:
    with pytest.raises(UsageError) as caught:
        fleet_of_commits(revisions, ALL, table)
    assert caught.value.code == "git-revision-unknown"


def test_a_shallow_clone_says_that_it_is_one(
    repo: FleetRepo, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, table: FigureTable
) -> None:
    git(tmp_path, "clone", "-q", "--depth=2", f"file://{repo.folder}", "clone")
    monkeypatch.chdir(tmp_path / "clone")
    fleet = fleet_of_commits("HEAD", ALL, table)
    assert fleet.shallow and len(fleet.commits) == 2
    with pytest.raises(UsageError) as caught:
        fleet_of_commits("HEAD~3..", ALL, table)
    assert "shallow" in caught.value.reason and "--unshallow" in caught.value.hint


def test_a_missing_object_is_named(repo: FleetRepo, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    git(tmp_path, "clone", "-q", "--no-local", str(repo.folder), "clone")
    monkeypatch.chdir(tmp_path / "clone")
    (pack,) = Path(".git/objects/pack").glob("*.pack")
    content = pack.read_bytes()
    for path in pack.parent.iterdir():
        path.unlink()
    git(Path.cwd(), "unpack-objects", "-q", data=content)
    blob = git(Path.cwd(), "rev-parse", "HEAD:sizes.json")
    Path(f".git/objects/{blob[:2]}/{blob[2:]}").unlink()
    with FigureTable(None) as table, pytest.raises(InputFileError) as caught:
        fleet_of_commits("HEAD", ALL, table)
    assert (caught.value.code, caught.value.place) == ("git-object-missing", f"object {blob}")


def test_folders_have_no_commits(tmp_path: Path, table: FigureTable) -> None:
    for name, content in {
        "x/app.json": app(1),
        "y/app.json": app(1),
        "y/old.json": OLDER,
        ".z/app.json": app(2),
    }.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_bytes(content)
    fleet = fleet_of_folders([tmp_path], table)
    assert table.parsed == 2  # two files have one content
    assert fleet.repeated == {"app for m4": [f"{tmp_path}/x/app.json", f"{tmp_path}/y/app.json"]}
    assert fleet.changes == fleet.commits == ()
    (old,) = fleet.unreadable
    assert old.current and "the report has format 1" in old.problem.reason


def test_csv_json_and_parquet_have_the_same_rows(table: FigureTable) -> None:
    parquet = pytest.importorskip("pyarrow.parquet")
    fleet = fleet_of_commits("main", ALL, table)
    listed = json.loads(fleet_json(fleet))["rows"]
    assert [(row["image"], row["current"]) for row in listed] == [
        ("app", False), ("app", False), ("app", True), ("fan", False), ("hub", True),
    ]  # fmt: skip
    texts = list(csv.DictReader(io.StringIO(fleet_csv(fleet))))
    plain = [{name: "" if value is None else str(value) for name, value in row.items()} for row in listed]
    assert texts == [{**row, "current": row["current"].lower()} for row in plain]
    read = parquet.read_table(io.BytesIO(fleet_parquet(fleet)))
    assert tuple(read.schema.names) == NAMES
    assert [{**row, "date": f"{row['date']:%Y-%m-%dT%H:%M:%SZ}"} for row in read.to_pylist()] == listed
    assert str(read.schema.field("flash").type) == "int64" and "UTC" in str(read.schema.field("date").type)
    empty = parquet.read_table(io.BytesIO(fleet_parquet(Fleet(()))))
    assert (empty.num_rows, tuple(empty.schema.names)) == (0, NAMES)


def test_json_is_that_of_the_library() -> None:
    commit = Commit("1" * 40, 0, 'a "subject\\", \u202e\U0001f600\ud800')
    figures = (
        'a"}, {"b',
        None,
        "",
        "x",
        2**63 - 1,
        0,
        None,
        -1,
        None,
        1,
        2,
        0.1 + 0.2,
        "of",
        "passed",
        None,
        0.5,
        None,
        "0" * 64,
    )
    fleet = Fleet((FleetImage("x\n.json", (Version(commit, figures), Version(None, figures))),), (commit,))
    expected = (json.dumps(dict(zip(NAMES, row, strict=True))) for row in rows(fleet))
    assert fleet_json(fleet).splitlines()[1:-1] == [f"{next(expected)},", next(expected)]


def test_the_figures_are_those_of_the_report() -> None:
    verified = [{"module": "", "state": "failed", "board": "mps2-an386", "cases": 3, "problem": "x"}]
    model = sketch.model("digits", [sketch.modelled(sketch.chain())], budget={"cycles": 10**6})
    model["verify"] = verified
    (network,) = model["networks"]
    network["profile"]["measured"] = {"emulated": False, "cycles": {"min": 1, "median": 77, "max": 99}}
    found = columns.figures_in(sketch.image([model], budget={"ram": 2**20}))
    named = {column.name: value for column, value in zip(columns.COLUMNS, found, strict=True)}
    modelled = network["profile"]["modelled"]
    assert (named["cycles"], named["latency"], named["measured_cycles"]) == (
        modelled["cycles"],
        modelled["latency"],
        77,
    )
    assert (named["verified"], named["board"], named["budget_of"]) == ("FAILED", "mps2-an386", "cycles of digits")
    assert named["budget"] == modelled["cycles"] / 10**6
    network["profile"]["measured"]["emulated"] = True  # the time of an emulator
    network["profile"]["instructions"] = 2**63
    found = columns.figures_in(sketch.image([model]))
    assert found[columns.INDEX["measured_cycles"]] is found[columns.INDEX["instructions"]] is None


def test_the_text_lists_the_last_changes(repo: FleetRepo, table: FigureTable) -> None:
    fleet = fleet_of_commits("main", ALL, table)
    lines = fleet_text(fleet).splitlines()
    assert lines[0].startswith("2 images for 2 targets in 2 files; 5 commits, ")
    assert [" ".join(line.split()) for line in lines[-2:]] == [
        f"{repo.commits[4][:8]} app for m4 flash 9,296 -300 Remove the fan",
        f"{repo.commits[1][:8]} app for m4 flash 9,596 +400 Use the larger model",
    ]
    assert "SHA-256" not in lines[2] and "SHA-256" in fleet_text(fleet, verbose=True)
