"""Programs that compile models in tests: an exporter that packs an archive, and Pythons with a stand-in for TVM."""

from __future__ import annotations

import os
import sys
from pathlib import Path

STAND_IN = Path(__file__).parent / "stand_in_tvm"

EXPORT = '''\
"""Copy the archive SOURCE to OUTPUT as another run of an exporter would write it: dates, owners, order of members."""
import argparse, io, json, pathlib, sys, tarfile, time

parser = argparse.ArgumentParser()
parser.add_argument("source")
parser.add_argument("-o", "--output", required=True)
parser.add_argument("--cpu", default="")
parser.add_argument("--name", default="")
arguments = parser.parse_args()
runs = pathlib.Path("runs.txt")
with runs.open("a") as file:
    file.write(f"{arguments.name} {arguments.cpu} {arguments.source}\\n")
number = len(runs.read_text().splitlines())
print("run", number)
with tarfile.open(arguments.source) as tar:
    files = [(member.name, tar.extractfile(member).read()) for member in tar if member.isfile()]
with tarfile.open(arguments.output, "w") as tar:
    for name, data in files if number % 2 else reversed(files):
        if name == "metadata.json":
            document = json.loads(data)
            for module in document["modules"].values():
                module["export_datetime"] = f"2026-01-{number:02} 10:00:00Z"
            data = json.dumps(document, indent=number).encode()
        member = tarfile.TarInfo(f"./{name}" if number % 2 else name)
        member.size, member.mtime, member.uid, member.mode = len(data), 10**9 + number, number, 0o600 + number % 8
        tar.addfile(member, io.BytesIO(data))
'''
"""The script ``tools/export.py``; it writes a line into runs.txt of the project for each run."""


def write_exporter(root: Path) -> None:
    """Write ``tools/export.py``."""
    (root / "tools").mkdir(parents=True, exist_ok=True)
    (root / "tools" / "export.py").write_text(EXPORT)


def runs(root: Path) -> list[str]:
    """Return the arguments of the exporter, one line per run."""
    path = root / "runs.txt"
    return path.read_text().splitlines() if path.exists() else []


def python_with_tvm(path: Path, version: str, runs: Path | None = None) -> Path:
    """Write the program ``path``, a Python whose package tvm is the stand-in of ``version``, and return it.

    ``runs`` (by default ``tvmc.txt`` in the folder of ``path``) gets a line for each compilation, ``<runs>.starts`` the
    first argument of each start of the program.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    counted = runs or path.parent / "tvmc.txt"
    search = os.pathsep.join(filter(None, [str(STAND_IN), os.environ.get("PYTHONPATH")]))
    path.write_text(
        f"#!/bin/sh\nexport PYTHONPATH='{search}' STAND_IN_TVM='{version}' STAND_IN_RUNS='{counted}'\n"
        f"echo \"$1\" >> '{counted}.starts'\nexec '{sys.executable}' \"$@\"\n"
    )
    path.chmod(0o755)
    return path
