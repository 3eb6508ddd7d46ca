"""A repo whose models are compiled by programs: two by an exporter, one by a stand-in for TVM."""

import sys
from pathlib import Path

from mlfbuild.archive import pack_archive
from mlfbuild.compilers.tvm.tvmc import tvm_version
from support.exporters import python_with_tvm, runs, write_exporter
from support.firmware_repo import SITE_TOOL, EditedFolder, tiny_network
from support.libraries import native_library

COMMAND = f'["{sys.executable}", tools/export.py, "{{source}}", "--cpu={{cpu}}", --name, "{{name}}", -o, "{{output}}"]'
PROJECT = f"""\
mlfbuild: 1
targets:
  pc: {{cpu: host}}
  pc2: {{cpu: host}}
  m4: {{cpu: cortex-m4, board: mps2-an386}}
models:
  alpha:
    source: models/alpha.bin
    compiler: command
    command: {COMMAND}
    inputs: [tools, "data/*.txt"]
  beta:
    source: models/beta.bin
    compiler: command
    command: {COMMAND}
  gamma: {{source: models/gamma.tflite, compiler: tvm, python: tools/python, targets: [pc]}}
"""


class ProgramRepo(EditedFolder):
    """The repo, and the programs that ran in it."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.write("mlfbuild.yml", PROJECT)
        self.write("data/labels.txt", "yes no\n")
        write_exporter(root)
        self.write_model("alpha")
        self.write_model("beta")
        self.write("models/gamma.tflite", tiny_network(3))
        self.write("site_scons/site_tools/mlf.py", SITE_TOOL)
        self.use_tvm("0.14.0")

    def write_model(self, name: str, *others: str) -> Path:
        """Write a model from which the exporter makes an archive of ``name`` and of the modules ``others``."""
        return self.write(f"models/{name}.bin", pack_archive(native_library(name, *others)))

    def use_tvm(self, version: str) -> None:
        """Set the TVM version of ``tools/python``, and forget the cached version."""
        tvm_version.cache_clear()
        python_with_tvm(self.root / "tools" / "python", version, self.root / "tvmc.txt")

    def ran(self) -> list[str]:
        """Return the runs since the last call, sorted: ``alpha host`` for the exporter, ``tvm`` for tvmc."""
        exported = [" ".join(line.split()[:2]) for line in runs(self.root)]
        (self.root / "runs.txt").unlink(missing_ok=True)
        path = self.root / "tvmc.txt"
        compiled = path.read_text().splitlines() if path.exists() else []
        path.unlink(missing_ok=True)
        return sorted([*exported, *("tvm" for _ in compiled)])
