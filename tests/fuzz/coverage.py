"""Coverage-guided fuzzing of the parsers with Atheris (libFuzzer for Python), which keeps inputs that run new lines.

    pip install atheris
    PYTHONPATH=tests python -m fuzz.coverage tflite -max_total_time=300 build/corpus/tflite

The first argument is a subject of the campaign, the others are libFuzzer's. Sound files are the start of the corpus.
Structure-aware damage of these comes from the campaign's mutators in half of the mutations, libFuzzer's own from its
dictionary in the others. An input ends a run if it raises anything but an error of ours.
"""

import importlib
import pkgutil
import random
import sys
import tempfile
from pathlib import Path

try:
    import atheris
except ImportError:  # the extra is large, and not available for every Python
    sys.exit("atheris is not installed: run `pip install atheris`")

ROOMS = {
    "tflite": ("frontends.tflite", "graph"),
    "onnx": ("frontends.onnx", "graph"),
    "tar": ("archive.tar", "archive.interface", "library"),
    "metadata": ("archive.interface", "library"),
    "graph-json": ("library",),
    "params": ("library",),
    "project": ("project",),
    "elf": ("report.sizes", "report.stack", "verify", "runners"),
    "map": ("report.sizes", "report.stack"),
    "npz": ("verify",),
    "lock": ("requirements",),
    "bundle": ("verify", "archive.tar"),
    "report": ("report.document", "report.text", "report.html"),
}
"""The packages whose lines guide the fuzzing of each subject. To instrument one takes seconds."""

NAME = sys.argv[1] if len(sys.argv) > 1 else ""
if NAME not in ROOMS:
    sys.exit(f"name a subject: {', '.join(ROOMS)}")

with atheris.instrument_imports(include=[f"mlfbuild.{room}" for room in ROOMS[NAME]]):
    for room in ROOMS[NAME]:  # packages import most of their modules when these are first used
        package = importlib.import_module(f"mlfbuild.{room}")
        for found in pkgutil.walk_packages(package.__path__, f"mlfbuild.{room}."):
            importlib.import_module(found.name)

    from mlfbuild.archive import read_archive
    from mlfbuild.core.errors import MlfError
    from mlfbuild.library.graph_json import parse_graph
    from mlfbuild.library.params import load_params
    from mlfbuild.native.frontends.onnx import parse_onnx
    from mlfbuild.native.frontends.tflite import parse_tflite
    from mlfbuild.project import load_project

from fuzz.subjects import SUBJECTS  # noqa: E402 - imports modules that are to be instrumented

_LARGEST = 1 << 16


def _project(data: bytes) -> None:
    path = Path(tempfile.gettempdir()) / f"mlfbuild-fuzz-{id(sys)}.yml"
    path.write_bytes(data)
    load_project(path)


def _params(data: bytes) -> None:
    params = load_params(data, "a.params")
    for name in params:
        params[name].tobytes()


PARSERS = {
    "tflite": lambda data: parse_tflite(data, "net", "net"),
    "onnx": lambda data: parse_onnx(data, "net", "net"),
    "tar": lambda data: read_archive(data, "a.tar"),
    "metadata": lambda data: read_archive(data, "a.tar"),
    "graph-json": lambda data: parse_graph(data, "graph.json"),
    "params": _params,
    "project": _project,
}
"""The parser of each subject; the others are read as in the campaign."""


def _read(data: bytes) -> None:
    with tempfile.TemporaryDirectory(prefix="fuzz-") as folder:
        SUBJECTS[NAME].read(data, 0, Path(folder))


def main() -> None:
    parse, make = PARSERS.get(NAME, _read), SUBJECTS[NAME].make

    def one(data: bytes) -> None:
        try:
            parse(data)
        except MlfError as error:
            str(error)

    def mutated(data: bytes, most: int, seed: int) -> bytes:
        if random.Random(seed).random() < 0.5:
            return atheris.Mutate(data, most)
        return make(seed)[:most]

    folders = [Path(word) for word in sys.argv[2:] if not word.startswith("-")]
    Path("build/fuzz").mkdir(parents=True, exist_ok=True)
    for folder in folders:
        folder.mkdir(parents=True, exist_ok=True)
    if folders and not any(folders[0].iterdir()):
        for number in range(50):
            (folders[0] / f"seed-{number}").write_bytes(make(number))
    atheris.Setup([sys.argv[0], f"-max_len={_LARGEST}", *sys.argv[2:]], one, custom_mutator=mutated)
    atheris.Fuzz()


if __name__ == "__main__":
    main()
