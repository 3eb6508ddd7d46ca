"""`mlfbuild init` writes a whole project or nothing."""

import json
import os
import re
import resource
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import yaml

from mlfbuild.archive import pack_archive
from mlfbuild.library import ExternalDependency, ModuleTarget
from mlfbuild.targets import BOARDS
from support.aot_archives import POOLS, WORKSPACE_IO, aot_archive
from support.command import Folder
from support.errors import assert_printed
from support.firmware_repo import tiny_network
from support.libraries import native_library
from support.schemas import validator
from support.tflite_builder import Network

PROJECT_WITH_SCHEMAS = """\
# yaml-language-server: $schema=schemas/mlf.json
# yaml-language-server: $schema=https://example.com/schema.json
mlfbuild: 1
targets: {pc: {cpu: host}}
models: {net: {source: net.tflite}}
"""
TEMPLATES = ("scons", "cmake", "bare-metal")
COMMON = {".gitignore", "README.md", "mlfbuild.schema.json", "mlfbuild.yml", "src/main.c", "src/sample.h"}
OWN = {
    "scons": {"SConstruct", "site_scons/site_tools/mlf.py"},
    "cmake": {"CMakeLists.txt", "CMakePresets.json", "cmake/cortex-m4.cmake", "cmake/mlfbuild.cmake"},
    "bare-metal": {"Makefile", ".gitattributes"},
}


@pytest.fixture
def empty(folder: Folder) -> Folder:
    """Return an empty folder; a model is in its parent."""
    for path in sorted(folder.root.rglob("*"), reverse=True):
        path.rmdir() if path.is_dir() else path.unlink()
    (folder.root / "fw").mkdir()
    folder.write("Kws Net-2.tflite", tiny_network(5))
    return folder


@pytest.mark.parametrize("template", TEMPLATES)
def test_example_project(empty: Folder, golden, template: str) -> None:
    ended = empty.run("init", "fw", "--template", template)
    assert (ended.status, ended.err) == (0, "")
    golden(re.sub("wrote [0-9]+ files", "wrote some files", ended.out), "said.txt")  # the number of kernels varies
    files = {name.removeprefix("fw/") for name in empty.files() if name.startswith("fw/")}
    assert files >= COMMON | OWN[template] | {"models/tones.tflite", "tests/tones.npz"}
    for name in sorted((COMMON | OWN[template]) - {"mlfbuild.schema.json"}):
        golden((empty.root / "fw" / name).read_text(), name.replace("/", "_").lstrip("."))
    assert empty.run("-C", "fw", "check").status == 0


@pytest.mark.parametrize("template", TEMPLATES)
def test_the_same_request_gives_the_same_bytes(empty: Folder, template: str) -> None:
    for place in ("one", "two words"):
        assert empty.run("init", f"{place}/fw", "--template", template, "--model", "Kws Net-2.tflite").status == 0
    first, second = (
        {path.relative_to(root): path.read_bytes() for path in root.rglob("*") if path.is_file()}
        for root in (empty.root / "one", empty.root / "two words")
    )
    assert first == second
    assert len(first) > 8


def test_a_model_gets_a_name_for_c(empty: Folder) -> None:
    ended = empty.run("init", "fw", "--model", "Kws Net-2.tflite")
    assert "note: the model 'Kws Net-2' is named kws_net_2 in the project, as names become part of C\n" in ended.out
    assert "note: mlfbuild computed the expected outputs itself: `mlfbuild vectors " in ended.out
    assert (empty.root / "fw/models/kws_net_2.tflite").read_bytes() == tiny_network(5)
    model = yaml.safe_load((empty.root / "fw/mlfbuild.yml").read_text())["models"]["kws_net_2"]
    assert (model["source"], model["vectors"]) == ("models/kws_net_2.tflite", "tests/kws_net_2.npz")
    assert model["interface"] == {"inputs": ["t0"], "outputs": ["t3"]}


@pytest.mark.parametrize(
    ("names", "key"),
    [
        (("serving_default_keras_tensor_12:0", "StatefulPartitionedCall:0"), "{inputs: [input], outputs: [output]}"),
        (("on", "float"), '{inputs: ["on"], outputs: [float_]}'),
        (("9 lives", "y"), ""),
    ],
)
def test_the_interface_has_the_present_names(empty: Folder, names: tuple[str, str], key: str) -> None:
    network = Network()
    source = network.input((1, 8), scale=0.05)
    target = network.fully_connected(source, np.ones((4, 8), np.int8), None, weight_scales=[0.01], scale=0.1)
    for at, name in zip((source, target), names, strict=True):
        network.tensors[at].name = name
    empty.write("named.tflite", network.build([target]))
    assert empty.run("init", "fw", "--model", "named.tflite").status == 0
    lines = (empty.root / "fw/mlfbuild.yml").read_text().splitlines()
    found = [line.partition("#")[0].strip() for line in lines if "interface:" in line]
    assert found == ([f"interface: {key}"] if key else [])
    assert empty.run("-C", "fw", "check").status == 0


def test_vectors_are_copied_and_their_first_case_is_the_sample(empty: Folder) -> None:
    inputs = np.arange(16, dtype=np.int8).reshape(2, 1, 8)
    np.savez(empty.root / "v.npz", in0=inputs, out0=np.full((2, 1, 4), 3, np.int8))
    ended = empty.run("init", "fw", "--model", "Kws Net-2.tflite", "--vectors", "v.npz")
    assert "the expected outputs" not in ended.out
    assert (empty.root / "fw/tests/kws_net_2.npz").read_bytes() == (empty.root / "v.npz").read_bytes()
    sample = (empty.root / "fw/src/sample.h").read_text()
    assert "[8] = {\n    0, 1, 2, 3, 4, 5, 6, 7,\n};" in sample
    assert "[4] = {\n    3, 3, 3, 3,\n};" in sample


@pytest.mark.parametrize("template", TEMPLATES)
def test_model_in_the_project_folder_is_not_copied(empty: Folder, template: str) -> None:
    empty.write("fw/models/kws.tflite", tiny_network(2))
    (empty.root / "fw/tests").mkdir()
    np.savez(empty.root / "fw/tests/kws.npz", in0=np.zeros((1, 1, 8), np.int8), out0=np.zeros((1, 1, 4), np.int8))
    before = (empty.root / "fw/models/kws.tflite").stat().st_mtime_ns
    options = ["--model", "models/kws.tflite", "--vectors", "tests/kws.npz", "--template", template]
    ended = empty.run("-C", "fw", "init", *options, status=0)
    assert "kws.tflite" not in ended.out and "wrote tests" not in ended.out and "wrote mlfbuild.yml\n" in ended.out
    assert (empty.root / "fw/models/kws.tflite").stat().st_mtime_ns == before


def test_an_archive_is_named_after_its_module(empty: Folder) -> None:
    empty.write("Export 7.tar", pack_archive(native_library("tiny")))
    ended = empty.run("init", "fw", "--archive", "Export 7.tar", status=0)
    assert "is named" not in ended.out
    assert "note: outputs are not checked without vectors of tiny (--vectors); see README.md\n" in ended.out
    assert "verify" not in ended.out.partition("next, in fw:")[2]
    assert (empty.root / "fw/models/tiny.tar").read_bytes() == (empty.root / "Export 7.tar").read_bytes()
    assert "memcpy" not in (empty.root / "fw/src/main.c").read_text()


def test_a_new_folder(empty: Folder) -> None:
    ended = empty.run("init", "new/and deep/er", "-q")
    assert (ended.status, ended.out, ended.err) == (0, "", "")
    assert (empty.root / "new/and deep/er/mlfbuild.yml").is_file()


@pytest.mark.parametrize(
    ("place", "title"), [("My kws (2)", "My_kws_2"), ("7th", "firmware_7th"), ("größe", "gr_e"), ("@@", "firmware")]
)
def test_the_project_is_named_after_its_folder(empty: Folder, place: str, title: str) -> None:
    assert empty.run("init", place, "--template", "cmake").status == 0
    assert f"project({title} LANGUAGES C ASM)" in (empty.root / place / "CMakeLists.txt").read_text()
    assert (empty.root / place / "README.md").read_text().startswith(f"# {title}\n")


def test_json_lists_what_was_written(empty: Folder) -> None:
    ended = empty.run("init", "fw", "--template", "bare-metal", "--format", "json")
    assert set(ended.json) == {"written", "commands", "notes"}
    assert set(ended.json["written"]) == {name for name in empty.files() if name.startswith("fw/")}
    assert ended.json["commands"] == {
        "build": "make", "run": "make run", "verify": "mlfbuild verify --target qemu",
    }  # fmt: skip
    assert ended.json["notes"] == []


def test_verbose_lists_all_files(empty: Folder) -> None:
    short = empty.run("init", "a", "--template", "bare-metal").out
    assert "of the model as C (-v lists them)\n" in short and "a/mlf/mlf.mk" not in short
    assert "wrote b/mlf/mlf.mk\n" in empty.run("init", "b", "--template", "bare-metal", "-v").out


@pytest.mark.parametrize("board", BOARDS)
def test_every_board_has_its_core(empty: Folder, board: str) -> None:
    assert empty.run("init", "fw", "--board", board).status == 0
    cpu = BOARDS[board].cpu
    line = f"  {cpu.removeprefix('cortex-')}: {{cpu: {cpu}, board: {board}}} "
    assert line in (empty.root / "fw/mlfbuild.yml").read_text()
    assert empty.run("-C", "fw", "check").status == 0


def test_only_the_file_for_cmake(empty: Folder) -> None:
    ended = empty.run("init", "fw", "--cmake-only")
    path = empty.root / "fw/cmake/mlfbuild.cmake"
    assert (ended.status, ended.out.splitlines()[:3]) == (
        0,
        ["wrote fw/cmake/mlfbuild.cmake", "next, in CMakeLists.txt:", "  include(cmake/mlfbuild.cmake)"],
    )
    assert [name for name in empty.files() if name.startswith("fw/")] == ["fw/cmake/mlfbuild.cmake"]
    before = path.stat().st_mtime_ns
    assert empty.run("init", "fw", "--cmake-only", "--format", "json").json == {
        "written": [], "commands": {}, "notes": ["fw/cmake/mlfbuild.cmake is up to date"],
    }  # fmt: skip
    assert path.stat().st_mtime_ns == before
    path.write_text("mine\n")
    refused = empty.refused("init", "fw", "--cmake-only")
    assert refused == (6, "project-file-exists", "fw/cmake/mlfbuild.cmake")
    assert path.read_text() == "mine\n"


def test_files_of_another_version_are_reported_and_written_again(empty: Folder) -> None:
    empty.write("fw/mlfbuild.yml", PROJECT_WITH_SCHEMAS)
    empty.write("fw/net.tflite", tiny_network(1))
    empty.write("fw/schemas/own.json", "{}")
    schema = empty.run("schema").out
    old = {
        "cmake/mlfbuild.cmake": "# Written by `mlfbuild init`. Defines mlfbuild_models().\ninclude(mlfbuild)\n",
        "mlfbuild.schema.json": schema.replace('"mlfbuild"', '"mlfbild"', 1),
        "schemas/mlf.json": '{"title": "mlfbuild.yml"}',
        "site_scons/site_tools/mlf.py": '"""Of version 0.1."""\n\nfrom mlfbuild.scons import exists, generate\n',
    }
    for name, text in old.items():
        empty.write(f"fw/{name}", text)
    lines = [
        f"fw/{name}: another version of mlfbuild wrote this file; run `mlfbuild init --update fw`"
        for name in sorted(old)
    ]
    checked = empty.run("-f", "fw/mlfbuild.yml", "check", "--format", "json")
    assert (checked.status, sorted(checked.json["warnings"])) == (0, lines)
    assert sorted(empty.run("-f", "fw/mlfbuild.yml", "doctor", "--format", "json").json["outdated"]) == lines
    assert sorted(empty.run("init", "--update", "fw").out.splitlines()) == [f"wrote fw/{name}" for name in sorted(old)]
    assert (empty.root / "fw/schemas/mlf.json").read_text() == schema
    assert (empty.root / "fw/mlfbuild.schema.json").read_text() == schema
    for template in ("scons", "cmake"):
        empty.run("init", template, "--template", template)
    for name, template in (("site_scons/site_tools/mlf.py", "scons"), ("cmake/mlfbuild.cmake", "cmake")):
        assert (empty.root / "fw" / name).read_text() == (empty.root / template / name).read_text()
    assert "another version" not in empty.run("-C", "fw", "check").err
    assert empty.run("init", "--update", "fw", "--format", "json").json["written"] == []


def test_files_of_the_user_are_not_those_of_another_version(empty: Folder) -> None:
    empty.write("mlfbuild.schema.json", '{"title": "mine"}')
    empty.write("cmake/mlfbuild.cmake", "include(mine.cmake)\n")
    empty.write(
        "site_scons/site_tools/mlf.py",
        "try:\n  from mlfbuild.scons import generate\nexcept ModuleNotFoundError: raise\n",
    )
    before = empty.files()
    assert empty.run("init", "--update").out.startswith("note: no file is of another version")
    assert empty.files() == before


# Errors -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("there", ["README.md", "src/main.c", "mlf/mlf.mk", "models/tones.tflite"])
def test_nothing_is_overwritten(empty: Folder, there: str) -> None:
    empty.write(f"fw/{there}", "mine\n")
    before = empty.files()
    assert empty.refused("init", "fw", "--template", "bare-metal") == (6, "project-file-exists", f"fw/{there}")
    assert empty.files() == before
    assert (empty.root / "fw" / there).read_text() == "mine\n"


def test_other_files_are_kept(empty: Folder) -> None:
    empty.write("fw/src/driver.c", "mine\n")
    empty.write("fw/.git/HEAD", "ref\n")
    assert empty.run("init", "fw").status == 0
    assert (empty.root / "fw/src/driver.c").read_text() == "mine\n"
    assert empty.run("init", "fw").status == 6


@pytest.mark.parametrize("place", ["file", "file/fw"])
def test_file_in_place_of_the_folder_is_refused(empty: Folder, place: str) -> None:
    empty.write("file", "mine\n")
    status, code, refused = empty.refused("init", place)
    assert (status, code, Path(refused).name) == (6, "folder-is-a-file", "file")
    empty.write("fw/src", "mine\n")
    assert empty.refused("init", "fw") == (6, "project-file-exists", "fw/src")


def unsupported() -> bytes:
    """Return a network with an operator that mlfbuild does not support."""
    network = Network()
    source = network.input((1, 4))
    return network.build([network.operator("UNIQUE", [source], network.activation((1, 4)))])


@pytest.mark.parametrize(
    ("arguments", "refused"),
    [
        ("--template cmak", (2, "unknown-template", "--template cmak")),
        ("--template ninja", (2, "unknown-template", "--template ninja")),
        ("--board mps2-an368", (2, "unknown-board", "--board mps2-an368")),
        ("--model missing.tflite", (5, "no-such-input", "missing.tflite")),
        ("--model fw", (5, "input-is-folder", "fw")),
        ("--model half.tflite", (5, "tflite-malformed", "half.tflite: operators")),
        ("--archive net.tflite", (5, "model-not-archive", "net.tflite")),
        ("--model odd.tflite", (4, "operator-unsupported", "odd.tflite: operator 0 (UNIQUE) writing 't1'")),
        ("--model big.tflite", (4, "board-too-small", "big.tflite")),
        ("--model net.tflite --archive net.tar", (2, "options-exclude-each-other", "--model and --archive")),
        ("--cmake-only --board mps2-an386", (2, "options-exclude-each-other", "--cmake-only and --board")),
        ("--update --cmake-only", (2, "options-exclude-each-other", "--cmake-only and --update")),
        ("--update --model a.tflite", (2, "options-exclude-each-other", "--update and --model")),
        ("--cmake-only --template cmake", (2, "options-exclude-each-other", "--cmake-only and --template")),
        ("--vectors v.npz", (2, "option-needs-another", "--vectors v.npz")),
        ("--model net.tflite --vectors v.npz", (5, "array-missing", "v.npz")),
        ("--model net.tflite --vectors no.npz", (5, "no-such-input", "no.npz")),
    ],
)
def test_mistakes_write_nothing(empty: Folder, arguments: str, refused: tuple[int, str, str]) -> None:
    empty.write("net.tflite", tiny_network(1))
    empty.write("half.tflite", tiny_network(1)[:100])
    empty.write("odd.tflite", unsupported())
    empty.write("big.tflite", large_network())
    np.savez(empty.root / "v.npz", x=np.zeros(1))
    before = empty.files()
    assert empty.refused("init", "fw", *arguments.split()) == refused
    assert empty.files() == before
    assert list((empty.root / "fw").iterdir()) == []


@pytest.mark.parametrize("template", ["scons", "cmake"])
def test_archive_with_a_requirement(shared: Path, empty: Folder, template: str) -> None:
    archive = shared / "archives/kws_int8-cmsisnn_m4.tar"
    ended = empty.run("init", "fw", "--template", template, "--archive", str(archive))
    assert (ended.status, ended.err) == (0, "")
    assert "  mlfbuild lock" in ended.out.partition("next, in fw:\n")[2].splitlines()[0]
    assert (
        "# get the libraries that the network's code requires, then commit mlfbuild.lock\n"
        in (empty.root / "fw/README.md").read_text()
    )
    assert (
        "\ndependencies:\n"
        "  cmsis-nn: {git: https://github.com/ARM-software/CMSIS-NN, version: v4.1.0}   # `mlfbuild lock` gets it\n"
    ) in (empty.root / "fw/mlfbuild.yml").read_text()
    assert empty.run("-C", "fw", "check").status == 0


def test_requirement_of_a_committed_tree_is_refused(shared: Path, empty: Folder) -> None:
    archive = shared / "archives/kws_int8-cmsisnn_m4.tar"
    arguments = ("init", "fw", "--template", "bare-metal", "--archive", str(archive))
    assert empty.refused(*arguments) == (4, "template-without-dependencies", str(archive))
    assert list((empty.root / "fw").iterdir()) == []


NN = ExternalDependency("cmsis-nn", "https://github.com/ARM-software/CMSIS-NN", "git", "v4.1.0")
NPU = ExternalDependency("npu", "https://example.org/npu.tar.gz", "url", "1.2")
LISTS = "sources: [src/*.c], include-dirs: [include]"
STATED = f"cmsis-nn: {{git: {NN.url}, version: VERSION}}"


@pytest.mark.parametrize(
    ("needs", "line"),
    [
        ([replace(NN, version_spec="")], STATED),
        ([replace(NN, version_spec=">=4,<5")], STATED),
        ([NN, replace(NN, version_spec="v7.0.0")], STATED.replace("VERSION", "v7.0.0")),
        ([NPU], f'npu: {{url: {NPU.url}, sha256: HASH, version: "1.2", {LISTS}}}'),
        ([replace(NPU, url="../npu", url_type="git")], f'npu: {{git: "../npu", version: "1.2", {LISTS}}}'),
        ([replace(NPU, url="https://example.org/npu", url_type="git", version_spec="v1")],
         f"npu: {{git: https://example.org/npu, version: v1, {LISTS}}}"),
    ],
)  # fmt: skip
def test_unknown_requirement_is_left_to_the_user(empty: Folder, needs: list[ExternalDependency], line: str) -> None:
    empty.write("a.tar", changed(external_dependencies=tuple(needs)))
    arguments = ("init", "fw", "--archive", "a.tar")
    assert empty.refused(*arguments) == (4, "init-library-unknown", "a.tar: module tiny")
    assert f"`{line}`" in empty.run(*arguments).err
    assert list((empty.root / "fw").iterdir()) == []


def test_requirement_stated_only_in_the_metadata(empty: Folder) -> None:
    npu = ExternalDependency("npu", "https://example.org/npu", "git", "v1.2")
    empty.write("a.tar", with_code('#include "vendor/npu.h"\n', external_dependencies=(npu,)))
    arguments = ("init", "fw", "--archive", "a.tar")
    assert empty.refused(*arguments) == (4, "init-library-unknown", "a.tar: module tiny")


@pytest.mark.parametrize("name", ["conv-llvm_graph_m4", "operator-add"])
def test_archives_of_objects_and_operators(shared: Path, empty: Folder, name: str) -> None:
    ended = empty.run("init", "fw", "--archive", str(shared / f"archives/{name}.tar"))
    assert (ended.status, ended.err) == (0, "")


def changed(**fields: object) -> bytes:
    """Return an archive with the C interface, like one from TVM, whose module has these fields."""
    library = native_library("tiny")
    (module,) = library.modules
    return pack_archive(replace(library, modules=(replace(module, model_id="", **fields),)))


def test_archive_for_another_core_is_refused(empty: Folder) -> None:
    empty.write("m55.tar", changed(targets=(ModuleTarget("c -keys=arm_cpu,cpu -mcpu=cortex-m55"),)))
    assert empty.run("init", "fw", "--archive", "m55.tar", "--board", "mps3-an547").status == 0
    arguments = ("init", "other", "--archive", "m55.tar")
    assert empty.refused(*arguments) == (2, "module-for-another-cpu", "m55: m55.tar: module tiny")
    assert not (empty.root / "other").exists()


def with_code(text: str, **fields: object) -> bytes:
    (module,) = native_library("tiny").modules
    source = next(file for file in module.codegen if file.path.suffix == ".c")
    others = tuple(file for file in module.codegen if file is not source)
    return changed(codegen=(*others, replace(source, content=source.data + text.encode())), **fields)


@pytest.mark.parametrize(
    ("code", "refused"),
    [
        ("void *f(void) { return TVMFuncCall(0, 0, 0, 0, 0, 0); }", (1, "runtime-function-not-defined", "tiny")),
        ('#include "vendor/npu.h"\n', (4, "header-missing", "a.tar: module tiny")),
    ],
)
def test_archive_with_missing_code_is_refused(empty: Folder, code: str, refused: tuple[int, str, str]) -> None:
    empty.write("a.tar", with_code(code))
    assert empty.refused("init", "fw", "--archive", "a.tar") == refused


@pytest.mark.parametrize(("memory", "code"), [(POOLS, "constant-pool-required"), (WORKSPACE_IO, "ports-in-pools")])
def test_unsupported_memory_pools_are_refused(empty: Folder, memory: str, code: str) -> None:
    empty.write("net.tar", aot_archive(memory))
    assert empty.refused("init", "other", "--archive", "net.tar") == (4, code, "net.tar: module net")
    assert not (empty.root / "other").exists()


def test_inputs_in_the_workspace_are_refused(empty: Folder) -> None:
    assert empty.run("compile", "Kws Net-2.tflite", "--cpu", "host", "-O", "io=arena", "-o", "net.tar").status == 0
    assert empty.refused("init", "other", "--archive", "net.tar")[:2] == (4, "ports-in-pools")


def test_module_with_a_name_that_is_invalid_in_c(empty: Folder) -> None:
    empty.write("a.tar", pack_archive(native_library("Tiny")))
    ended = empty.run("init", "fw", "--archive", "a.tar")
    assert "note: the module 'Tiny' is named tiny in the project, as names become part of C\n" in ended.out
    assert (empty.root / "fw/models/tiny.tar").is_file()
    empty.write("b.tar", changed(name="x-y"))
    assert empty.refused("init", "other", "--archive", "b.tar") == (5, "module-name-not-buildable", "'x-y'")


def large_network() -> bytes:
    """Return a network with few weights whose activations are larger than the RAM of every board."""
    network = Network()
    source = network.input((1, 1026, 1024, 1), scale=0.1)
    weights = np.ones((4, 1, 1, 1), np.int8)
    wide = network.conv2d(source, weights, weight_scales=[0.1] * 4, scale=0.1)
    return network.build([network.mean(wide, (1, 2), scale=0.1)])


def test_a_misspelt_option(empty: Folder) -> None:
    ended = empty.run("init", "fw", "--modle", "x.tflite", status=2)
    assert "No such option '--modle'. Did you mean '--model'?" in ended.err


def test_full_disk_leaves_no_files(empty: Folder) -> None:
    def limit_files() -> None:
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (2048, 2048))

    for place in ("fw", "new"):
        ended = empty.spawn("init", place, "--template", "bare-metal", prepare=limit_files)
        assert ended.status == 8, ended.err
        assert_printed(ended.err, "system-error", "", "File too large")
        assert ended.err.count("\n") == 1
    assert empty.files() == {"Kws Net-2.tflite"}
    assert not (empty.root / "new").exists()


def test_read_only_folder_is_reported(empty: Folder) -> None:
    ended = empty.run("init", "/proc/fw", status=8)
    assert ended.err.startswith("mlfbuild: /proc: cannot write: ")


def test_interrupt_leaves_no_files(empty: Folder) -> None:
    """The model comes through a pipe, so that the interrupt arrives while the command runs."""
    os.mkfifo(empty.root / "slow.tflite")
    command = [sys.executable, "-m", "mlfbuild", "init", "fw", "--model", "slow.tflite"]
    process = subprocess.Popen(command, cwd=empty.root, stderr=subprocess.PIPE, text=True, start_new_session=True)
    with Path(empty.root / "slow.tflite").open("wb") as pipe:  # opens when the command reads
        pipe.write(b"TFL3")
        pipe.flush()
        time.sleep(0.1)
        os.killpg(process.pid, signal.SIGINT)
        _, error = process.communicate(timeout=60)
    assert process.returncode == 130
    assert "Traceback" not in error
    assert list((empty.root / "fw").iterdir()) == []


def test_editors_find_the_schema_beside_the_project_file(empty: Folder) -> None:
    assert empty.run("init", "fw").status == 0
    project = (empty.root / "fw/mlfbuild.yml").read_text()
    found = re.fullmatch(r"# yaml-language-server: \$schema=(\S+)", project.splitlines()[0])
    assert found
    schema = (empty.root / "fw" / found[1]).read_text()
    assert schema == empty.run("schema").out, "`mlfbuild schema >mlfbuild.schema.json` brings it up to date"
    validator(json.loads(schema)).validate(yaml.safe_load(project))
