"""Graphs with the option ``hook``: the static executor calls it before each call, for networks of any compiler."""

import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

import mlfbuild
from mlfbuild.archive import open_archive, write_archive
from mlfbuild.cli.output.invocation import run as command_line
from mlfbuild.compilers.archive import ARCHIVE
from mlfbuild.core.errors import UsageError
from mlfbuild.core.files import sha256
from mlfbuild.executor.executables import Executable, executable
from mlfbuild.jobs.tree import unpack
from mlfbuild.library import CompileRequest, Library
from mlfbuild.native.build import compile_graph
from mlfbuild.native.graph import Graph, ops
from mlfbuild.native.graph.nodes import evaluate
from mlfbuild.targets import BOARDS, CPUS
from mlfbuild.verify.emulator import run_elf
from support.board_cases import BOARD_SUPPORT
from support.errors import assert_printed, raises
from support.host_c import SANITIZERS, WARNINGS, run
from support.native import request
from support.sketch import Sketch

Array = npt.NDArray[Any]

# Stops a run before each call, and lets one go on to its end after each of these.
_PROGRAM = """
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "tvmgen_{name}.h"

{values}
static uint8_t y[sizeof right];

struct asked {{ uint32_t calls, stop; int32_t code; int wrong; }};

static int32_t ask(void *context, uint32_t operator_index)
{{
    struct asked *const asked = context;
    asked->wrong |= operator_index != asked->calls++;
    return operator_index == asked->stop ? asked->code : 0;
}}

static int once(struct tvmgen_{name}_inputs *inputs, uint32_t stop, int32_t status, uint32_t calls)
{{
    struct asked asked = {{0, stop, status, 0}};
    struct tvmgen_{name}_outputs outputs = {{y}};
    const int32_t got = tvmgen_{name}_run_hooked(inputs, &outputs, ask, &asked);
    const int fine = got == status && asked.calls == calls && !asked.wrong;
    return !fine || (status == 0 && memcmp(y, right, sizeof y) != 0);
}}

int main(void)
{{
    struct tvmgen_{name}_inputs inputs = {{{inputs}}};
    struct tvmgen_{name}_outputs outputs = {{y}};
    int wrong = once(NULL, 0, -1, 0);
    for (uint32_t i = 0; i < MLF_{upper}_OPERATORS; i++) {{
        printf("%s %s\\n", mlf_{name}_operators[i].name, mlf_{name}_operators[i].operator_name);
        wrong |= once(&inputs, i, 40 + (int32_t)i, i + 1);
        wrong |= once(&inputs, UINT32_MAX, 0, MLF_{upper}_OPERATORS);
    }}
    memset(y, 0, sizeof y);
    wrong |= tvmgen_{name}_run(&inputs, &outputs) != 0 || memcmp(y, right, sizeof y) != 0;
    memset(y, 0, sizeof y);
    wrong |= tvmgen_{name}_run_hooked(&inputs, &outputs, NULL, NULL) != 0 || memcmp(y, right, sizeof y) != 0;
    printf("%s\\n", wrong ? "WRONG" : "done");
    return wrong;
}}
"""


def program(name: str, inputs: list[Array], output: Array) -> str:
    arrays = {f"x{at}": value for at, value in enumerate(inputs)} | {"right": output}
    values = [
        f"static {'const ' if name == 'right' else ''}uint8_t {name}[{value.nbytes}] __attribute__((aligned(8))) = "
        f"{{{', '.join(map(str, value.tobytes()))}}};"
        for name, value in arrays.items()
    ]
    pointers = ", ".join(f"x{at}" for at in range(len(inputs)))
    return _PROGRAM.format(name=name, upper=name.upper(), values="\n".join(values), inputs=pointers)


def tree(library: Library, folder: Path, main: str) -> tuple[list[Path], list[str]]:
    """Unpack the only module of ``library`` and write ``main`` next to it; return sources and include folders."""
    unpack(library, folder, archive_id="a")
    found = executable(library.modules[0])
    assert found is not None
    (folder / "main.c").write_text(main)
    folders = dict.fromkeys((*found.include_dirs, *found.private_include_dirs))
    return [folder / "main.c", *(folder / file for file in found.files)], [f"-I{folder / name}" for name in folders]


def sums() -> Graph:
    """Two layers, and a reshape between them that is not a call."""
    s = Sketch("sums")
    s.node(ops.FullyConnected(), s.tensor("x", 1, 4), s.weights("w", 6, 4), s.tensor("hidden", 1, 6, scale=0.5))
    s.node(ops.Reshape(), "hidden", s.tensor("flat", 6, scale=0.5))
    s.node(ops.Add(), "flat", "flat", s.tensor("y", 6, scale=1.0))
    return s.graph(["x"], ["y"])


SUMS = sums()
X = np.array([[3, -7, 100, -128]], np.int8)


def native_graph(*, hook: bool = True) -> Library:
    wanted = replace(request("sums"), executor="graph", options={"hook": hook})
    return compile_graph(SUMS, wanted, sha256(b"sums"))


def of_tvm(shared: Path, name: str, **options: str | bool) -> Library:
    source = shared / f"archives/{name}.tar"
    return ARCHIVE.compile(CompileRequest("net", source, CPUS["host"], options=options or {"hook": True}))


def executable_of(library: Library) -> Executable:
    found = executable(library.modules[0])
    assert found is not None
    return found


# Runs ----------------------------------------------------------------------------------------------------------------


def cases(shared: Path) -> list[tuple[Library, str, list[str]]]:
    """Libraries, the programs that run them, and the output of these programs."""
    add = np.load(shared / "archives/add-graph.npz")
    ours = ["node hidden FULLY_CONNECTED", "node y ADD"]
    theirs = ["tvmgen_add_fused_cast_multiply_add tvmgen_add_fused_cast_multiply_add"]
    return [
        (native_graph(), program("sums", [X], evaluate(SUMS, {"x": X})["y"]), ours),
        (of_tvm(shared, "add-graph"), program("add", [add["in_a"][0], add["in_b"][0]], add["out0"][0]), theirs),
    ]  # fmt: skip


def test_on_this_machine(shared: Path, tmp_path: Path, tool: Callable[[str], str]) -> None:
    tool("gcc")
    for library, main, lines in cases(shared):
        folder = tmp_path / library.modules[0].name
        sources, folders = tree(library, folder, main)
        entry = folder / "executor" / f"{library.modules[0].name}_entry.c"
        run(["gcc", *WARNINGS[:-1], *folders, "-c", entry, "-o", folder / "entry.o"])
        run(["gcc", "-std=c99", "-O1", *SANITIZERS, *folders, *sources, "-o", folder / "program"])
        assert run([folder / "program"]).splitlines() == [*lines, "done"]


def test_on_a_board(shared: Path, tmp_path: Path, tool: Callable[[str], str]) -> None:
    tool("qemu-system-arm")
    board = BOARDS["mps2-an386"]
    flags = [*CPUS["cortex-m4"].flags, "-O2", "--specs=nano.specs", "-nostartfiles", "-Wl,--gc-sections"]
    script = ["-I", BOARD_SUPPORT, "-L", BOARD_SUPPORT, "-T", BOARD_SUPPORT / f"{board.name}.ld"]
    for library, main, lines in cases(shared):
        folder = tmp_path / library.modules[0].name
        sources, folders = tree(library, folder, main)
        support = sorted(BOARD_SUPPORT.glob("*.c"))
        run([tool("arm-none-eabi-gcc"), *flags, *folders, *sources, *support, *script, "-o", folder / "app.elf"])
        result = run_elf(folder / "app.elf", board, timeout=60)
        assert (result.stdout.splitlines(), result.exit_status) == ([*lines, "done"], 0)


def test_python_sees_every_tensor(
    tmp_path: Path,
    tmp_path_factory: pytest.TempPathFactory,
    monkeypatch: pytest.MonkeyPatch,
    tool: Callable[[str], str],
) -> None:
    """The executor that traces calls on this machine also calls the hook, which does nothing."""
    tool("gcc")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path_factory.getbasetemp() / "cache"))
    write_archive(native_graph(), tmp_path / "sums.tar")
    model = mlfbuild.load(tmp_path / "sums.tar")
    expected = evaluate(SUMS, {"x": X})
    outputs, tensors = model.run_traced({"x": X})
    np.testing.assert_array_equal(outputs["y"], expected["y"])
    np.testing.assert_array_equal(tensors["hidden"], expected["hidden"])


# What is generated ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("archive", ["add-graph", "v5-many-graphlink"])
def test_golden_files(shared: Path, archive: str, golden: Callable[[str, str], None]) -> None:
    found = executable_of(of_tvm(shared, archive))
    for path in [path for path in found.generated if re.search(r"_entry\.c$|/include/", path)]:
        text = bytes(found.generated[path]).decode()
        assert all(len(line) <= 120 for line in text.splitlines()), path
        golden(text, path.rpartition("/")[2])


def test_without_the_option_there_is_no_hook(shared: Path) -> None:
    for library in (native_graph(hook=False), of_tvm(shared, "add-graph", hook=False)):
        assert not library.modules[0].hook
        generated = executable_of(library).generated
        own = [bytes(text) for path, text in generated.items() if "/runtime/" not in path]
        assert not [text for text in own if b"hook" in text or b"HOOK" in text]


def test_hooked_graph_makes_the_same_calls(shared: Path) -> None:
    plain, hooked = (executable_of(of_tvm(shared, "kws_int8-graph", hook=value)) for value in (False, True))
    assert hooked.files == plain.files
    assert hooked.workspace_size == plain.workspace_size
    path = "executor/kws_int8_entry.c"
    tables = [bytes(each.generated[path]).decode().split("mlf_tensors[]")[1] for each in (plain, hooked)]
    assert tables[0].split("};\n\n__attribute__")[0] == tables[1].split("};\n\n#if")[0]


def test_archive_records_the_option(tmp_path: Path) -> None:
    for version in (5, 6, 7):
        write_archive(native_graph(), tmp_path / "sums.tar", version)
        assert open_archive(tmp_path / "sums.tar").modules[0].hook


def test_recorded_hook_of_a_module_that_has_none_is_ignored(shared: Path) -> None:
    """The metadata of an archive is untrusted."""
    for name in ("add-aotp", "operator-add"):
        module = open_archive(shared / f"archives/{name}.tar").modules[0]
        plain, claimed = (executable(replace(module, hook=value)) for value in (False, True))
        assert plain == claimed


# What is refused -----------------------------------------------------------------------------------------------------


AOT = "archive-for-aot-executor"


@pytest.mark.parametrize(
    ("archive", "code"),
    [("add-aotc", AOT), ("add-aotp", AOT), ("conv-usmp_external", AOT), ("operator-add", "operator-without-hook")],
)
def test_archives_that_cannot_run_a_hook_are_rejected(shared: Path, archive: str, code: str) -> None:
    with raises(UsageError, code, at="net: options.hook"):
        of_tvm(shared, archive)


def test_every_module_must_support_the_hook(shared: Path) -> None:
    with raises(UsageError, AOT, at="net: options.hook"):
        of_tvm(shared, "multi-mixed")


def test_archives_of_mlfbuild_keep_their_hook(tmp_path: Path) -> None:
    for hook in (True, False):
        wanted = replace(request("sums"), options={"hook": hook})
        write_archive(compile_graph(SUMS, wanted, sha256(b"sums")), tmp_path / "sums.tar")
        again = CompileRequest("net", tmp_path / "sums.tar", CPUS["cortex-m4"], options={"hook": True})
        if hook:
            assert ARCHIVE.compile(again).modules[0].hook
        else:
            with raises(UsageError, "archive-without-hook", at="net: options.hook"):
                ARCHIVE.compile(again)


def test_error_has_the_place_in_the_project_file(
    shared: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "add.tar").write_bytes((shared / "archives/add-aotc.tar").read_bytes())
    (tmp_path / "mlfbuild.yml").write_text(
        "mlfbuild: 1\ntargets: {pc: {cpu: host}}\nmodels:\n  add: {source: add.tar, options: {hook: true}}\n"
    )
    assert command_line(["-C", str(tmp_path), "check"]) == 2
    place = "mlfbuild.yml:4:42: models.add.options.hook"
    assert_printed(capsys.readouterr().err, "archive-for-aot-executor", place, "add.tar")


def test_archive_that_cannot_be_read_is_reported_as_before(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "add.tar").write_bytes(b"no archive" * 100)
    (tmp_path / "mlfbuild.yml").write_text(
        "mlfbuild: 1\ntargets: {pc: {cpu: host}}\nmodels:\n  add: {source: add.tar, options: {hook: true}}\n"
    )
    assert command_line(["-C", str(tmp_path), "build"]) == 5
    assert_printed(capsys.readouterr().err, "archive-not-tar", "add.tar")


@pytest.mark.parametrize("value", ["yes", 1])
def test_option_must_be_a_boolean(value: str | int) -> None:
    ((key, mistake),) = ARCHIVE.check_options({"hook": value})
    assert (key, mistake.code) == ("hook", "invalid-option")
