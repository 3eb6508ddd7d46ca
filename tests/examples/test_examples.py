"""Each example is a firmware repo of its own: copied elsewhere, `scons` builds it and its firmware passes on QEMU."""

import json
import os
import re
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from support import warm
from support.examples import first_on_push

EXAMPLES = Path(__file__).parents[2] / "examples"
RELOCK = "; run `make lock` and commit it, where what the compiler makes of this example was meant to change"
SWEEP = pytest.mark.sweep
"""For targets that are much like another one of the example."""
TOOLS = ("arm-none-eabi-gcc", "cmake", "ninja", "qemu-system-arm")


@pytest.fixture(scope="module")
def repo(tmp_path_factory: pytest.TempPathFactory, tool: Callable[..., str]) -> Callable[[str], Path]:
    """A function that copies an example, without what a build in place may have left there; one copy a module."""
    tool(*TOOLS)
    folder = tmp_path_factory.mktemp("examples")

    def copy(name: str) -> Path:
        target = folder / name
        if not target.exists():
            left = shutil.ignore_patterns("build", ".sconsign.dblite", "__pycache__")
            shutil.copytree(EXAMPLES / name, target, ignore=left)
            build_frozen(target)
        return target

    return copy


def build_frozen(folder: Path) -> None:
    """Build an example for one target as its lock file has it; `scons` builds its other targets in the same way.

    Archives are the same bytes on every machine. Another C compiler than that of the committed lock is no mistake of
    the example where nobody promises one: then, and only for that, the copy is locked anew.
    """
    checked = mlfbuild(folder, "lock", "--check", "--format", "json")
    assert checked.stdout, checked.stderr
    drift = json.loads(checked.stdout)["drift"]
    if drift and os.environ.get("MLFBUILD_CI") != "1" and all(line.startswith("toolchain of ") for line in drift):
        assert mlfbuild(folder, "lock").returncode == 0
    else:
        assert checked.returncode == 0, checked.stderr + RELOCK
    built = mlfbuild(folder, "build", "--frozen", "--offline", "--target", "m4")
    assert built.returncode == 0, built.stderr


def mlfbuild(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return warm.run("mlfbuild", *arguments, "-j", "1", cwd=folder)


def scons(folder: Path, *arguments: str) -> str:
    environment = {name: value for name, value in os.environ.items() if name != "MAKEFLAGS"}
    done = warm.run("SCons", "-Q", "MLFFROZEN=1", *arguments, cwd=folder, env=environment, merged=True, status=0)
    return done.stdout


@pytest.mark.sweep  # on each push, `make demo` and README.md run m4 and m55
@pytest.mark.parametrize("target", ["m4", "m7", "m33", "m55"])
def test_digits_are_as_right_on_the_device_as_on_the_host(repo: Callable[[str], Path], target: str) -> None:
    output = scons(repo("digits"), f"target={target}")
    scores = re.findall(r"^(device|host) +(\d+) of (\d+) right, (\d+\.\d\d) %$", output, re.MULTILINE)
    assert [score[0] for score in scores] == ["device", "host"], output
    assert scores[0][1:] == scores[1][1:]
    assert int(scores[0][2]) >= 450
    assert float(scores[0][3]) >= 97.0
    assert output.splitlines()[-1] == "Test_result: PASS"


@pytest.mark.parametrize("target", [pytest.param("m4", marks=SWEEP), "m55"])
def test_two_models_answer_as_on_the_host(repo: Callable[[str], Path], target: str) -> None:
    output = scons(repo("two-models"), f"target={target}")
    assert re.search(r"^iris: \d+ of 45 right, 45 answers as on the host$", output, re.MULTILINE), output
    assert re.search(r"^wine: \d+ of 54 right, 54 answers as on the host$", output, re.MULTILINE), output
    assert output.splitlines()[-1] == "Test_result: PASS"


@pytest.mark.parametrize("target", first_on_push(["m4", "m55"]))
def test_keywords_are_recognised_from_samples_as_the_readme_shows(repo: Callable[[str], Path], target: str) -> None:
    output = scons(repo("keyword"), f"target={target}")
    page = (EXAMPLES / "keyword/README.md").read_text()
    (shown,) = re.findall(r"^```console\n\$ scons -Q\n\.\.\.\n(.*?)^```$", page, re.MULTILINE | re.DOTALL)
    assert output.endswith(shown)
    assert output.splitlines()[-1] == "Test_result: PASS"


@pytest.mark.sweep
def test_figures_in_the_readme_of_keyword_are_measured(
    repo: Callable[[str], Path], pytestconfig: pytest.Config
) -> None:
    folder, readme = repo("keyword"), EXAMPLES / "keyword/README.md"
    reported = json.loads(mlfbuild(folder, "report", "--target", "m4", "--format", "json").stdout)
    counted = json.loads(mlfbuild(folder, "profile", "--format", "json").stdout)["profiles"]
    text = readme.read_text()
    for model in reported["images"][0]["models"]:
        figures = [f"{model[kind]:,} B" for kind in ("flash", "ram")]
        figures += [f"{each['instructions']:,}" for each in counted if each["model"] == model["name"]]
        row = rf"^\| `{model['name']}` \| [\d,]+ B .*$"
        text = re.sub(row, f"| `{model['name']}` | {' | '.join(figures)} |", text, flags=re.MULTILINE)
    if pytestconfig.getoption("--update-golden"):
        readme.write_text(text)
    assert text == readme.read_text(), "--update-golden writes the figures"


@pytest.mark.sweep
@pytest.mark.parametrize("network", ["frontend", "words"])
def test_keywords_depend_on_the_reset_of_both_networks(
    repo: Callable[[str], Path], tmp_path: Path, network: str
) -> None:
    folder = tmp_path / "keyword"
    shutil.copytree(repo("keyword"), folder, ignore=shutil.ignore_patterns("build", ".sconsign.dblite"))
    source, reset = folder / "src/main.c", f"    tvmgen_{network}_reset();\n"
    assert reset in source.read_text()
    source.write_text(source.read_text().replace(reset, ""))
    with pytest.raises(AssertionError, match=r"(?s)(\d+) and (?!\1)\d+ of \1 hops as on the host.*Test_result: FAIL"):
        scons(folder)


@pytest.mark.sweep
@pytest.mark.parametrize("target", ["m3", pytest.param("m4", marks=SWEEP), pytest.param("m55", marks=SWEEP)])
def test_two_tasks_do_not_disturb_each_other_in_one_network(repo: Callable[[str], Path], target: str) -> None:
    output = scons(repo("two-tasks"), f"target={target}")
    assert "alone: 54 of 54 answers as on the host\n" in output
    for task in (1, 2):
        assert f"task {task}: interrupted in the network: often, wrong answers: 0\n" in output
    assert output.splitlines()[-1] == "Test_result: PASS"


@pytest.mark.sweep
@pytest.mark.parametrize(
    ("file", "right", "wrong"),
    [
        pytest.param("main.c", "worker->workspace);", "workers[0].workspace);", marks=SWEEP),
        pytest.param("tasks.c", "#if defined(__ARM_FP) || defined(__ARM_FEATURE_MVE)", "#if 0", marks=SWEEP),
        ("tasks.c", "s16-s31", "s0-s15"),
    ],
    ids=["one workspace for both", "no floating-point register is saved", "half of them are not saved"],
)
def test_two_tasks_that_do_disturb_each_other_are_caught(
    repo: Callable[[str], Path], tmp_path: Path, file: str, right: str, wrong: str
) -> None:
    folder = tmp_path / "two-tasks"
    shutil.copytree(repo("two-tasks"), folder, ignore=shutil.ignore_patterns("build", ".sconsign.dblite"))
    source = folder / "src" / file
    assert right in source.read_text()
    source.write_text(source.read_text().replace(right, wrong))
    with pytest.raises(AssertionError, match=r"interrupted in the network: often, wrong answers: [1-9]"):
        scons(folder, "target=m4")


@pytest.mark.sweep  # on each push, README.md verifies digits
@pytest.mark.parametrize("example", ["two-models", "digits", "keyword"])
def test_networks_of_the_examples_verify(repo: Callable[[str], Path], example: str) -> None:
    scons(repo(example), "target=m4", "verify")


def test_a_wrong_answer_on_the_device_fails_the_build(repo: Callable[[str], Path], tmp_path: Path) -> None:
    folder = tmp_path / "digits"
    left = shutil.ignore_patterns("build", ".sconsign.dblite")
    shutil.copytree(repo("digits"), folder, ignore=left)
    table = folder / "src/test_split.c"
    first = re.search(r"^    \{(\d), (\d), ", table.read_text(), re.MULTILINE)
    assert first is not None
    wrong = f"    {{{first[1]}, {(int(first[2]) + 1) % 10}, "
    table.write_text(table.read_text().replace(first[0], wrong, 1))
    with pytest.raises(AssertionError, match="Test_result: FAIL"):
        scons(folder)
