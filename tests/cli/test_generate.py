"""`mlfbuild generate`, which other build systems run for one model: stamp, depfile, and unchanged files."""

from support.command import Folder


def test_depfile_lists_the_inputs_of_the_archive(folder: Folder) -> None:
    ended = folder.run(
        *["generate", "--target", "pc", "--model", "alpha", "--stamp", "s/made", "--depfile", "s/made.d"]
    )
    assert (ended.status, ended.out, ended.err) == (0, "", "")
    assert (folder.root / "s/made").read_bytes() == b""
    root = str(folder.root).replace(" ", "\\ ")
    assert (folder.root / "s/made.d").read_text() == f"{root}/s/made: {root}/models/alpha.tflite\n"
    assert (folder.root / "build/mlf/pc/alpha/RECORD.json").is_file()
    assert not (folder.root / "build/mlf/pc/beta").exists()


def test_depfile_lists_the_files_of_the_tree(folder: Folder) -> None:
    arguments = "generate --target pc --model alpha --build-dir out --stamp s --depfile d --depends tree"
    assert folder.run(*arguments.split()).status == 0
    target, _, files = (folder.root / "d").read_text().partition(": ")
    assert target == f"{folder.root}/s"
    tree = folder.root / "out/mlf/pc/alpha"
    assert set(files.split()) == {str(path) for path in tree.rglob("*") if path.is_file()}


def test_unchanged_files_keep_their_time(folder: Folder) -> None:
    arguments = ["generate", "--target", "pc", "--model", "alpha", "--stamp", "s", "--format", "json"]
    assert folder.run(*arguments).json["compiled"]
    stamp = folder.root / "s"
    before = {path: path.stat().st_mtime_ns for path in (folder.root / "build").rglob("*")}
    stamp.unlink()
    again = folder.run(*arguments).json
    assert (again["compiled"], again["written"]) == (False, 0)
    assert stamp.exists()
    assert {path: path.stat().st_mtime_ns for path in (folder.root / "build").rglob("*")} == before


def test_one_model_and_a_stamp_are_required(folder: Folder) -> None:
    assert folder.refused("generate", "--target", "pc") == (2, "not-one-model", "")
    depfile = ("generate", "--model", "alpha", "--depfile", "d")
    assert folder.refused(*depfile) == (2, "option-needs-another", "--depfile")


def test_failed_model_leaves_no_stamp(folder: Folder) -> None:
    folder.write("models/alpha.tflite", b"no model")
    ended = folder.run("generate", "--model", "alpha", "--stamp", "s", status=5)
    assert ended.err.startswith("mlfbuild: models/alpha.tflite: ")
    assert not (folder.root / "s").exists()
