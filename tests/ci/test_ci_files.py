"""The files with which CI systems use mlfbuild, and installing it from a tag of a bare repository."""

import json
import os
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from mlfbuild import __version__
from mlfbuild.cli.app import app, verb_called
from support.firmware_repo import tiny_network

ROOT = Path(__file__).parents[2]
TAG = "v9.9.9"
PROJECT = "mlfbuild: 1\ntargets: {m4: {cpu: cortex-m4}}\nmodels: {kws: {source: kws.tflite}}\n"


def read(name: str) -> Any:
    return yaml.safe_load((ROOT / name).read_text())


def action_scripts() -> list[tuple[str, dict[str, str]]]:
    return [(step["run"], step["env"]) for step in read("action.yml")["runs"]["steps"] if "run" in step]


def gitlab_script(job: str) -> str:
    jobs = read("ci/gitlab.yml")
    return "\n".join(jobs[job].get("before_script" if job.startswith(".") else "script"))


def container_commands() -> list[str]:
    text = re.sub(r"\\\n\s*", "", (ROOT / "Containerfile").read_text())
    lines = [line.removeprefix("RUN ") for line in text.splitlines() if line.startswith("RUN ")]
    return [line.partition(" ")[2] if line.startswith("--mount") else line for line in lines]


def commands_of(script: str) -> Iterator[list[str]]:
    """Yield the words of each call of mlfbuild in a script."""
    for line in re.split(r"\n|;|&&|\bthen\b|\belse\b", script):
        words = shlex.split(line, comments=True)
        if words[:1] == ["mlfbuild"]:
            yield words[1:]


@pytest.mark.parametrize(
    "script",
    [*(run for run, _ in action_scripts()), *map(gitlab_script, (".mlfbuild", "mlfbuild")), *container_commands()],
)
def test_scripts_have_no_mistakes_of_syntax(script: str) -> None:
    subprocess.run(["bash", "-n"], input=script, text=True, check=True)


def test_all_commands_are_verbs_with_options_that_they_have() -> None:
    entries = [hook["entry"] for hook in read(".pre-commit-hooks.yaml")]
    calls = [*commands_of(gitlab_script("mlfbuild")), *(words for entry in entries for words in commands_of(entry))]
    assert [words[0] for words in calls] == ["check", "build", "build", "verify", "report", "check", "lock"]
    for verb, *arguments in calls:
        verb_called(verb).make_context(verb, arguments, resilient_parsing=True, **app.context_settings)
        known = {name for option in verb_called(verb).params for name in option.opts}
        assert {word for word in arguments if word.startswith("-")} <= known, verb


def test_no_file_installs_mlfbuild_by_name() -> None:
    """The name on PyPI is not ours."""
    names = (
        "action.yml", "ci/gitlab.yml", "Containerfile", ".pre-commit-hooks.yaml", ".devcontainer/devcontainer.json",
    )  # fmt: skip
    found = [re.findall(r"pip install[^\n]*", (ROOT / name).read_text()) for name in names]
    assert sum(map(len, found)) == 3
    assert not [line for lines in found for line in lines if re.search(r"\s['\"]?mlfbuild['\"]?(\[|==|\s|$)", line)]


def test_the_devcontainer_builds_the_containerfile() -> None:
    file = ROOT / ".devcontainer/devcontainer.json"
    build = json.loads(file.read_text())["build"]
    assert (file.parent / build["dockerfile"]).resolve() == ROOT / "Containerfile"
    assert (file.parent / build["context"]).resolve() == ROOT


def test_the_image_has_all_programs_that_the_other_files_install() -> None:
    packages = {word for command in container_commands() for word in command.split()}
    assert {*read("action.yml")["inputs"]["packages"]["default"].split()} <= packages
    assert {*read("ci/gitlab.yml")["variables"]["MLFBUILD_PACKAGES"].split()} <= packages


@pytest.fixture(scope="module")
def bare(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A bare repository with the commit of this checkout as a tag."""
    folder = tmp_path_factory.mktemp("remote") / "mlfbuild.git"
    subprocess.run(["git", "clone", "-q", "--bare", ROOT, folder], check=True)
    subprocess.run(["git", "--git-dir", folder, "tag", TAG, "HEAD"], check=True)
    return folder


@pytest.fixture
def firmware(tmp_path: Path) -> Path:
    """A repository with a project, and empty `apt-get` and `sudo` in `bin`."""
    (tmp_path / "bin").mkdir()
    for name, text in (("apt-get", ""), ("sudo", 'exec "$@"')):
        (tmp_path / "bin" / name).write_text(f"#!/bin/sh\n{text}\n")
        (tmp_path / "bin" / name).chmod(0o755)
    (tmp_path / "mlfbuild.yml").write_text(PROJECT)
    (tmp_path / "kws.tflite").write_bytes(tiny_network(1))
    for words in (["init", "-q"], ["add", "mlfbuild.yml", "kws.tflite"]):
        subprocess.run(["git", *words], cwd=tmp_path, check=True)
    return tmp_path


def run_script(script: str, folder: Path, **variables: str) -> str:
    """Run a script of CI; its pip installs mlfbuild with all libraries."""
    path = os.pathsep.join([str(folder / "bin"), os.environ["PATH"]])
    environment = {**os.environ, "PATH": path, **variables}
    done = subprocess.run(
        ["bash", "-e", "-o", "pipefail", "-c", script], cwd=folder, env=environment, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout + done.stderr


def installed(environment: Path) -> str:
    """Return the file of mlfbuild in a virtual environment."""
    (package,) = environment.glob("lib/python*/site-packages/mlfbuild/__init__.py")
    return str(package)


@pytest.mark.sweep
def test_the_action_installs_the_tag_that_it_was_fetched_from(bare: Path, firmware: Path) -> None:
    """GitHub checks an action out at the tag that `uses:` names, and runs its scripts."""
    subprocess.run(["git", "clone", "-q", "-b", TAG, bare, firmware / "action"], check=True, capture_output=True)
    values = {"inputs.packages": "cmake", "inputs.wheel || github.action_path": str(firmware / "action")}
    variables = {"RUNNER_TEMP": str(firmware / "temp"), "GITHUB_PATH": str(firmware / "path")}
    for script, env in action_scripts():
        given = {name: values[text.strip("${} ")] for name, text in env.items()}
        text = run_script(script, firmware, **variables, **given)
    assert f"mlfbuild {__version__}" in text
    assert (firmware / "path").read_text() == f"{firmware}/temp/mlfbuild/bin\n"
    assert installed(firmware / "temp/mlfbuild")


@pytest.mark.sweep
@pytest.mark.parametrize("kind", ["tag", "wheel"])
def test_the_template_of_gitlab_installs_a_tag_or_a_wheel_and_builds(bare: Path, firmware: Path, kind: str) -> None:
    source = f"git+file://{bare}@{TAG}"
    if kind == "wheel":
        command = [sys.executable, "-m", "pip", "wheel", "-q", "--no-deps", "-w", firmware / "dist", source]
        subprocess.run(command, check=True, capture_output=True)
        (wheel,) = (firmware / "dist").glob("*.whl")
        source = str(wheel)
    script = f"{gitlab_script('.mlfbuild')}\nmlfbuild check\nmlfbuild build -q"
    run_script(script.replace("/opt/mlfbuild", str(firmware / "venv")), firmware, MLFBUILD=source, MLFBUILD_PACKAGES="")
    assert (firmware / "build/mlf/m4/mlf.cmake").is_file()
    assert installed(firmware / "venv")


def test_the_template_of_gitlab_names_the_missing_variable(firmware: Path) -> None:
    command = ["/bin/bash", "-e", "-c", gitlab_script(".mlfbuild")]
    done = subprocess.run(command, cwd=firmware, env={"PATH": "/nowhere"}, capture_output=True, text=True)
    assert done.returncode == 2 and "MLFBUILD" in done.stdout


@pytest.mark.sweep
def test_pre_commit_installs_the_tag_and_finds_a_mistake(bare: Path, firmware: Path) -> None:
    hooks = [{"id": hook["id"]} for hook in read(".pre-commit-hooks.yaml")]
    config = {"repos": [{"repo": f"file://{bare}", "rev": TAG, "hooks": hooks}]}
    (firmware / ".pre-commit-config.yaml").write_text(yaml.safe_dump(config))
    home = str(firmware / "cache")
    python = shlex.quote(sys.executable)
    script = f"{python} -m mlfbuild lock -q && git add mlfbuild.lock && {python} -m pre_commit run --all-files"
    text = run_script(script, firmware, PRE_COMMIT_HOME=home)
    assert re.findall(r"^mlfbuild .*?(Passed|Failed|Skipped)$", text, re.MULTILINE) == ["Passed", "Passed"]
    (firmware / "mlfbuild.yml").write_text(PROJECT.replace("cortex-m4", "cortex-m44"))
    subprocess.run(["git", "add", "mlfbuild.yml"], cwd=firmware, check=True)
    text = run_script(f"! {python} -m pre_commit run mlfbuild-check", firmware, PRE_COMMIT_HOME=home)
    assert "mlfbuild.yml:2:21" in text and "exit code: 2" in text
