"""`mlfbuild unpack` and other verbs on TVM's archives."""

from __future__ import annotations

from pathlib import Path

from support.command import Folder


def test_every_verb_accepts_archives_of_tvm(folder: Folder, shared: Path) -> None:
    for path in sorted((shared / "archives").glob("*.tar")):
        assert folder.run("inspect", str(path)).status == 0, path
        assert folder.run("validate", str(path)).status == 0, path
        ended = folder.run("convert", str(path), "-o", "seven.tar")
        assert (ended.status, ended.err) == (0, ""), path
        ended = folder.run("compare", str(path), "seven.tar")
        assert (ended.status, ended.err) == (0, ""), (path, ended.out)
        ended = folder.run("unpack", str(path), "-o", f"tree/{path.stem}")
        assert (ended.status, ended.err) == (0, ""), path
        assert (folder.root / f"tree/{path.stem}/README.md").is_file(), path
        again = folder.run("unpack", str(path), "-o", f"tree/{path.stem}", "--format", "json").json
        assert (again["written"], again["removed"]) == ([], []), path
