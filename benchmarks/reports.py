"""Report the MLPerf Tiny networks in images for a Cortex-M4F and a Cortex-M55, as `mlfbuild report` does.

    python benchmarks/reports.py [--networks kws ...]

Builds one image for each network of ../shared and each core, runs each network once in QEMU, compares each report with
`arm-none-eabi-size`, and prints one table. Exit status 2 if an image cannot be built or a figure differs.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from counting.firmware import SHARED, MeasurementError, run
from counting.report import table

Json = Mapping[str, Any]
NETWORKS = ("kws", "ic", "ad", "vww")
TARGETS = {"m4": "mps2-an386", "m55": "mps3-an547"}
_CPUS = {"m4": "cortex-m4", "m55": "cortex-m55"}
_HEAD = (
    "network",
    "core",
    "flash",
    "code",
    "weights",
    "tables",
    "RAM",
    "I/O",
    "stack",
    "instructions",
    "image's flash",
    "its RAM",
)


def write_project(folder: Path, networks: Sequence[str], targets: Sequence[str]) -> None:
    """Write a project with a firmware for each of ``networks`` that does nothing but call it."""
    named = "".join(f"  {name}: {{cpu: {_CPUS[name]}, board: {TARGETS[name]}}}\n" for name in targets)
    models = "".join(f"  {name}: {{source: {SHARED / f'models/{name}_int8.tflite'}}}\n" for name in networks)
    firmware = "".join(f"  {name}_app: {{sources: [{name}.c], models: [{name}]}}\n" for name in networks)
    text = f"mlfbuild: 1\ntargets:\n{named}models:\n{models}firmware:\n{firmware}"
    (folder / "mlfbuild.yml").write_text(text)
    for name in networks:
        call = f"int main(void) {{ return tvmgen_{name}_run(0, 0); }}"
        (folder / f"{name}.c").write_text(f'#include "tvmgen_{name}.h"\n{call}\n')


def reports(folder: Path, networks: Sequence[str], targets: Sequence[str] = tuple(TARGETS)) -> Json:
    """Build the images of ``networks`` in ``folder`` and return their report; raises ``MeasurementError``."""
    write_project(folder, networks, targets)
    command = [sys.executable, "-m", "mlfbuild", "report", "--profile", "-q", "-C", str(folder), "-o", "report.json"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise MeasurementError(done.stderr)
    found: Json = json.loads((folder / "report.json").read_text())
    return found


def image_path(folder: Path, image: Json) -> Path:
    """Return where the image of a report is."""
    return Path(folder, "build", image["target"], image["firmware"], f"{image['firmware']}.elf")


def checked(folder: Path, report: Json) -> Iterator[Json]:
    """Yield the images of ``report``; raises ``MeasurementError`` where binutils find other sizes."""
    for image in report["images"]:
        printed = run(["arm-none-eabi-size", str(image_path(folder, image))])
        text, data, bss = map(int, printed.splitlines()[1].split()[:3])
        if (image["flash"], image["ram"]) != (text + data, data + bss):
            raise MeasurementError(f"{image['firmware']} for {image['target']}: size finds {text}, {data} and {bss}")
        yield image


def instructions(model: Json) -> int:
    """Return those of one run, with zeros as inputs."""
    return sum(network["profile"]["instructions"] for network in model["networks"])


def row(image: Json) -> list[str]:
    """Return the row of the table."""
    (model,) = image["models"]
    flash = model["kinds"]["flash"]
    tensors = [tensor for network in model["networks"] for tensor in network["tensors"]]
    buffers = sum(tensor["size"] for tensor in tensors if tensor["memory"] in {"input", "output"})
    figures = (
        model["flash"], flash["code"], flash["weights"], flash["tables"],
        model["ram"], buffers, model["stack"]["worst_case"], instructions(model), image["flash"], image["ram"],
    )  # fmt: skip
    return [model["name"], image["target"].upper(), *("" if figure is None else f"{figure:,}" for figure in figures)]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--networks", nargs="+", choices=NETWORKS, default=NETWORKS)
    options = parser.parse_args()
    try:
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            rows = [row(image) for image in checked(folder, reports(folder, options.networks))]
    except MeasurementError as error:
        print(error, file=sys.stderr)
        sys.exit(2)
    print(table(_HEAD, rows, right=range(2, len(_HEAD))), end="")


if __name__ == "__main__":
    main()
