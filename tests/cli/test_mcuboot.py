"""`mlfbuild flash` through the script of docs/supply-chain.md, which signs the image for MCUboot with imgtool."""

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from support.command import Folder
from support.documents import REPOSITORY, read_page

PROJECT = """\
mlfbuild: 1
targets:
  nrf: {cpu: cortex-m4, runner: {flash: [sh, flash.sh, "{elf}"], run: [sh, run.sh]}}
models: {alpha: {source: models/alpha.tflite}}
"""


@pytest.mark.sweep
def test_the_signed_image_is_written(bare: Folder, monkeypatch: pytest.MonkeyPatch, tool: Callable[..., str]) -> None:
    pytest.importorskip("imgtool")
    tool("arm-none-eabi-objcopy", "sh")
    (script,) = (
        block.text for block in read_page(REPOSITORY / "docs/supply-chain.md").blocks if block.text.startswith("set -e")
    )
    bare.write("flash.sh", script)
    bare.write("mlfbuild.yml", PROJECT)
    # Stands in for the programmer: the last of its arguments is what it would write.
    bare.write("bin/pyocd", '#!/bin/sh\nfor file; do :; done\ncp "$file" flashed.bin\n').chmod(0o755)
    programs = [str(bare.root / "bin"), str(Path(sys.executable).parent), os.environ["PATH"]]
    monkeypatch.setenv("PATH", os.pathsep.join(programs))
    subprocess.run(["imgtool", "keygen", "-k", "boot.pem", "-t", "ecdsa-p256"], cwd=bare.root, check=True)
    bare.run("flash", "--elf", "app.elf", "--target", "nrf", status=0)
    written = (bare.root / "flashed.bin").read_bytes()
    assert written[:4] == bytes.fromhex("3db8f396"), "the magic number of MCUboot's header"
    assert written[0x200:].startswith((bare.root / "app.bin").read_bytes())
    # The judge: it accepts the image with this key only.
    verify = ["imgtool", "verify", "--key", "boot.pem", "flashed.bin"]
    assert subprocess.run(verify, cwd=bare.root, check=True, capture_output=True).returncode == 0
    bare.write("flashed.bin", written[:0x210] + bytes([written[0x210] ^ 1]) + written[0x211:])
    assert subprocess.run(verify, cwd=bare.root, check=False, capture_output=True).returncode != 0
