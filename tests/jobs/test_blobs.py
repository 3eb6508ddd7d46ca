"""Graph and parameters as bytes of the image, from assembler and from C, on the host and on a board."""

import hashlib
import re
import subprocess
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from elftools.elf.elffile import ELFFile

from mlfbuild.archive import open_archive
from mlfbuild.core.errors import UsageError
from mlfbuild.jobs.tree import TreeSettings, unpack, write_target_tree
from mlfbuild.jobs.tree.blobs import blob_files
from mlfbuild.library import LazyBytes, Library
from mlfbuild.library.keys import Placement
from mlfbuild.library.params import save_params
from mlfbuild.targets import BOARDS, CPUS
from mlfbuild.verify.emulator.qemu import run_elf
from support.errors import raises
from support.libraries import graph_library

REPOSITORY = Path(__file__).parents[2]
TOOLCHAIN = REPOSITORY / "cmake" / "toolchains" / "cortex-m4.cmake"
BOARD = BOARDS["mps2-an386"]

MAIN = """\
#include <stdio.h>

#include "mlf_{m}_blobs.h"

#define FNV_OFFSET 0xcbf29ce484222325u
#define FNV_PRIME 0x100000001b3u

static void show(const char *what, const void *data, uint32_t size, uint32_t declared)
{{
    const uint8_t *bytes = data;
    uint64_t hash = FNV_OFFSET;
    for (uint32_t i = 0; i < size; ++i) {{
        hash = (hash ^ bytes[i]) * FNV_PRIME;
    }}
    printf("%s %lu %lu %lu %08lx%08lx\\n", what, (unsigned long)size, (unsigned long)declared,
           (unsigned long)((uintptr_t)data % 16u), (unsigned long)(hash >> 32), (unsigned long)(hash & 0xffffffffu));
}}

int main(void)
{{
    show("graph", mlf_{m}_graph_json, mlf_{m}_graph_json_size, MLF_{M}_GRAPH_JSON_SIZE);
    show("params", mlf_{m}_params, mlf_{m}_params_size, MLF_{M}_PARAMS_SIZE);
    return mlf_{m}_graph_json[mlf_{m}_graph_json_size];
}}
"""

CMAKE = """\
cmake_minimum_required(VERSION 3.22)
project(app LANGUAGES C ASM)
include(tree/mlf.cmake)
add_executable(app main.c)
target_link_libraries(app PRIVATE mlf::{m} $<TARGET_NAME_IF_EXISTS:mlf::board>)
"""


def fnv1a(data: bytes) -> str:
    """Return the 64-bit FNV-1a hash, independent of the C implementation above."""
    value = 0xCBF29CE484222325
    for byte in data:
        value = (value ^ byte) * 0x100000001B3 % 2**64
    return f"{value:016x}"


def expected_output(tree: Path, name: str) -> str:
    graph = (tree / f"executor-config/graph/{name}.graph").read_bytes()
    params = (tree / f"parameters/{name}.params").read_bytes()
    lines = [f"{what} {len(data)} {len(data)} 0 {fnv1a(data)}" for what, data in (("graph", graph), ("params", params))]
    return "\n".join(lines) + "\n"


def write_project(folder: Path, name: str, link: str | None = None) -> None:
    (folder / "main.c").write_text(MAIN.format(m=name, M=name.upper()))
    (folder / "CMakeLists.txt").write_text(CMAKE.format(m=link or f"{name}_blobs"))


def build(folder: Path, *arguments: str) -> str:
    def run(*command: str | Path) -> str:
        done = subprocess.run([str(word) for word in command], text=True, capture_output=True)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    return run("cmake", "-S", folder, "-B", folder / "build", "-G", "Ninja", *arguments) + run(
        "cmake", "--build", folder / "build", "-v"
    )


@pytest.fixture
def host(tool: Callable[..., str]) -> None:
    tool("cmake", "ninja", "gcc")


@pytest.fixture
def arm(tool: Callable[..., str]) -> None:
    tool("cmake", "ninja", "arm-none-eabi-gcc", "qemu-system-arm")


# Text


@pytest.mark.parametrize("path", ["blobs/mlf_net_blobs.h", "blobs/net_blobs.S", "blobs/net_blobs.c"])
def test_the_files(golden: Callable[[str, str], None], path: str) -> None:
    (module,) = graph_library().modules
    golden(blob_files(module)[path].decode(), Path(path).name)


def test_chosen_section_contains_both() -> None:
    (module,) = graph_library().modules
    files = blob_files(module, ".qspi.mlf")
    for path in ("blobs/net_blobs.S", "blobs/net_blobs.c"):
        assert files[path].count(b".qspi.mlf") >= 2 and b".rodata" not in files[path]


def test_source_of_large_parameters_has_every_byte() -> None:
    (module,) = graph_library().modules
    module = replace(module, params={"w": np.arange(700_001, dtype=np.uint16)})
    source = blob_files(module)["blobs/net_blobs.c"]
    assert isinstance(source, LazyBytes)
    text = bytes(source)
    assert len(source) == len(text) and source.read(100, 50) == text[100:150]
    body = text.decode().split("mlf_net_params[MLF_NET_PARAMS_SIZE] = {\n")[1].split("}")[0]
    assert bytes(map(int, body.replace(",", " ").split())) == bytes(save_params(module.params))


def test_invalid_section_names_are_rejected() -> None:
    (module,) = graph_library().modules
    with raises(UsageError, "invalid-section-name", at=ascii('.x"\n.global main')):
        blob_files(module, '.x"\n.global main')


# On the host


@pytest.mark.parametrize("way", ["incbin", "array"])
@pytest.mark.usefixtures("host")
def test_assembler_and_c_give_the_same_bytes_on_the_host(tmp_path: Path, way: str) -> None:
    folder = tmp_path / "a firmware"
    (library,) = graph_library().modules
    greater = '"name": "Größe"'.encode()  # bytes beyond ASCII in a char array
    graph = bytes(library.graph_json or b"").replace(b'"name": "x"', greater)
    inputs = (replace(library.inputs[0], name="Größe"),)
    unpack(Library((replace(library, graph_json=graph, inputs=inputs),)), folder / "tree", archive_id="a")
    write_project(folder, "net")
    log = build(folder, f"-DMLF_BLOBS={way}", "-DCMAKE_C_FLAGS=-Wall -Wextra -Wpedantic -Wconversion -Wshadow -Werror")
    assert ("net_blobs.S" in log) == (way == "incbin") and ("net_blobs.c" in log) == (way == "array")
    done = subprocess.run([folder / "build" / "app"], text=True, capture_output=True)
    assert (done.returncode, done.stdout) == (0, expected_output(folder / "tree", "net"))


@pytest.mark.usefixtures("host")
def test_changed_blob_is_linked_again(tmp_path: Path) -> None:
    unpack(graph_library(), tmp_path / "tree", archive_id="a")
    write_project(tmp_path, "net", link="net")
    build(tmp_path)
    (module,) = graph_library().modules
    heavier = replace(module, params={"p0": module.params["p0"] * 2})
    result = unpack(Library((heavier,)), tmp_path / "tree", archive_id="b")
    assert "parameters/net.params" in result.written and "blobs/net_blobs.S" not in result.written
    log = build(tmp_path)
    assert "net_blobs.S" in log and "net_lib1.c.o -c" not in log
    done = subprocess.run([tmp_path / "build" / "app"], text=True, capture_output=True)
    assert done.stdout == expected_output(tmp_path / "tree", "net")


@pytest.mark.usefixtures("host")
def test_project_without_assembler_uses_the_array(tmp_path: Path) -> None:
    unpack(graph_library(), tmp_path / "tree", archive_id="a")
    write_project(tmp_path, "net")
    text = (tmp_path / "CMakeLists.txt").read_text().replace("LANGUAGES C ASM", "LANGUAGES C")
    (tmp_path / "CMakeLists.txt").write_text(text)
    assert "net_blobs.c" in build(tmp_path)


@pytest.mark.usefixtures("host")
def test_header_compiles_as_cxx(tmp_path: Path, tool: Callable[..., str]) -> None:
    unpack(graph_library(), tmp_path, archive_id="a")
    source = tmp_path / "use.cpp"
    source.write_text('#include "mlf_net_blobs.h"\nunsigned use() { return mlf_net_params_size; }\n')
    subprocess.run(
        [tool("g++"), "-Wall", "-Wextra", "-Werror", "-I", tmp_path / "blobs", "-c", source, "-o", tmp_path / "use.o"],
        check=True,
    )
    symbols = subprocess.run(["nm", tmp_path / "use.o"], text=True, capture_output=True, check=True).stdout
    assert re.search(r" U mlf_net_params_size$", symbols, re.MULTILINE)


# On the board


@pytest.mark.parametrize("way", ["incbin", "array"])
@pytest.mark.usefixtures("arm")
def test_image_reads_both_blobs(tmp_path: Path, shared: Path, way: str) -> None:
    folder = tmp_path / "a firmware"
    library = open_archive(shared / "archives" / "kws_int8-graph.tar")
    unpack(library, folder / "tree" / "kws_int8", archive_id="a")
    write_target_tree(folder / "tree", ["kws_int8"], BOARD, CPUS["cortex-m4"])
    write_project(folder, "kws_int8")
    build(folder, f"-DCMAKE_TOOLCHAIN_FILE={TOOLCHAIN}", f"-DMLF_BLOBS={way}")
    result = run_elf(folder / "build" / "app.elf", BOARD, timeout=60)
    assert result.exit_status == 0
    assert result.stdout == expected_output(folder / "tree" / "kws_int8", "kws_int8")
    graph = folder / "tree/kws_int8/executor-config/graph/kws_int8.graph"
    assert hashlib.sha256(graph.read_bytes()).digest() == hashlib.sha256(tvm_graph(shared)).digest()


def tvm_graph(shared: Path) -> bytes:
    member = "./executor-config/graph/kws_int8.graph"
    return subprocess.run(
        ["tar", "xOf", shared / "archives" / "kws_int8-graph.tar", member], capture_output=True, check=True
    ).stdout


PLACEMENT = """\
MEMORY
{
    FLASH (rx)  : ORIGIN = 0x00000000, LENGTH = 2M
    QSPI (r)    : ORIGIN = 0x00200000, LENGTH = 1M
    EXTRA (r)   : ORIGIN = 0x00300000, LENGTH = 1M
    RAM   (rwx) : ORIGIN = 0x20000000, LENGTH = 4M
}
REGION_ALIAS("VECTORS", FLASH)
REGION_ALIAS("DTCM", RAM)
SECTIONS
{
    .graph : { *(%s) } > QSPI :graph
    .params : { *(%s) } > EXTRA :params
}
INCLUDE mlf_board.ld
"""


@pytest.mark.parametrize("way", ["incbin", "array"])
@pytest.mark.parametrize("section", [None, ".mlf.weights"])
@pytest.mark.usefixtures("arm")
def test_linker_script_places_each_section(tmp_path: Path, way: str, section: str | None) -> None:
    unpack(
        graph_library(),
        tmp_path / "tree" / "net",
        archive_id="a",
        settings=TreeSettings(placement=Placement(params=section)),
    )
    write_target_tree(tmp_path / "tree", ["net"], BOARD, CPUS["cortex-m4"])
    write_project(tmp_path, "net")
    graph, params = (".rodata.mlf.graph.net", ".rodata.mlf.params.net") if section is None else (".none", section)
    board = tmp_path / "tree" / "board"
    (board / "mps2-an386.ld").write_text(PLACEMENT % (graph, params))
    shared_script = (board / "mlf_board.ld").read_text()
    headers = "PHDRS\n{\n    graph PT_LOAD FLAGS(4);\n    params PT_LOAD FLAGS(4);\n"
    (board / "mlf_board.ld").write_text(re.sub(r"PHDRS\s*\{\n", headers, shared_script))
    build(tmp_path, f"-DCMAKE_TOOLCHAIN_FILE={TOOLCHAIN}", f"-DMLF_BLOBS={way}")
    elf = tmp_path / "build" / "app.elf"
    with elf.open("rb") as file:
        table = ELFFile(file).get_section_by_name(".symtab")
        places = {symbol.name: (symbol["st_value"], symbol["st_size"]) for symbol in table.iter_symbols()}
    graph_region = 0x00200000 if section is None else 0x00300000
    graph_size = len((tmp_path / "tree/net/executor-config/graph/net.graph").read_bytes())
    for symbol, region, size in (
        ("mlf_net_graph_json", graph_region, graph_size + 1), ("mlf_net_graph_json_size", graph_region, 4),
        ("mlf_net_params", 0x00300000, 106), ("mlf_net_params_size", 0x00300000, 4),
    ):  # fmt: skip
        assert places[symbol][0] & ~0xFFFFF == region and places[symbol][1] == size, symbol
    assert places["mlf_net_graph_json"][0] % 16 == places["mlf_net_params"][0] % 16 == 0
    result = run_elf(elf, BOARD, timeout=60)
    assert (result.exit_status, result.stdout) == (0, expected_output(tmp_path / "tree" / "net", "net"))
