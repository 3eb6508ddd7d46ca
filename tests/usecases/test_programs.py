"""Models of external compilers in ``mlfbuild build``: changes run exactly the affected programs."""

import json
import os
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from mlfbuild.cli.output.invocation import run
from mlfbuild.compilers.tvm.tvmc import tvm_version
from mlfbuild.core.errors import Diagnostic, ProjectFileError, UsageError
from mlfbuild.jobs import load, target_jobs
from mlfbuild.jobs.configure_time import make_archives
from mlfbuild.usecases.plan import plan_build as plan
from support.errors import assert_printed, raises
from support.program_repo import ProgramRepo
from support.snapshot import keep, restore

ALL = ["alpha cortex-m4", "alpha host", "beta cortex-m4", "beta host", "tvm"]
ALPHA = ["alpha cortex-m4", "alpha host"]


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> ProgramRepo:
    repo = ProgramRepo(tmp_path_factory.mktemp("built"))
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(repo.root)
        build()
    assert repo.ran() == ALL, "two targets with one CPU share an archive"
    keep(repo.root)
    return repo


@pytest.fixture
def repo(built: ProgramRepo, monkeypatch: pytest.MonkeyPatch) -> ProgramRepo:
    """A repository that has just been built."""
    restore(built.root)
    tvm_version.cache_clear()
    monkeypatch.chdir(built.root)
    return built


def build() -> None:
    assert run(["build", "-q", "-j", "1"]) == 0


def later(path: Path) -> None:
    os.utime(path, (time.time() + 60, time.time() + 60))


CHANGES: dict[str, tuple[Callable[[ProgramRepo], object], list[str]]] = {
    "nothing": (lambda _: None, []),
    "touch": (lambda repo: [later(path) for path in repo.root.rglob("*") if "build" not in path.parts], []),
    "comment": (lambda repo: repo.write("mlfbuild.yml", "# why\n" + (repo.root / "mlfbuild.yml").read_text()), []),
    "model file": (lambda repo: repo.write_model("alpha", "more"), ALPHA),
    "command": (lambda repo: repo.replace("mlfbuild.yml", '"{output}"]\n    inputs', '"{output}", ]\n    inputs'), []),
    "another command": (
        lambda repo: repo.replace("mlfbuild.yml", '-o, "{output}"]\n    inputs', '"-o{output}"]\n    inputs'), ALPHA,
    ),
    "script": (lambda repo: repo.write("tools/export.py", "#\n" + (repo.root / "tools/export.py").read_text()), ALPHA),
    "file of a pattern": (lambda repo: repo.write("data/labels.txt", "yes no maybe\n"), ALPHA),
    "new file of a pattern": (lambda repo: repo.write("data/more.txt", ""), ALPHA),
    "new file of a folder": (lambda repo: repo.write("tools/lib/helper.py", ""), ALPHA),
    "file that is gone": (lambda repo: (repo.root / "tools/python").rename(repo.root / "python3"), ALPHA),
    "file that no input names": (lambda repo: repo.write("data/other.csv", "1\n"), []),
    "caches and hidden files": (
        lambda repo: [repo.write("tools/__pycache__/x.pyc", b"\0"), repo.write("tools/.export.py.swp", b"\0")], [],
    ),
    "version of TVM": (lambda repo: repo.use_tvm("0.18.0"), ["tvm", *ALPHA]),
    "model file of TVM": (lambda repo: repo.write("models/gamma.tflite", b"damaged"), ["tvm"]),
    "archive that was edited": (lambda repo: repo.write("build/mlf/m4/beta.tar", b"no archive"), ["beta cortex-m4"]),
    "archive that another target has, too": (lambda repo: (repo.root / "build/mlf/pc/beta.tar").unlink(), []),
}  # fmt: skip


@pytest.mark.parametrize("change", CHANGES)
def test_change_runs_only_affected_programs(repo: ProgramRepo, change: str) -> None:
    act, expected = CHANGES[change]
    act(repo)
    if change == "file that is gone":
        repo.replace("mlfbuild.yml", "tools/python", "./python3")
    status = run(["build", "-q", "-j", "1"])
    assert status == (7 if change == "model file of TVM" else 0)
    assert repo.ran() == sorted(expected)
    if status == 0:
        build()
        assert repo.ran() == []


def test_failing_program_keeps_the_old_archive_and_runs_again(
    repo: ProgramRepo, capsys: pytest.CaptureFixture[str]
) -> None:
    archive = repo.root / "build/mlf/pc/beta.tar"
    before = archive.read_bytes()
    good = (repo.root / "models/beta.bin").read_bytes()
    repo.write("models/beta.bin", good[: len(good) // 2])
    for _ in range(2):
        assert run(["build", "-q", "-j", "1"]) == 7
        assert "beta: " in capsys.readouterr().err
        assert repo.ran() == ["beta host"]
    assert archive.read_bytes() == before
    assert not list(repo.root.rglob(".*.tmp"))
    repo.write("models/beta.bin", good)
    build()
    assert repo.ran() == [], "what was made of it before is still there"


def test_archives_made_repeatedly_are_identical(repo: ProgramRepo) -> None:
    archives = sorted(repo.root.glob("build/mlf/*/*.tar"))
    before = [path.read_bytes() for path in archives]
    for path in archives:
        path.unlink()
    build()
    assert repo.ran() == ALL
    assert [path.read_bytes() for path in archives] == before
    assert (repo.root / "build/mlf/pc/alpha.tar").read_bytes() == (repo.root / "build/mlf/pc2/alpha.tar").read_bytes()


# Plans ---------------------------------------------------------------------------------------------------------------


def test_plan_runs_nothing_and_lists_unknown_outputs(tmp_path: Path) -> None:
    repo = ProgramRepo(tmp_path)
    project = load(tmp_path / "mlfbuild.yml")
    alpha = plan(project, ["m4"], ["alpha"])["models"][0]
    assert (alpha["complete"], alpha["up_to_date"], alpha["modules"]) == (False, False, [])
    tree = f"{tmp_path}/build/mlf/m4"
    assert alpha["writes"] == [
        f"{tree}/alpha.tar", f"{tree}/.alpha.tar.key", f"{tree}/alpha/mlf.cmake", f"{tree}/alpha/RECORD.json",
    ]  # fmt: skip
    names = ["mlfbuild.yml", "models/alpha.bin", "data/labels.txt", "tools/export.py", "tools/python"]
    assert alpha["reads"] == [f"{tmp_path}/{name}" for name in names]
    assert not (tmp_path / "build").exists()
    assert repo.ran() == []


def test_complete_plan_runs_programs_once_per_cpu(tmp_path: Path) -> None:
    repo = ProgramRepo(tmp_path)
    project = load(tmp_path / "mlfbuild.yml")
    everything = target_jobs(project)
    make_archives(target_jobs(project, ["pc"], ["alpha"]), everything)
    assert repo.ran() == ["alpha host"]
    make_archives(everything, everything, jobs=2)
    assert repo.ran() == ["alpha cortex-m4", "beta cortex-m4", "beta host", "tvm"]
    models = plan(project)["models"]
    assert all(model["complete"] for model in models)
    assert {model["model"]: model["modules"] for model in models} == {
        name: [name] for name in ("alpha", "beta", "gamma")
    }
    assert repo.ran() == []


def test_folders_in_which_inputs_can_appear_are_watched(tmp_path: Path) -> None:
    repo = ProgramRepo(tmp_path)
    repo.write("tools/lib/helper.py", "")
    repo.write("tools/__pycache__/x.pyc", b"")
    repo.replace("mlfbuild.yml", '"data/*.txt"', '"data/**/*.txt"')
    repo.write("data/deep/er/more.txt", "")
    watched = plan(load(tmp_path / "mlfbuild.yml"), ["pc"], ["alpha"])["models"][0]["watched"]
    folders = {path.removeprefix(f"{tmp_path}/") for path in watched if Path(path).is_dir()}
    assert folders == {"tools", "tools/lib", "data", "data/deep", "data/deep/er"}


# Mistakes ------------------------------------------------------------------------------------------------------------


def test_inputs_that_match_no_file_are_reported_with_their_place(tmp_path: Path) -> None:
    repo = ProgramRepo(tmp_path)
    repo.write("empty/.keep", "")
    repo.replace("mlfbuild.yml", '[tools, "data/*.txt"]', '[tools/no.py, "data/*.csv", empty, tools]')
    with pytest.raises(ProjectFileError) as caught:
        load(tmp_path / "mlfbuild.yml")
    place = f"{tmp_path}/mlfbuild.yml:11:"
    problems = [problem for problem in caught.value.problems if isinstance(problem, Diagnostic)]
    assert [(problem.code, problem.place, problem.reason.partition(": ")[0]) for problem in problems] == [
        ("no-input-file", f"{place}14: models.alpha.inputs[0]", f"{tmp_path}/tools/no.py"),
        ("no-input-file", f"{place}27: models.alpha.inputs[1]", f"{tmp_path}/data/*.csv"),
        ("no-input-file", f"{place}41: models.alpha.inputs[2]", f"{tmp_path}/empty"),
    ]
    assert len(caught.value.problems) == 3


@pytest.mark.parametrize("entry", [".", "build", "'build/mlf/pc/*.tar'"])
def test_inputs_that_the_build_writes_are_rejected(repo: ProgramRepo, entry: str) -> None:
    repo.replace("mlfbuild.yml", "[tools,", f"[{entry},")
    with raises(UsageError, "inputs-in-build-folder", "model 'alpha': inputs"):
        target_jobs(load(repo.root / "mlfbuild.yml"))


def test_options_are_reported_with_their_place(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    repo = ProgramRepo(tmp_path)
    repo.replace("mlfbuild.yml", "targets: [pc]}", "targets: [pc], options: {target: c, opt-levle: 3}}")
    assert run(["-C", str(tmp_path), "check"]) == 2
    place = "mlfbuild.yml:16:124: models.gamma.options.opt-levle"
    assert capsys.readouterr().err.strip() == f'{place}: unknown option "opt-levle" (did you mean "opt-level"?)'


# The command line ----------------------------------------------------------------------------------------------------


def test_tvm_compiles_one_model_without_a_project(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    repo = ProgramRepo(tmp_path)
    words = ["-C", str(tmp_path), "compile", "models/gamma.tflite", "--cpu", "cortex-m4", "--compiler", "tvm"]
    tvm = ["--python", "tools/python", "-O", "opt-level=2", "-O", "interface-api=packed", "-o", "out.tar"]
    assert run([*words, *tvm]) == 0
    assert capsys.readouterr().out.startswith("out.tar: model gamma for cortex-m4, ")
    assert repo.ran() == ["tvm"]
    assert run([*words, "-o", "out.tar", "--python", "no/python"]) == 3
    assert_printed(capsys.readouterr().err, "program-not-found", "TVM's interpreter: no/python")


@pytest.mark.parametrize(
    ("words", "code", "place"),
    [
        (["--compiler", "command"], "command-without-project-file", "compiler command"),
        (["--python", "python3"], "python-of-other-compiler", "python python3"),
        (["--compiler", "tvm", "-O", "opt-level=9"], "invalid-option", "option 'opt-level'"),
    ],
)
def test_options_that_need_a_project_are_rejected(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], words: list[str], code: str, place: str
) -> None:
    ProgramRepo(tmp_path)
    command = ["-C", str(tmp_path), "compile", "models/gamma.tflite", "--cpu", "host", "-o", "out.tar"]
    assert run([*command, *words, "--format", "json"]) == 2
    error = json.loads(capsys.readouterr().err)
    assert (error["code"], error["place"]) == (code, place)
