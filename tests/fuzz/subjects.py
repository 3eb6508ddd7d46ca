"""What the campaign damages: one subject for each kind of file, with a way to make inputs and to read them.

A subject makes the same input for the same number. ``read`` raises one of our errors if it refuses an input; anything
else that it raises is a defect, and so is a file that it leaves outside of the folder that it gets.
"""

import copy
import functools
import json
import random
import struct
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from fuzz import product_files, report_files
from fuzz.model_mutate import ModelMutator
from fuzz.mutate import INTERESTING, Mutator
from fuzz.onnx_mutate import damaged_model
from fuzz.operations import exercise
from fuzz.seeds import sound_archives, sound_models, sound_onnx
from mlfbuild.archive import read_archive, tar
from mlfbuild.library import CompileRequest, Library
from mlfbuild.library.graph_json import graph_text, parse_graph
from mlfbuild.library.params import load_params, save_params
from mlfbuild.native.build import compile_graph
from mlfbuild.native.frontends import parse_model
from mlfbuild.native.graph import ConstantBudget
from mlfbuild.project import load_project
from mlfbuild.targets import CPUS
from support.libraries import graph_library

CPU_NAMES = ("cortex-m0plus", "cortex-m4", "cortex-m55", "host")
MEMORIES = ("smallest", "balanced", "fastest")
PROJECTS = Path(__file__).parents[1] / "project/valid"


@dataclass(frozen=True)
class Subject:
    """A kind of file."""

    suffix: str
    weight: int
    """Its share of all inputs."""
    make: Callable[[int], bytes]
    read: Callable[[bytes, int, Path], object]
    """Gets the input, its number and an empty folder."""
    refusals: frozenset[int] = frozenset({5})
    """Exit codes of the errors that it may raise."""


def chosen(number: int, choices: list[Any]) -> Any:
    return random.Random(number).choice(choices)


def compiled(data: bytes, number: int, suffix: str, cpu: str | None = None, name: str = "net") -> Library:
    """Compile a model for a CPU and options that follow from ``number``."""
    chance = random.Random(number)
    executor = chance.choice(("aot", "aot", "aot", "graph")) if cpu is None else "aot"
    options = {"memory": chance.choice(MEMORIES)}
    wanted = cpu or chance.choice(CPU_NAMES)
    request = CompileRequest(name, Path(f"net{suffix}"), CPUS[wanted], executor, options=options)
    return compile_graph(parse_model(data, name, request.source), request, "0" * 64, ConstantBudget.of_file(len(data)))


def _tflite(number: int) -> bytes:
    return ModelMutator(number).model(chosen(number, sound_models()))


def _onnx(number: int) -> bytes:
    return damaged_model(random.Random(number), chosen(number, sound_onnx()))


def _archive(number: int) -> bytes:
    return Mutator(number).archive(chosen(number, sound_archives()))


def _exercised(data: bytes, _number: int, folder: Path) -> None:
    if exercise(data, _other(), folder) == "refused":
        read_archive(data, "a.tar")  # raises what it was refused with


@functools.cache
def _other() -> Library:
    return graph_library("other")


@functools.cache
def _contents(marks: tuple[str, ...]) -> list[bytes]:
    """The members of sound archives whose path contains one of ``marks``."""
    found = [
        content for files in sound_archives() for path, content in files.items() if any(mark in path for mark in marks)
    ]
    assert found, marks
    return found


def _metadata(number: int) -> bytes:
    """A sound archive whose metadata.json contradicts the rest, or itself."""
    files = dict(chosen(number, sound_archives()))
    path = next(path for path in files if path.endswith(".json") and "metadata" in path)
    files[path] = Mutator(number).json(files[path])
    return b"".join(tar.pack(files, 0))


def _read(data: bytes, _number: int, _folder: Path) -> None:
    read_archive(data, "a.tar")


def _graph(number: int) -> bytes:
    return Mutator(number).json(chosen(number, _contents((".graph", "graph.json"))))


def _read_graph(data: bytes, _number: int, _folder: Path) -> None:
    graph = parse_graph(data, "graph.json")
    assert parse_graph(graph_text(graph).encode(), "again") == graph, "reads back as another graph"


def _params(number: int) -> bytes:
    """Parameters with a length, a type or a shape that lies."""
    content = chosen(number, _contents((".params",)))
    chance = random.Random(number)
    if len(content) < 32 or chance.random() < 0.3:
        return Mutator(number).damaged(content)
    changed = bytearray(content)
    at = chance.randrange(min(len(changed) - 8, 400)) & ~chance.choice((0, 3, 7))
    width = chance.choice(("<Q", "<q", "<i", "<H", "<B"))
    mask = (1 << 8 * struct.calcsize(width)) - 1
    value = chance.choice(INTERESTING) & (mask >> 1 if width in {"<q", "<i"} else mask)
    changed[at : at + struct.calcsize(width)] = struct.pack(width, value)
    return bytes(changed)


def _read_params(data: bytes, _number: int, _folder: Path) -> None:
    params = load_params(data, "a.params")
    written = save_params({name: params[name] for name in params})
    again = load_params(written, "b.params")
    assert [(name, value.tobytes()) for name, value in again.items()] == [
        (name, value.tobytes()) for name, value in params.items()
    ], "reads back as other parameters"


_PROJECT_VALUES: tuple[Any, ...] = (
    "../" * 60 + "x", "x" * 300, "a/" + "y" * 5000, "\x1b[2J", "\u202e", "http://[", "file:///etc/passwd", "ext::sh",
    -1, 1 << 70, 0.5, "96 KiB", "2 %", [], {}, None, True, ["m4", "m4"], "m4", {"path": "/"}, "C:\\x", "~", "$HOME",
)  # fmt: skip


def _project(number: int) -> bytes:
    """A sound project file with values of other types, paths that lead elsewhere, or pieces moved."""
    chance, mutator = random.Random(number), Mutator(number)
    text = chosen(number, _projects())
    if chance.random() < 0.4:
        return mutator.text(text) if chance.random() < 0.8 else mutator.damaged(text)
    document = json.loads(json.dumps(yaml.safe_load(text), default=str))
    for _ in range(chance.choice((1, 1, 2, 4))):
        if chance.random() < 0.5:
            mutator.change(document)
        else:
            _put(chance, document)
    return str(yaml.safe_dump(document, allow_unicode=chance.random() < 0.5)).encode("utf-8", "surrogatepass")


def _put(chance: random.Random, document: Any) -> None:
    """Put a value of a project file at any place."""
    node = document
    while isinstance(node, dict | list) and node:
        key = chance.choice(list(node) if isinstance(node, dict) else range(len(node)))
        if not isinstance(node[key], dict | list) or not node[key] or chance.random() < 0.3:
            node[key] = copy.deepcopy(chance.choice(_PROJECT_VALUES))  # a shared value could contain itself
            return
        node = node[key]


@functools.cache
def _projects() -> list[bytes]:
    return [path.read_bytes() for path in sorted(PROJECTS.glob("*.yml"))]


def _read_project(data: bytes, _number: int, folder: Path) -> None:
    path = folder / "mlfbuild.yml"
    path.write_bytes(data)
    try:
        load_project(path)
    finally:
        path.unlink()


MODEL = frozenset({4, 5})

SUBJECTS: dict[str, Subject] = {
    "tflite": Subject(".tflite", 30, _tflite, lambda data, at, _: compiled(data, at, ".tflite"), MODEL),
    "onnx": Subject(".onnx", 20, _onnx, lambda data, at, _: compiled(data, at, ".onnx"), MODEL),
    "tar": Subject(".tar", 10, _archive, _exercised),
    "metadata": Subject(".tar", 15, _metadata, _read),
    "graph-json": Subject(".json", 10, _graph, _read_graph),
    "params": Subject(".params", 5, _params, _read_params),
    "project": Subject(".yml", 10, _project, _read_project, frozenset({2})),
    "elf": Subject(".elf", 5, product_files.elf, product_files.read_elf, MODEL),
    "map": Subject(".map", 5, product_files.linker_map, product_files.read_map),
    "npz": Subject(".npz", 5, product_files.vectors, product_files.read_vectors, frozenset({1, 5})),
    "lock": Subject(".lock", 5, product_files.lock, product_files.read_lock_file, frozenset({5, 6})),
    "bundle": Subject(".mlfbundle", 5, product_files.bundle, product_files.read_bundle_file, frozenset({1, 5})),
    "report": Subject(".json", 5, report_files.report_json, report_files.read_report_json),
}


def subject_of(number: int) -> str:
    """Return which subject the input with this number is for."""
    weights = [subject.weight for subject in SUBJECTS.values()]
    return random.Random(number ^ 0x5EED).choices(list(SUBJECTS), weights)[0]
