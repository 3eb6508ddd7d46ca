"""The plugin of pytest: each case of the vectors of a project file is a test."""

import os
import re
from dataclasses import replace
from importlib.metadata import entry_points
from pathlib import Path

import numpy as np
import pytest

from mlfbuild.verify import VerifyReport, count_cases
from support import warm
from support.command import Folder

REPORT = VerifyReport("kws", "host", 3, 3, (), (), 16, None, None)


@pytest.fixture
def folder(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Folder:
    return Folder(tmp_path, capsys)


def run_pytest(root: Path, *arguments: str) -> tuple[int, str]:
    environment = {**os.environ, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1", "COLUMNS": "200"}
    plugins = ("-p", "mlfbuild.pytest_plugin", "-p", "no:cacheprovider")
    done = warm.run("pytest", *plugins, *arguments, cwd=root, env=environment)
    return done.returncode, done.stdout + done.stderr


@pytest.mark.usefixtures("tool")
def test_each_case_is_a_test_and_only_the_wrong_one_fails(folder: Folder) -> None:
    folder.write_vectors("alpha", wrong=True)
    status, text = run_pytest(folder.root, "mlfbuild.yml", "-v", "--junitxml", "report.xml")
    assert status == 1
    results = dict(re.findall(r"^mlfbuild.yml::alpha\[pc-case(\d)\] (\w+)", text, re.MULTILINE))
    assert results == {"0": "PASSED", "1": "FAILED", "2": "PASSED"}
    assert "alpha: case 1, output 0 (" in text and "Traceback" not in text and "pytest_plugin.py" not in text
    assert 'name="board" value="host"' in (folder.root / "report.xml").read_text()


def test_project_files_are_collected_only_on_request(folder: Folder) -> None:
    folder.write("below/conftest.py", "")
    for arguments, count in (((), 0), (("--mlfbuild",), 3), (("mlfbuild.yml",), 3)):
        status, text = run_pytest(folder.root, "--collect-only", "-q", *arguments)
        assert (status, text.count("mlfbuild.yml::")) == (5 if count == 0 else 0, count)


@pytest.mark.parametrize(
    ("arguments", "change", "text"),
    [
        (["--mlfbuild-target", "m9"], "", "target 'm9'"),
        ([], "alpha.npz", "alpha.npz: "),
        ([], "mlfbuild.yml", "mlfbuild.yml:1:1: missing key"),
    ],
)
def test_mistakes_are_errors_without_a_traceback(folder: Folder, arguments: list[str], change: str, text: str) -> None:
    if change:
        folder.write(change, "mlfbuild: 1\n")
    status, output = run_pytest(folder.root, "mlfbuild.yml", *arguments)
    assert status == 2 and text in output and "Traceback" not in output and "pytest_plugin.py" not in output


def test_problems_belong_to_their_cases_and_cases_after_a_stop_fail() -> None:
    wrong = "kws: case 1, output 0 (a), element 2: expected 1, got 2 (1 of 4 elements differ)"
    report = replace(REPORT, problems=(wrong,))
    assert [report.problems_of(case) for case in range(3)] == [[], [wrong], []]
    stopped = replace(REPORT, cases=12, ran=1, problems=("kws: case 1: ended early",))
    assert [stopped.problems_of(case) for case in (0, 1, 11)] == [
        [], ["kws: case 1: ended early"], ["kws: case 11: was not reached"],
    ]  # fmt: skip
    assert replace(REPORT, problems=("kws: leaks",)).problems_of(0) == ["kws: leaks"], "no problem is lost"


def test_cases_are_counted_without_the_model(tmp_path: Path) -> None:
    np.savez(tmp_path / "a.npz", in_x=np.zeros((4, 2)), out0=np.zeros((4, 1)), tolerance=0.5)
    assert count_cases(tmp_path / "a.npz") == 4


def test_installing_mlfbuild_registers_the_plugin() -> None:
    (point,) = (point for point in entry_points(group="pytest11") if point.value == "mlfbuild.pytest_plugin")
    assert point.name == "mlfbuild"
