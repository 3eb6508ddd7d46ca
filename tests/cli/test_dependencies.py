"""Dependencies of a project, as the command tells of them."""

from __future__ import annotations

import pytest

from support.command import Ended, Folder


def dependencies(folder: Folder, *lines: str) -> None:
    """Append the key ``dependencies`` to the project of ``folder``: its line is 9."""
    project = folder.root / "mlfbuild.yml"
    project.write_text(project.read_text() + "dependencies:\n" + "".join(f"  {line}\n" for line in lines))


@pytest.mark.parametrize("verb", [("check",), ("build",), ("plan",)], ids=lambda verb: verb[0])
def test_folders_of_dependencies_have_to_be_there(folder: Folder, verb: tuple[str, ...]) -> None:
    dependencies(folder, "CMSIS_NN: {path: nowhere}", "file: {path: main.c}", "later: {git: nowhere.git, version: v1}")
    assert folder.run(*verb) == Ended(
        2,
        "",
        "mlfbuild.yml:10:20: dependencies.cmsis-nn.path: nowhere: no such folder; correct the path\n"
        "mlfbuild.yml:11:16: dependencies.file.path: main.c: is a file, not a folder; name a folder\n",
    )


def test_a_secret_in_an_address_is_never_shown(folder: Folder) -> None:
    dependencies(folder, 'a: {git: "https://me:s3cret@example.org/a", version: v1}', 'b: {url: "https://s3cret@b.org"}')
    ended = folder.run("check")
    assert ended.status == 2
    assert ended.err.count("which would be committed") == 2
    assert "s3cret" not in ended.err
