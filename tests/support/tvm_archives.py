"""The archives from TVM in the test data, and their files."""

import tarfile
from pathlib import Path

TVM_ARCHIVES = [
    "add-aotc", "add-aotp", "add-graph", "byoc-aotp", "conv-aotc", "conv-aotp", "conv-graph", "conv-graphlink",
    "conv-llvm_graph_m4", "conv-usmp_external", "kws_int8-aotc", "kws_int8-cmsisnn_m4", "kws_int8-graph", "many-aotc",
    "many-graph", "multi-aotc", "multi-mixed", "operator-add", "v5-add-aotc", "v5-add-graph", "v5-kws_int8-graph",
    "v5-many-graphlink",
]  # fmt: skip
"""Names without ``.tar``; TVM 0.8 wrote those of version 5, 0.14 the others."""


def tvm_files(shared: Path, name: str) -> dict[str, bytes]:
    """Return the files of an archive by path, read with Python's ``tarfile``."""
    with tarfile.open(shared / "archives" / f"{name}.tar") as tar:
        found = {member.name.removeprefix("./"): tar.extractfile(member) for member in tar if member.isfile()}
        return {path: file.read() for path, file in found.items() if file is not None}
