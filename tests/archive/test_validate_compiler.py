"""Findings about code are true: compiler or linker refuse it for that reason, and accept valid code."""

import os
import re
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from support.flawed_archives import FLAWS, Flaw
from support.sound_archives import Files, net, packed, tiny, tiny_module
from support.tvm_headers import write_tvm_headers

BROKEN = {
    "MLF304": "invalid suffix|expected (identifier|specifier)|two or more data types",
    "MLF305": "duplicate member",
    "MLF701": "tvmgen_Tiny.h: No such file",
    "MLF702": "conflicting types for",
    "MLF703": "multiple definition of .TVMSystemLibEntryPoint",
    "MLF704": "multiple definition of .__tvm_module_ctx",
    "MLF705": "multiple definition of .tvmgen_tiny_run",
    "MLF706": "multiple definition of .tvmgen_default_cmsis_nn_main_0",
    "MLF707": "undefined reference to .tvmgen_net_sub",
    "MLF709": "undefined reference to .tvmgen_tiny_run",
}
"""The messages of GCC and GNU ld for each finding about code that does not compile or link."""
FLAWED = [flaw for flaw in FLAWS if flaw.code in BROKEN]


def links(files: Files, folder: Path, compiler: str) -> tuple[bool, str]:
    """Return whether a program with all C files links and uses each module, and the compiler's output."""
    for path, content in files.items():
        target = folder / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(content)
    includes = [f"-I{folder / 'codegen/host/include'}", f"-I{write_tvm_headers(folder / 'tvm')}"]
    sources = sorted(str(path) for path in (folder / "codegen").rglob("*.c"))
    headers = [path.stem for path in (folder / "codegen").rglob("tvmgen_*.h")]
    used = [f"{name}_run" for name in headers] or ["TVMSystemLibEntryPoint"]
    main = (
        "".join(f"extern int {name}();\n" for name in used) + f"int main(void) {{ return {'() + '.join(used)}(); }}\n"
    )
    (folder / "main.c").write_text(main)
    command = [
        compiler, "-w", "-fno-common", *includes, *sources, str(folder / "main.c"), "-o", str(folder / "program"),
    ]  # fmt: skip
    done = subprocess.run(command, capture_output=True, text=True, env={**os.environ, "LC_ALL": "C"})
    return done.returncode == 0, done.stderr


@pytest.mark.parametrize("flaw", FLAWED, ids=[f"{index}-{flaw.code}" for index, flaw in enumerate(FLAWED)])
def test_compiler_refuses_flawed_archives(flaw: Flaw, tool: Callable[[str], str], tmp_path: Path) -> None:
    done, said = links(flaw.files(), tmp_path, tool("gcc"))
    assert not done and re.search(BROKEN[flaw.code], said), said


@pytest.mark.parametrize(
    "files", [tiny(), net(), packed(tiny_module("a"), tiny_module("b"))], ids=["tiny", "net", "two"]
)
def test_compiler_accepts_valid_archives(files: Files, tool: Callable[[str], str], tmp_path: Path) -> None:
    done, said = links(files, tmp_path, tool("gcc"))
    assert done, said


def test_every_compiler_finding_is_tested() -> None:
    assert {flaw.code for flaw in FLAWED} == BROKEN.keys()
