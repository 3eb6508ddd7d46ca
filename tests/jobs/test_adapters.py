"""``mlfbuild build --tree --for``: the files that make a folder of trees a package, and rejected arguments."""

import json
import os
import re
import subprocess
from collections.abc import Callable
from pathlib import Path, PurePosixPath

import pytest
import yaml

from mlfbuild.archive import open_archive, read_archive
from mlfbuild.core.errors import InputFileError, UnsupportedModelError, UsageError
from mlfbuild.jobs.tree import (
    ADAPTERS,
    TreeSettings,
    check_target_tree,
    target_files,
    tree_damage,
    unpack,
    write_target_tree,
)
from mlfbuild.jobs.tree.adapters import (
    ModelFiles,
    Package,
    adapter,
    adapter_files,
    adapter_folders,
    adapter_paths,
    model_files,
)
from mlfbuild.jobs.tree.adapters.interface import ModuleInterface, ModulePort, interfaces
from mlfbuild.jobs.tree.adapters.package import HeaderFile
from mlfbuild.jobs.tree.parts import parts_of
from mlfbuild.library import CodegenFile, Library, TensorInfo, with_files
from mlfbuild.targets import CPUS
from support.aot_archives import POOLS, aot_archive
from support.command import Folder
from support.errors import raises
from support.libraries import graph_library, native_library

M4 = CPUS["cortex-m4"]
SYSTEMS = ADAPTERS


def port(name: str, dtype: str, shape: tuple[int, ...] | None, size: int, *quantization: float) -> ModulePort:
    return ModulePort(name, TensorInfo(name, dtype, size, shape, *quantization))


EVERYTHING = Package(
    "cortex-m4",
    (
        ModelFiles(
            "kws",
            ("kws/codegen/host/src/kws_lib0.c",),
            ("kws/codegen/host/include",),
            (),
            (),
            options=("-O2", "-fno-lto"),
            headers=(HeaderFile("tvmgen_kws.h", "kws/codegen/host/include/tvmgen_kws.h", "aa"),),
            interfaces=(
                ModuleInterface(
                    "kws",
                    "mlf_kws_run",
                    (port("type", "int8", (1, 4), 4, 0.1, -3), port("Type", "float16", (2,), 4)),
                    (port("self", "bool", (2,), 2), port("scores", "float32", None, 12)),
                    reentrant=True,
                    reset="mlf_kws_reset",
                    workspace=(480, 16),
                    state=(32, 8),
                ),
            ),
        ),
        ModelFiles(
            "graph_2",
            ("graph_2/codegen/host/src/lib0.c", "graph_2/codegen/host/src/more.cc", "graph_2/blobs/graph_2_blobs.c"),
            ("graph_2/blobs",),
            (),
            ("graph_2/runtime/include",),
            options=("-O2", "-fno-lto"),
            headers=(HeaderFile("tvm/runtime.h", "graph_2/runtime/include/tvm/runtime.h", "bb"),),
            interfaces=(
                ModuleInterface(
                    "one", "tvmgen_one_run", (port("x", "float64", (), 8),), (port("y", "int64", (1, 2), 16),)
                ),
                ModuleInterface("two", "tvmgen_Two_run", (port("x", "uint8", (3,), 3),), (port("y", "int4", (3,), 2),)),
            ),
        ),
    ),
    version="1.4.0",
)
OBJECTS = Package("cortex-m4", (ModelFiles("pre", (), ("pre/include",), ("pre/codegen/host/lib/pre.o",), ()),))
SPACE = Package("cortex-m4", (ModelFiles("kws", ("kws/codegen/host/src/my lib.c",), (), (), ()),))
CLASH = Package(
    "cortex-m4",
    tuple(
        ModelFiles(
            name, (), (f"{name}/include",), (), (), headers=(HeaderFile("same.h", f"{name}/include/same.h", name),)
        )
        for name in ("a", "b")
    ),
)
LEVELS = Package(
    "cortex-m4",
    (ModelFiles("kws", ("a.c",), (), (), (), options=("-Os", "-fno-lto")), ModelFiles("vww", ("b.c",), (), (), ())),
)
PACKAGES = {
    "everything": EVERYTHING, "none": Package("cortex-m4", ()), "objects": OBJECTS, "space": SPACE, "clash": CLASH,
    "levels": LEVELS,
}  # fmt: skip


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Folder:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(os, "cpu_count", lambda: 1)
    return Folder(tmp_path, capsys)


# What adapters write -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("system", SYSTEMS)
def test_the_files(system: str, golden: Callable[[str, str], None]) -> None:
    texts = [f"==== {path}\n{text.decode()}" for path, text in adapter_files([system], EVERYTHING).items()]
    golden("\n".join(texts), "files.txt")


@pytest.mark.parametrize("system", ["zephyr", "esp-idf"])
def test_compiled_objects(system: str, golden: Callable[[str, str], None]) -> None:
    golden(next(text.decode() for path, text in adapter_files([system], OBJECTS).items() if "CMake" in path), "cmake")


def test_all_systems_write_different_files() -> None:
    fragments = ["mlf.cmake", "mlf.mk", "SConscript", "RECORD.json"]
    paths = [path for system in SYSTEMS for path in adapter_paths([system])] + fragments
    assert len({path.casefold() for path in paths}) == len(paths) == 4 + (3 + 4 + 2 + 1) + (1 + 1 + 5 + 3)


@pytest.mark.parametrize("package", ["everything", "none"])
@pytest.mark.parametrize("system", SYSTEMS)
def test_the_paths_depend_on_the_models_only_in_one_folder(system: str, package: str) -> None:
    folders = adapter_folders([system])
    paths = [path for path in adapter_files([system], PACKAGES[package]) if path not in adapter_paths([system])]
    assert {path.partition("/")[0] for path in paths} == (set(folders) if package == "everything" else set())
    assert set(folders) <= set(adapter(system).RESERVED)


@pytest.mark.parametrize(
    ("system", "package", "code", "place"),
    [
        ("platformio", "objects", "objects-in-platformio-library", "model 'pre': pre/codegen/host/lib/pre.o"),
        ("platformio", "space", "space-in-platformio-path", "model 'kws': kws/codegen/host/src/my lib.c"),
        ("platformio", "levels", "platformio-needs-same-level", "models kws, vww"),
        ("arduino", "objects", "objects-in-package", "model 'pre': pre/codegen/host/lib/pre.o"),
        ("nuttx", "objects", "objects-in-package", "model 'pre': pre/codegen/host/lib/pre.o"),
        ("nuttx", "space", "space-in-package-path", "model 'kws': kws/codegen/host/src/my lib.c"),
        ("arduino", "clash", "header-clash-in-arduino-library", "model 'b': b/include/same.h"),
    ],
)
def test_files_that_a_package_cannot_contain_are_rejected(system: str, package: str, code: str, place: str) -> None:
    with raises(UnsupportedModelError, code, at=place):
        adapter_files([system], PACKAGES[package])


def test_rust_crate_contains_compiled_objects() -> None:
    assert 'objects: &["pre/codegen/host/lib/pre.o"]' in adapter_files(["rust"], OBJECTS)["rust/build.rs"].decode()


def test_bindings_of_every_interface_compile(tmp_path: Path, tool: Callable[[str], str]) -> None:
    (tmp_path / "lib.rs").write_bytes(adapter_files(["rust"], EVERYTHING)["rust/lib.rs"])
    features = [word for name in ("kws", "graph_2") for word in ("--cfg", f'feature="{name}"')]
    known = ["--check-cfg", 'cfg(feature, values("kws", "graph_2"))']
    words = ["--crate-type", "lib", "--edition", "2021", "--emit", "metadata", "-D", "warnings", *features]
    version = subprocess.run([tool("rustc"), "--version"], capture_output=True, text=True, check=True).stdout.split()
    modern = tuple(map(int, version[1].split("-")[0].split(".")[:2])) >= (1, 80)  # Debian 12 has 1.63
    command = ["rustc", "lib.rs", *words, *(known if modern else [])]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


# Arduino's specification ---------------------------------------------------------------------------------------------

CATEGORIES = {
    "Display", "Communication", "Signal Input/Output", "Sensors", "Device Control", "Timing", "Data Storage",
    "Data Processing", "Other",
}  # fmt: skip
REQUIRED = {
    "name", "version", "author", "maintainer", "sentence", "paragraph", "category", "url", "architectures",
}  # fmt: skip
OPTIONAL = {"depends", "dot_a_linkage", "includes", "precompiled", "ldflags"}


@pytest.mark.parametrize("package", ["everything", "none"])
def test_library_properties_follow_the_specification_of_arduino(package: str) -> None:
    """Check the rules of https://docs.arduino.cc/arduino-cli/library-specification/, revision 2.2."""
    files = adapter_files(["arduino"], PACKAGES[package])
    lines = [line for line in files["library.properties"].decode().splitlines() if not line.startswith("#")]
    fields = dict(line.split("=", 1) for line in lines)
    assert len(fields) == len(lines)
    assert REQUIRED <= fields.keys() <= REQUIRED | OPTIONAL and all(value.strip() for value in fields.values())
    assert re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9 _.-]*", fields["name"]) and not fields["name"].startswith("Arduino")
    assert re.fullmatch(r"[0-9]+\.[0-9]+\.[0-9]+([-+][0-9A-Za-z.+-]+)?", fields["version"])
    assert fields["category"] in CATEGORIES
    assert re.fullmatch(r"https?://\S+", fields["url"])
    assert fields["architectures"] == "*" and fields["dot_a_linkage"] == "true"
    assert not fields["paragraph"].startswith(fields["sentence"])
    includes = fields["includes"].split(",") if "includes" in fields else []
    assert includes == (["tvmgen_kws.h"] if package == "everything" else [])
    assert all(f"src/{name}" in files for name in includes)
    compiled = {Path(path).suffix for path in files if path.startswith("src/")} - {".h"}
    assert compiled == ({".c", ".cpp"} if package == "everything" else set())


# What they are made from ---------------------------------------------------------------------------------------------


def assert_as_parts_say(library: Library, folder: Path) -> ModelFiles:
    """Unpack ``library`` and compare the files in its record with those of its modules."""
    unpack(library, folder / "net", archive_id="ab", settings=TreeSettings(model="net"))
    parts = parts_of(library, "net").modules

    def below(*paths: str) -> list[str]:
        return [f"net/{path}" for path in paths]

    found = model_files(folder, "net")
    blobs = [blob for part in parts for blob in part.blobs]
    assert sorted(found.sources) == sorted(
        below(*(path for part in parts for path in part.sources), *(blob.array for blob in blobs))
    )
    assert sorted(found.objects) == sorted(below(*(path for part in parts for path in part.objects)))
    folders = {path for part in parts for path in part.include_dirs} | {blob.include_dir for blob in blobs}
    assert sorted(found.include_dirs) == sorted(below(*folders))
    private = {path for part in parts for path in part.private_include_dirs}
    assert sorted(found.private_include_dirs) == sorted(below(*private))
    assert set(found.options) == {option for part in parts for option in part.options}
    return found


@pytest.mark.parametrize(
    "library", [native_library("net"), native_library("one", "two"), graph_library()], ids=["one", "two", "graph"]
)
def test_record_lists_the_files_of_the_modules(library: Library, tmp_path: Path) -> None:
    assert assert_as_parts_say(library, tmp_path).sources


def test_other_suffixes_and_folders(tmp_path: Path) -> None:
    (module,) = native_library("net").modules
    paths = ["host/src/more.cc", "host/src/more.cpp", "host/src/table.inc", "host/lib/pre.o", "acc/include/acc.h"]
    more = tuple(CodegenFile(PurePosixPath(path), b"/* */\n") for path in paths)
    found = assert_as_parts_say(Library((with_files(module, (*module.codegen, *more)),)), tmp_path)
    assert found.objects == ("net/codegen/host/lib/pre.o",)
    assert found.include_dirs == ("net/codegen/host/include",), "headers of another device are not the host's"
    assert [PurePosixPath(path).name for path in found.sources] == ["more.cc", "more.cpp", "net_lib0.c"]


@pytest.mark.parametrize("name", ["kws_int8-graph", "conv-llvm_graph_m4", "many-aotc", "kws_int8-cmsisnn_m4"])
def test_archives_of_tvm_have_the_files_of_their_modules(name: str, shared: Path, tmp_path: Path) -> None:
    assert_as_parts_say(open_archive(shared / "archives" / f"{name}.tar"), tmp_path)


@pytest.mark.parametrize("record", [None, b"{", b'{"mlfbuild_record": 1, "complete": false, "files": {}}'])
def test_tree_without_complete_record_is_rejected(record: bytes | None, tmp_path: Path) -> None:
    (tmp_path / "kws").mkdir()
    if record is not None:
        (tmp_path / "kws/RECORD.json").write_bytes(record)
    with raises(InputFileError, "record-damaged", at=f"{tmp_path}/kws/RECORD.json"):
        write_target_tree(tmp_path, ["kws"], None, M4, ["zephyr"])
    assert not (tmp_path / "mlf.cmake").exists()


@pytest.mark.parametrize(
    ("system", "model"),
    [
        ("zephyr", "zephyr"), ("rt-thread", "kconfig"), ("arduino", "src"), ("nuttx", "nuttx"), ("rust", "rust"),
        ("rust", "default"),
    ],
)  # fmt: skip
def test_reserved_model_names_are_rejected(system: str, model: str, tmp_path: Path) -> None:
    with raises(UsageError, "reserved-model-name", at=f"model {model!r}"):
        check_target_tree(tmp_path, ["kws", model], [system], {})
    others = [name for name in SYSTEMS if name != system]
    check_target_tree(tmp_path, ["kws", model], others, target_files(["kws", model], None, M4, others))


# The command ---------------------------------------------------------------------------------------------------------

ALL = [word for system in SYSTEMS for word in ("--for", system)]
OWN = set(adapter_paths(SYSTEMS))


def test_one_folder_for_all_systems_is_written_once(folder: Folder) -> None:
    ended = folder.run("build", "--tree", "tree", *ALL)
    assert (ended.status, ended.out.splitlines()[2:]) == (
        0,
        ["tree: package for zephyr, rt-thread, esp-idf, platformio, arduino, cmsis-toolbox, nuttx, rust"],
    )
    assert {path for path in OWN if (folder.root / "tree" / path).is_file()} == OWN
    assert tree_damage(folder.root / "tree") == []
    before = times(folder)
    again = [word for system in reversed(SYSTEMS) for word in ("--for", system, "--for", system)]
    assert folder.run("build", "--tree", "tree", *again).status == 0
    assert times(folder) == before


def times(folder: Folder) -> dict[Path, int]:
    """Return the times of files and folders, without the build folder, from which filelock removes its file."""
    return {path: path.stat().st_mtime_ns for path in folder.root.rglob("*") if path != folder.root / "build"}


def test_folder_is_a_package_of_the_last_requested_systems(folder: Folder) -> None:
    folder.run("build", "--tree", "tree", *ALL)
    plain = "for model in MODELS:\n        result +="
    assert plain not in (folder.root / "tree/SConscript").read_text()
    assert folder.run("build", "--tree", "tree", "--for", "esp-idf").status == 0
    left = {path for path in OWN if (folder.root / "tree" / path).exists()}
    assert left == {"CMakeLists.txt", "idf_component.yml"} and not (folder.root / "tree/zephyr").exists()
    assert plain in (folder.root / "tree/SConscript").read_text()
    assert folder.run("build", "--tree", "tree").status == 0
    assert not any((folder.root / "tree" / path).exists() for path in OWN)


def test_removed_model_is_removed_from_the_package(folder: Folder) -> None:
    folder.run("build", "--tree", "tree", *ALL)
    text = (folder.root / "mlfbuild.yml").read_text()
    folder.write("mlfbuild.yml", text.replace("  beta: {source: models/beta.tflite}\n", "").replace(", beta]", "]"))
    assert folder.run("build", "--tree", "tree", *ALL).status == 0
    for path in OWN:
        written = (folder.root / "tree" / path).read_text()
        assert "beta" not in written.lower(), path
    assert "alpha" in (folder.root / "tree/zephyr/CMakeLists.txt").read_text()


def test_the_order_of_models_is_always_the_same(folder: Folder) -> None:
    folder.run("build", "--tree", "tree", *ALL)
    before = {path: (folder.root / "tree" / path).read_bytes() for path in OWN}
    assert folder.run("build", "--tree", "tree", *ALL, "--model", "beta").status == 0
    assert {path: (folder.root / "tree" / path).read_bytes() for path in OWN} == before


def test_edited_file_is_restored(folder: Folder) -> None:
    folder.run("build", "--tree", "tree", "--for", "zephyr")
    folder.write("tree/zephyr/Kconfig", "mine\n")
    assert folder.run("build", "--tree", "tree", "--for", "zephyr").status == 0
    assert tree_damage(folder.root / "tree") == []


@pytest.mark.parametrize(
    ("system", "path"),
    [
        ("zephyr", "zephyr/module.yml"), ("rt-thread", "README.md"), ("esp-idf", "CMakeLists.txt"),
        ("platformio", "library.json"), ("arduino", "library.properties"), ("cmsis-toolbox", "mlf_models.clayer.yml"),
        ("nuttx", "nuttx/Makefile"), ("rust", "Cargo.toml"),
    ],
)  # fmt: skip
@pytest.mark.parametrize("content", ["mine\n", ""])
def test_conflicting_files_are_rejected_before_writing(folder: Folder, system: str, path: str, content: str) -> None:
    folder.write(f"tree/{path}", content)
    before = folder.files()
    ended = folder.run("build", "--tree", "tree", "--for", system, "--format", "json")
    assert (ended.status, ended.out) == (6, "")
    assert (ended.error["code"], ended.error["place"]) == ("foreign-files-in-tree", "tree")
    assert path in ended.error["reason"]
    assert folder.files() == before


@pytest.mark.parametrize(
    ("arguments", "code", "place"),
    [
        (["--for", "zephyr"], "option-needs-another", "--for zephyr"),
        (["--tree", "t", "--for", "zephir"], "unknown-build-system", "--for"),
        (["--tree", "t", "--for", "keil"], "unknown-build-system", "--for"),
        (["--tree", "t", "--for", ""], "unknown-build-system", "--for"),
    ],
)
def test_unknown_systems_are_rejected(folder: Folder, arguments: list[str], code: str, place: str) -> None:
    before = folder.files()
    assert folder.refused("build", *arguments) == (2, code, place)
    assert folder.files() == before


def test_model_with_a_reserved_name_is_rejected(folder: Folder) -> None:
    text = (folder.root / "mlfbuild.yml").read_text()
    folder.write("mlfbuild.yml", text.replace("  beta:", "  zephyr:").replace(", beta]", "]"))
    before = folder.files()
    refused = folder.refused("build", "--tree", "tree", "--for", "zephyr")
    assert refused == (2, "reserved-model-name", "model 'zephyr'")
    assert folder.files() == before
    assert folder.run("build", "--tree", "tree", "--for", "esp-idf").status == 0


def test_manifests_match_their_formats(folder: Folder) -> None:
    folder.run("build", "--tree", "tree", *ALL)
    library = json.loads((folder.root / "tree/library.json").read_text())
    assert {"name", "version", "description"} <= library.keys()
    first, *sources = library["build"]["srcFilter"]
    assert first == "-<*>" and len(sources) == 2
    assert all((folder.root / "tree" / entry[2:-1]).is_file() for entry in sources)
    *folders, level, lto = library["build"]["flags"]
    assert (level, lto) == ("-O2", "-fno-lto")
    assert all((folder.root / "tree" / flag.removeprefix("-I")).is_dir() for flag in folders)
    package = json.loads((folder.root / "tree/package.json").read_text())
    assert package["enable"] in (folder.root / "tree/Kconfig").read_text()


def test_packages_have_the_version_of_the_project(folder: Folder) -> None:
    folder.run("build", "--tree", "tree", *ALL)
    assert json.loads((folder.root / "tree/library.json").read_text())["version"] == "0.0.0"
    text = (folder.root / "mlfbuild.yml").read_text()
    folder.write("mlfbuild.yml", text.replace("mlfbuild: 1\n", "mlfbuild: 1\nversion: 1.4.0-rc.1\n"))
    assert folder.run("build", "--tree", "tree", *ALL).status == 0
    assert json.loads((folder.root / "tree/library.json").read_text())["version"] == "1.4.0-rc.1"
    manifest = yaml.safe_load((folder.root / "tree/idf_component.yml").read_text())
    assert manifest["version"] == "1.4.0-rc.1"


@pytest.mark.parametrize(("system", "path"), [("arduino", "src/tvmgen_alpha.h"), ("nuttx", "nuttx/mine.c")])
def test_files_of_the_user_in_the_folder_of_a_package_are_kept(folder: Folder, system: str, path: str) -> None:
    folder.write(f"tree/{path}", "mine\n")
    folder.run("build", "--tree", "tree", "--for", system, status=6 if system == "arduino" else 0)
    assert (folder.root / "tree" / path).read_text() == "mine\n"


def test_interface_that_rust_cannot_call_is_rejected(tmp_path: Path) -> None:
    unpack(read_archive(aot_archive(POOLS), "net.tar"), tmp_path / "net", archive_id="a")
    with raises(UnsupportedModelError, "interface-not-plain"):
        interfaces(tmp_path, "net")


@pytest.mark.parametrize(
    ("name", "functions"),
    [
        ("kws_int8-graph", ["tvmgen_kws_int8_run"]),
        ("many-aotc", ["tvmgen_many_run"]),
        ("multi-aotc", ["tvmgen_mod1_run", "tvmgen_mod2_run"]),
    ],
)
def test_interfaces_of_archives_of_tvm(name: str, functions: list[str], shared: Path, tmp_path: Path) -> None:
    unpack(open_archive(shared / "archives" / f"{name}.tar"), tmp_path / "net", archive_id="a")
    found = interfaces(tmp_path, "net")
    assert [one.function for one in found] == functions
    assert not any(one.reentrant for one in found)
    assert all(port.elements > 0 for one in found for port in one.outputs)


def test_documentation_names_every_system_file_and_switch() -> None:
    page = (Path(__file__).parents[2] / "docs/packages.md").read_text()
    for system in SYSTEMS:
        (row,) = [line for line in page.splitlines() if line.startswith(f"| [`{system}`]")]
        assert [path for path in adapter_paths([system]) if f"`{path}`" not in row] == []
        text = "".join(content.decode() for content in adapter_files([system], EVERYTHING).values())
        switches = re.findall(r"^(?:menu)?config (\w*(?:KWS|PKG)\w*)", text, re.MULTILINE)
        assert all(f"`{folder}/`" in row for folder in adapter_folders([system]) if folder == "src")
        assert [name for name in switches if f"{name}`" not in row] == []
