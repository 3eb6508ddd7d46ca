"""`mlfbuild fetch`: downloads are in tests/requirements/test_fetch.py."""

from support.command import Folder


def test_a_project_without_dependencies(folder: Folder) -> None:
    ended = folder.run("fetch")
    assert (ended.status, ended.err) == (0, "")
    assert ended.out.startswith("nothing to fetch")
    assert folder.run("fetch", "--format", "json").json == []
    assert folder.run("fetch", "-q").out == ""


def test_model_files_need_not_exist(folder: Folder) -> None:
    (folder.root / "models/alpha.tflite").unlink()
    assert folder.run("fetch").status == 0
