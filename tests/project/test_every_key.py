"""Every key of the project file is applied or refused, on each kind of target and model.

The keys are those of the declarations, so a new key needs a value here. On each kind, the value either is a mistake of
`check` at the key or below it, or changes a description of what is built, run or verified: a job. A key that no job has
names the module that reads it. What a job has, and every key of the smaller mappings, is read by more than the checks
of the project file: a key that nothing reads fails here.
"""

import ast
import functools
import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml

import mlfbuild
from mlfbuild.archive import pack_archive
from mlfbuild.core import ProjectFileError, ToolNotFoundError
from mlfbuild.core.keys.declaration import Keys
from mlfbuild.jobs import firmware_jobs, load, target_jobs
from mlfbuild.library.keys.placement import CONSTANT_CLASSES
from mlfbuild.project import Project
from mlfbuild.project.specification import FirmwareSpec, ModelSpec, TargetSpec
from mlfbuild.project.validate import _places
from mlfbuild.usecases import evaluate_jobs, foreseen
from mlfbuild.usecases.verify import verify_jobs
from support.firmware_repo import tiny_network
from support.libraries import native_library
from support.onnx_models import model as onnx_model

PACKAGE = Path(mlfbuild.__file__).parent
GDB = {"gdb": "localhost:3333", "memory": {"ram": {"origin": 0x20000000, "size": "64 KiB"}}}

TARGETS: Mapping[str, dict[str, Any]] = {
    "this machine": {"cpu": "host"},
    "an emulated board": {"cpu": "cortex-m4", "board": "mps2-an386"},
    "a CPU": {"cpu": "cortex-m4"},
    "a microcontroller": {"mcu": "rp2040"},
    "a device behind GDB": {"cpu": "cortex-m4", "runner": GDB},
    "RISC-V": {"cpu": "rv32imc", "board": "virt"},
}
OF_TARGETS: Mapping[str, Any] = {
    "cpu": "cortex-m7",
    "board": "mps2-an500",
    "c-compiler": "clang",
    "toolchain": "own.cmake",
    "regions": {".fast": "PSRAM"},
    "mcu": "rp2350",
    "clock": "8 MHz",
    "timing": {"clock": "8 MHz", "memories": {"flash": {"waits": 3}}},
    "runner": {**GDB, "gdb": "localhost:4444"},
    "devices": {"dsp": {"cpu": "cortex-m7"}},
    "memories": {"sram": {"size": "64 KiB", "waits": 1}},
    "npu": {"type": "ethos-u55", "macs": 128},
}
MODELS: Mapping[str, dict[str, Any]] = {
    "TFLite": {"source": "net.tflite"},
    "ONNX": {"source": "net.onnx"},
    "an archive": {"source": "net.tar"},
    "a command": {"source": "net.tflite", "compiler": "command", "command": "sh compile.sh {source} {output}"},
    "TVM": {"source": "net.tflite", "compiler": "tvm"},
}
OF_MODELS: Mapping[str, Any] = {
    "source": "other.tflite", "interface": {"inputs": ["sound"]}, "compiler": "tvm",
    "command": "cp {source} {output}", "python": "other/python", "inputs": ["main.c"], "executor": "graph",
    "optimize": "Os", "options": {"memory": "smallest"}, "extensions": {"board": "mine"}, "dims": {"n": 4},
    "constants": {"k": 2}, "state": {"k": "y"}, "signature": "serve", "quantize": {"calibration": "net.npz"},
    "targets": ["other"], "vectors": "net.npz", "evaluate": {"data": "net.npz", "metric": "mse", "at-most": 1},
    "explore": {"optimize": ["Os"]}, "goal": "size", "placement": {"params": ".fast"}, "budget": {"flash": "3 KiB"},
    "license": "MIT", "memories": {"ram": "8 KiB"}, "weights": {"memory": "ram", "copy": "1 KiB"},
    "parameters": "replaceable",
}  # fmt: skip
FIRMWARE: Mapping[str, dict[str, Any]] = {"sources": {"sources": ["main.c"]}, "a CMake project": {"cmake": "fw"}}
OF_FIRMWARE: Mapping[str, Any] = {
    "sources": ["more.c"], "include-dirs": ["fw"], "cmake": "fw2", "params-binary": "PSRAM",
    "budget": {"flash": "4 KiB"}, "models": [], "targets": ["other"],
}  # fmt: skip
READ_BY = {"license": "usecases/sbom.py", "explore": "usecases/explore/space.py"}
"""The modules that read keys which are in no job."""


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with the files that the projects name."""
    from onnx import helper

    root = tmp_path_factory.mktemp("every-key")
    node = helper.make_node("Add", ["x", "k"], ["y"])
    (root / "net.onnx").write_bytes(onnx_model([node], [("x", ("n", 4)), ("k", (1, 4))], [("y", (None, 4))]))
    for seed, name in enumerate(("net.tflite", "other.tflite")):
        (root / name).write_bytes(tiny_network(seed))
    (root / "net.tar").write_bytes(pack_archive(native_library("net")))
    for name in ("main.c", "more.c"):
        (root / name).write_text("void Reset_Handler(void) { }\nint main(void) { return 0; }\n")
    for name in ("fw", "fw2"):
        (root / name).mkdir()
        (root / name / "CMakeLists.txt").touch()
    (root / "own.cmake").touch()
    np.savez(root / "net.npz", in0=np.zeros((1, 1, 8), np.int8), out0=np.zeros((1, 1, 4), np.int8))
    return root


def project_of(target: dict[str, Any], model: dict[str, Any], firmware: dict[str, Any] | None) -> dict[str, Any]:
    return {
        "mlfbuild": 1,
        "targets": {"main": target, "other": {"cpu": "cortex-m4", "board": "mps2-an386"}},
        "models": {"net": model},
        **({"firmware": {"app": firmware}} if firmware else {}),
    }


def outcome(root: Path, document: dict[str, Any]) -> str | list[str]:
    """Return a description of all jobs, or the places of the mistakes."""
    path = root / "mlfbuild.yml"
    path.write_text(yaml.safe_dump(json.loads(json.dumps(document)), sort_keys=False))
    try:
        project = load(path)
    except ProjectFileError as error:
        return [getattr(problem, "place", str(problem)) for problem in error.problems]
    mistakes = [".".join(map(str, place)) for place, _ in foreseen(project).mistakes]
    if mistakes:
        return mistakes
    targets = target_jobs(project)
    try:
        verified = verify_jobs(project, targets, root / "build") if project.models["net"].vectors else []
    except ToolNotFoundError as error:
        return [str(error)]
    return repr((targets, firmware_jobs(project, targets), verified, evaluate_jobs(project, targets)))


def value_of(values: Mapping[str, Any], key: str) -> Any:
    assert key in values, f"tests/project/test_every_key.py: a new key needs a value: {key}"
    return values[key]


def assert_applied_or_refused(root: Path, before: dict[str, Any], after: dict[str, Any], key: str, place: str) -> None:
    """Check that ``key`` changes the jobs of the project, or is a mistake at ``place`` or a key that excludes it."""
    old, new = outcome(root, before), outcome(root, after)
    if isinstance(new, list):
        assert isinstance(old, str) or set(new) != set(old) or place in " ".join(new), (old, new)
    elif old == new:
        assert key in READ_BY, f"{place} is accepted, and changes nothing"
        assert f".{key.replace('-', '_')}" in (PACKAGE / READ_BY[key]).read_text()


@pytest.mark.parametrize("kind", TARGETS)
@pytest.mark.parametrize("key", TargetSpec.fields())
def test_keys_of_targets(files: Path, kind: str, key: str) -> None:
    model, base = {"source": "net.tflite", "placement": {"params": ".fast"}}, TARGETS[kind]
    after = {**base, key: value_of(OF_TARGETS, key)}
    assert_applied_or_refused(
        files, project_of(base, model, None), project_of(after, model, None), key, f"targets.main.{key}"
    )


@pytest.mark.parametrize("kind", MODELS)
@pytest.mark.parametrize("key", ModelSpec.fields())
def test_keys_of_models(files: Path, kind: str, key: str) -> None:
    target, base = TARGETS["an emulated board"], MODELS[kind]
    value = "native" if (key, kind) == ("compiler", "TVM") else value_of(OF_MODELS, key)
    after = {**base, key: value}
    assert_applied_or_refused(
        files, project_of(target, base, None), project_of(target, after, None), key, f"models.net.{key}"
    )


@pytest.mark.parametrize("kind", FIRMWARE)
@pytest.mark.parametrize("key", FirmwareSpec.fields())
def test_keys_of_firmware(files: Path, kind: str, key: str) -> None:
    target = {**TARGETS["an emulated board"], "regions": OF_TARGETS["regions"]}
    model = {"source": "net.tflite", "placement": {"params": ".fast"}}
    base = FIRMWARE[kind]
    after = {**base, key: value_of(OF_FIRMWARE, key)}
    assert_applied_or_refused(
        files, project_of(target, model, base), project_of(target, model, after), key, f"firmware.app.{key}"
    )


CHECKS = ("checks", "references", "rules", "validate")
"""How the names of the modules end that check the project file: what only they read is not applied."""


@functools.cache
def attributes() -> frozenset[str]:
    """Return the names of the attributes that modules read; those that check the project file do not count."""
    return frozenset({*_attributes(), *CONSTANT_CLASSES})


def _attributes() -> Iterator[str]:
    for path in PACKAGE.rglob("*.py"):
        if path.parent != PACKAGE / "project" or not path.stem.endswith(CHECKS):
            tree = ast.parse(path.read_text())
            yield from (node.attr for node in ast.walk(tree) if isinstance(node, ast.Attribute))


DECLARED = dict.fromkeys([Project, *(keys for _, keys in _places(Project))])


@pytest.mark.parametrize(("keys", "key"), [(keys, key) for keys in DECLARED for key in keys.fields()])
def test_every_key_is_read(keys: type[Keys], key: str) -> None:
    name = keys.fields()[key].name
    assert name in attributes(), f"only checks read {keys.__name__}.{name}; apply it in the room that builds or runs"
