"""``mlfbuild completion``: its scripts in real shells."""

import os
import shutil
import subprocess
import sys

import pytest

from support.command import Folder
from support.examples import first_on_push

COMPLETE = {
    "bash": """\
source <(mlfbuild completion bash)
complete -p mlfbuild >&2
words() {
  COMP_WORDS=("$@") COMP_CWORD=$(($# - 1)) COMPREPLY=()
  _mlfbuild_completion "$1"
  echo "${COMPREPLY[@]}"
}
""",
    # zsh's completion system runs only in its line editor: these print what the function hands to it.
    "zsh": """\
autoload -U compinit && compinit -u -D
source <(mlfbuild completion zsh)
print -u2 $_comps[mlfbuild]
_describe() { print -r -- ${${(P)3}%%:*} }
compadd() { print -r -- ${(P)@[-1]} }
words() {
  words=("$@") CURRENT=$#
  _mlfbuild_completion
}
""",
    "fish": """\
mlfbuild completion fish | source
complete mlfbuild >&2
function words
  complete -C "$argv" | string split -f1 \\t | string join " "
end
""",
}
FLAGS = {"bash": ["--norc"], "zsh": ["-f"], "fish": ["--no-config"]}


@pytest.mark.parametrize("shell", first_on_push(COMPLETE))
def test_verbs_options_and_names(folder: Folder, tmp_path_factory: pytest.TempPathFactory, shell: str) -> None:
    program = shutil.which(shell)
    if program is None:
        pytest.skip(f"{shell} is not installed")
    programs = tmp_path_factory.mktemp("bin")
    (programs / "mlfbuild").write_text(f'#!/bin/sh\nexec {sys.executable} -m mlfbuild "$@"\n')
    (programs / "mlfbuild").chmod(0o755)
    (folder.root / "src").mkdir()
    asked = {
        "mlfbuild compl": "completion", "mlfbuild build --tar": "--target", "mlfbuild build --target p": "pc",
        "mlfbuild -f ../mlfbuild.yml build --model ''": "alpha beta",
        "mlfbuild compile --cpu cortex-m3": "cortex-m3 cortex-m33 cortex-m33+nofp",
        "mlfbuild run --board mps3": "mps3-an547",
    }  # fmt: skip
    script = COMPLETE[shell] + "".join(f"words {words}\n" for words in asked)
    done = subprocess.run(
        [program, *FLAGS[shell], "-c", script], cwd=folder.root / "src", capture_output=True, text=True, check=False,
        env=os.environ | {"PATH": f"{programs}{os.pathsep}{os.environ['PATH']}", "HOME": str(programs)},
    )  # fmt: skip
    assert "mlfbuild" in done.stderr
    assert "rror" not in done.stderr and "not found" not in done.stderr
    assert done.stdout.splitlines() == [*asked.values()], done.stderr


def test_mistakes_in_the_project_file_complete_nothing(folder: Folder, monkeypatch: pytest.MonkeyPatch) -> None:
    folder.write("mlfbuild.yml", "mlfbuild: [")
    monkeypatch.setenv("_MLFBUILD_COMPLETE", "bash_complete")
    monkeypatch.setenv("COMP_WORDS", "mlfbuild build --target ")
    monkeypatch.setenv("COMP_CWORD", "3")
    assert folder.run() == (type(folder.run()))(0, "\n", "")


def test_unknown_shell(folder: Folder) -> None:
    ended = folder.run("completion", "tcsh")
    assert (ended.status, ended.out) == (2, "")
    assert "'tcsh' is not one of 'bash', 'zsh', 'fish'" in ended.err
