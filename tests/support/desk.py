"""A project for a device on the desk: QEMU behind its GDB stub is the board of examples/boards, without semihosting."""

import shutil
from pathlib import Path

from support.labgrid_farm import free_port

EXAMPLE = Path(__file__).parents[2] / "examples" / "boards"
PROJECT = """\
mlfbuild: 1
targets:
  nucleo:
    cpu: cortex-m4
    runner:
      gdb: localhost:{gdb}
      start: [qemu-system-arm, -M, netduinoplus2, -S, -gdb, "tcp:127.0.0.1:{gdb}", -display, none, -monitor, none,
              -serial, "null", -serial, "tcp:127.0.0.1:{serial},server=on,wait=off"]
      console: socket://127.0.0.1:{serial}
  bare: {{cpu: cortex-m4}}
models:
  digits: {{source: models/digits.tflite}}
firmware:
  nucleo: {{cmake: nucleo-f446re, targets: [nucleo]}}
"""


def write_desk(folder: Path) -> Path:
    """Copy the example into ``folder``, with QEMU as the device."""
    shutil.copytree(EXAMPLE, folder, ignore=shutil.ignore_patterns("build", "mlfbuild.lock"))
    (folder / "mlfbuild.yml").write_text(PROJECT.format(gdb=free_port(), serial=free_port()))
    return folder
