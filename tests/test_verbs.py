"""Verb ``x`` is in ``cli/x.py`` or a module that it shares, and in ``usecases/x.py``; its help fits a terminal."""

import subprocess
import sys
from pathlib import Path

import click
import pytest

import mlfbuild
from mlfbuild.cli.app import MODULES, SECTIONS, VERBS, app, verb_called

PACKAGE = Path(mlfbuild.__file__).parent
TESTS = Path(__file__).parent
SHARED = {"app", "options", "output"}
"""Modules of the command that are no verbs."""
WITHOUT_WORK = {"cmake-dir", "completion", "params", "schema"}
"""Verbs that print what another room has."""


def modules(room: str) -> set[str]:
    entries = [path for path in (PACKAGE / room).iterdir() if path.suffix == ".py" or (path / "__init__.py").exists()]
    return {path.stem.replace("_", "-") for path in entries} - {"--init--"}


def test_rooms_have_a_module_for_each_verb() -> None:
    shared = {verb for verbs in MODULES.values() for verb in verbs}
    assert modules("usecases") ^ ({*VERBS} - WITHOUT_WORK) == set(), "mlfbuild/usecases, or SECTIONS of cli/app.py"
    assert modules("cli") ^ ({*VERBS, *MODULES, *SHARED} - shared) == set(), "mlfbuild/cli, or SECTIONS of cli/app.py"


@pytest.mark.parametrize("name", VERBS)
def test_every_verb_has_tests(name: str) -> None:
    assert (TESTS / f"cli/test_{name.replace('-', '_')}.py").is_file()


@pytest.mark.parametrize("name", VERBS)
def test_the_listed_help_is_that_of_the_verb(name: str) -> None:
    (listed,) = (verbs[name] for verbs in SECTIONS.values() if name in verbs)
    verb = verb_called(name)
    assert (verb.name, (verb.help or "").splitlines()[0]) == (name, listed)


@pytest.mark.parametrize("name", ["", *VERBS])
def test_the_help_of_an_option_is_one_line(name: str) -> None:
    command = verb_called(name) if name else app
    rows = [
        row
        for option in command.params
        if isinstance(option, click.Option) and (row := option.get_help_record(click.Context(command)))
    ]
    width = max(len(names) for names, _ in rows)
    for names, text in rows:
        meaning = text.split("  [")[0]
        assert 2 + width + 2 + len(meaning) <= 80, names
        assert meaning.endswith("."), names


@pytest.mark.parametrize("arguments", [[], ["--help"], ["--version"]])
def test_the_list_of_verbs_imports_none_of_them(arguments: list[str]) -> None:
    code = f"import sys; from mlfbuild.cli import main; main({arguments}); print(*sys.modules, file=sys.stderr)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    loaded = done.stderr.splitlines()[-1].split()
    printing = (f"output.{name}" for name in ("events", "invocation", "printing"))
    allowed = {f"mlfbuild.cli.{name}" for name in (*SHARED, *printing)}
    assert {name for name in loaded if name.startswith(("mlfbuild.cli.", "mlfbuild.usecases"))} <= allowed
    assert sum(name.startswith("mlfbuild") for name in loaded) <= 16
