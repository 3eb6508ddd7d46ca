"""Options, help and usage errors; no test builds anything."""

import subprocess
import sys

import click
import pytest

from mlfbuild import __version__
from mlfbuild.cli.app import VERBS, verb_called
from support.command import Folder


@pytest.mark.parametrize("verb", ["", *VERBS])
def test_help_text(folder: Folder, golden, monkeypatch: pytest.MonkeyPatch, verb: str) -> None:
    monkeypatch.setenv("COLUMNS", "100")  # click writes at most 80
    ended = folder.run(*verb.split(), "--help")
    assert (ended.status, ended.err) == (0, "")
    assert folder.run(*verb.split(), "-h") == ended
    golden(ended.out, "help.txt")


ONE_TARGET = {"bundle", "calibrate", "generate", "run"}
"""Verbs that refuse a second target."""


@pytest.mark.parametrize("verb", VERBS)
def test_only_options_that_are_accepted_twice_are_called_repeatable(verb: str) -> None:
    for option in verb_called(verb).params:
        if isinstance(option, click.Option) and "repeatable" in (option.help or ""):
            assert option.multiple
            assert (verb, option.name) not in {*((each, "target") for each in ONE_TARGET), ("generate", "model")}


def test_version(folder: Folder) -> None:
    assert folder.run("--version").out == f"mlfbuild {__version__}\n"


def test_no_verb_shows_the_help(folder: Folder) -> None:
    ended = folder.run(status=2)
    assert "Usage: mlfbuild" in ended.out + ended.err


@pytest.mark.parametrize(
    ("arguments", "facts"),
    [
        ("biuld", ["'biuld'", "'build'"]),
        ("frobnicate", ["'frobnicate'"]),
        ("build -j 0", ["'-j'", ">=1"]),
        ("build -j many", ["'-j'", "'many'"]),
        ("check extra", ["(extra)"]),
        ("check --format xml", ["'--format'", "'xml'", "'text', 'json'"]),
        ("boards --json", ["'--json'", "'--format json'"]),
        ("report --markdown", ["'--format markdown'"]),
        ("compile", ["'MODEL'"]),
        ("compile models/alpha.tflite -o a.tar", ["'--cpu'"]),
        ("compile models/alpha.tflite --cpu host", ["'-o'"]),
        ("unpack a.tar", ["'-o'"]),
        ("check --target pc", ["'--target'"]),
        ("--target pc schema", ["--target", "`mlfbuild schema`"]),
        ("-j 3 inspect a.tar", ["--jobs", "`mlfbuild inspect`"]),
        ("-C /nowhere check", ["'-C'", "/nowhere"]),
        ("check -C mlfbuild.yml", ["'-C'", "mlfbuild.yml"]),
    ],
)
def test_usage_mistakes(folder: Folder, arguments: str, facts: list[str]) -> None:
    ended = folder.run(*arguments.split())
    assert (ended.status, ended.out) == (2, "")
    assert "Usage: " in ended.err and all(fact in " ".join(ended.err.split()) for fact in facts)
    if "--format" not in arguments:
        assert folder.refused(*arguments.split()) == (2, "command-line-invalid", "")


@pytest.mark.parametrize(
    "arguments", ["-q -f mlfbuild.yml check", "check -q -f mlfbuild.yml", "-q check -f mlfbuild.yml"]
)
def test_shared_options_are_accepted_before_or_after_the_verb(folder: Folder, arguments: str) -> None:
    folder.write("other.yml", "")
    ended = folder.run(*arguments.split())
    assert (ended.status, ended.out, ended.err) == (0, "", "")


def test_last_option_wins(folder: Folder) -> None:
    assert folder.run("-f", "missing.yml", "check", "-f", "mlfbuild.yml").status == 0
    assert folder.run("--format", "json", "check", "--format", "text").out.startswith("mlfbuild.yml: no mistakes")


def test_option_c_changes_the_folder(folder: Folder, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir("/")
    ended = folder.run("-C", str(folder.root), "check")
    assert ended.out == "mlfbuild.yml: no mistakes (1 target, 2 models, 1 firmware)\n"


def test_project_file_is_found_in_folders_above(folder: Folder, monkeypatch: pytest.MonkeyPatch) -> None:
    deep = folder.root / "firmware/src"
    deep.mkdir(parents=True)
    monkeypatch.chdir(deep)
    assert folder.run("check").out.startswith("../../mlfbuild.yml: no mistakes")
    assert folder.run("build", "--model", "alpha").out == "alpha for pc: ../../build/mlf/pc/alpha\n"
    assert folder.run("check", "-f", "mlfbuild.yml").err.startswith("mlfbuild.yml: no such project file; ")
    folder.write("firmware/mlfbuild.yml", (folder.root / "mlfbuild.yml").read_bytes())
    assert folder.mistakes("check")[0] == ("no-such-file", "../mlfbuild.yml:5:19: models.alpha.source")
    (folder.root / "firmware/mlfbuild.yml").unlink()
    assert folder.run("-C", "..", "check").out.startswith("../mlfbuild.yml: no mistakes")


@pytest.mark.parametrize("end", ["top of a repository", "folder that everyone can write to"])
def test_search_for_the_project_file_ends(folder: Folder, monkeypatch: pytest.MonkeyPatch, end: str) -> None:
    deep = folder.root / "firmware/src"
    deep.mkdir(parents=True)
    monkeypatch.chdir(deep)
    if end == "top of a repository":
        (folder.root / "firmware/.git").write_text("gitdir: elsewhere")
    else:
        (folder.root / "firmware").chmod(0o1777)
    assert folder.mistakes("check") == [("no-project-file", "mlfbuild.yml")]


@pytest.mark.parametrize("verb", ["--help", "compile"])
def test_starting_imports_few_modules(folder: Folder, verb: str) -> None:
    rest = "['models/alpha.tflite', '--cpu', 'host', '-o', 'a.tar', '-q']" if verb == "compile" else "[]"
    code = (
        f"import sys; from mlfbuild.cli import main; assert main(['{verb}', *{rest}]) == 0\n"
        "print([m for m in ('pydantic', 'yaml', 'rich', 'jinja2', 'elftools', 'SCons', 'multiprocessing')"
        " if m in sys.modules], file=sys.stderr)"
    )
    # The first run renders the page of the archive, which the cache then has.
    for _ in range(2):
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=folder.root, check=True)
    assert done.stderr == "[]\n"
