"""`mlfbuild unpack` and other verbs on TVM's archives."""

from pathlib import Path

import pytest

from support.command import Folder
from support.examples import first_on_push

OF_EACH_KIND = {
    "add-graph", "byoc-aotp", "conv-aotc", "conv-llvm_graph_m4", "conv-usmp_external", "multi-mixed", "operator-add",
    "v5-add-aotc",
}  # fmt: skip
"""Archives with each interface, executor, kind of code and version of TVM."""


@pytest.mark.parametrize("kind", first_on_push(["of each kind", "others"]))
def test_every_verb_accepts_archives_of_tvm(folder: Folder, shared: Path, kind: str) -> None:
    paths = [
        path
        for path in sorted((shared / "archives").glob("*.tar"))
        if (path.stem in OF_EACH_KIND) == (kind == "of each kind")
    ]
    assert len(paths) >= len(OF_EACH_KIND)
    for path in paths:
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
