"""Write an archive like TVM's exporter, with code that computes the network."""

from __future__ import annotations

import datetime as dt
import io
import json
import os
import tarfile
import time
from pathlib import Path

from mlfbuild.archive.layout import archive_files
from mlfbuild.compilers import compiler_called
from mlfbuild.library import CompileRequest, Module
from mlfbuild.targets import CPUS


def write(given: dict[str, object], version: tuple[int, int]) -> None:
    """Write the archive of the network ``given["FILE"]``."""
    old = version < (0, 9)
    name = "default" if old else str(given.get("module_name") or "default")
    executor = given["target_c_executor" if old else "executor"] or "graph"
    cpu = str(given["target_c_mcpu"] or "host")
    request = CompileRequest(name, Path(str(given["FILE"])), CPUS[cpu], executor=str(executor))
    library = compiler_called("native").compile(request)
    files = {path: bytes(content) for path, content in archive_files(library, 5 if old else 7).items()}
    (module,) = library.modules
    del files["README.md"]
    files["src/relay.txt" if old else f"src/{name}.relay"] = relay(module)
    if "cmsis-nn" in str(given["target"]):  # no key of the metadata records this
        files[f"codegen/host/src/{name}_lib9.c"] = b"#include <arm_nnfunctions.h>\nstatic int unused = 1;\n"
    files["metadata.json"] = metadata(json.loads(files["metadata.json"]), target(given, cpu))
    pack(Path(str(given["output"])), files)


def relay(module: Module) -> bytes:
    """Return the program's text, whose signature has the order and the types of inputs and outputs."""
    shaped = {tensor.name: f"Tensor[({', '.join(map(str, tensor.shape))}), {tensor.dtype}]"
              for tensor in (*module.inputs, *module.outputs)}  # fmt: skip
    inputs = ", ".join(f"%{tensor.name}: {shaped[tensor.name]}" for tensor in module.inputs)
    outputs = ", ".join(shaped[tensor.name] for tensor in module.outputs)
    names = ", ".join(f'"{tensor.name}"' for tensor in module.outputs)
    return f"def @main({inputs}, output_tensor_names=[{names}]) -> {outputs} {{\n  %0\n}}\n".encode()


def target(given: dict[str, object], cpu: str) -> str:
    """Return the target in TVM's form."""
    keys = "cpu" if cpu == "host" else f"arm_cpu,cpu -mcpu={cpu}"
    old = f" -runtime={given['target_c_runtime']}" if given.get("target_c_runtime") else ""
    return f"c -keys={keys}{old}"


def metadata(document: dict, text: str) -> bytes:
    """Return the metadata with the current date and TVM's target, without the extension key."""
    for module in document.get("modules", {"": document}).values():
        module.pop("mlfbuild", None)
        module["export_datetime"] = dt.datetime.now().strftime("%Y-%m-%d %H:%M:%SZ")
        module["target"] = {"1": text} if isinstance(module["target"], dict) else [text]
    return json.dumps(document, indent=2, sort_keys=True).encode()


def pack(path: Path, files: dict[str, bytes]) -> None:
    """Write ``files`` with folders and with the time and owner of this run, sometimes in another order."""
    names = sorted(files, reverse=time.time_ns() % 2 == 0)
    with tarfile.open(path, "w") as tar:
        for folder in [".", *sorted({f"./{parent}" for name in names for parent in Path(name).parents if parent.name})]:
            member = tarfile.TarInfo(folder)
            member.type, member.mode, member.mtime = tarfile.DIRTYPE, 0o755, time.time()
            tar.addfile(member)
        for name in names:
            member = tarfile.TarInfo(f"./{name}")
            member.size, member.mtime, member.mode = len(files[name]), time.time(), 0o600
            member.uid, member.uname = os.getpid(), "builder"
            tar.addfile(member, io.BytesIO(files[name]))
