import os
import pickle
import subprocess
import sys
from decimal import Decimal
from pathlib import Path

import pytest

from mlfbuild.compilers import COMPILERS
from mlfbuild.core import Diagnostic, Mistake, ProjectFileError
from mlfbuild.library import CompilerProgram
from mlfbuild.library.keys import InterfaceNames, Placement
from mlfbuild.project import (
    SOURCES,
    Budget,
    BudgetFile,
    FirmwareSpec,
    ModelSpec,
    Provider,
    TargetSpec,
    filled,
    load_project,
    rules,
)

VALID = Path(__file__).parent / "valid"
SMALLEST = (VALID / "smallest.yml").read_text()


def write(folder: Path, text: str | bytes) -> Path:
    path = folder / "mlfbuild.yml"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


def failure(path: Path) -> Diagnostic:
    with pytest.raises(ProjectFileError) as caught:
        load_project(path)
    (problem,) = caught.value.problems
    assert isinstance(problem, Diagnostic)
    return problem


def test_a_budget_file_and_its_growth(tmp_path: Path) -> None:
    project = load_project(VALID / "budget_file.yml")
    assert project.baseline == BudgetFile(VALID / "ci/sizes.json", Decimal("2.5"))
    assert load_project(write(tmp_path, SMALLEST)).baseline is None
    by_default = load_project(write(tmp_path, SMALLEST + "budget-file: sizes.json\n")).baseline
    assert by_default == BudgetFile(tmp_path / "sizes.json", Decimal(1))


def test_budgets_are_read() -> None:
    project = load_project(VALID / "budgets.yml")
    assert project.models["kws"].budget == Budget(flash=96 * 1024, ram=32 * 1024, stack=2048)
    assert project.models["vww"].budget == Budget(ram=98304, instructions=2_900_000), "counts are decimal"
    assert project.models["net"].budget == Budget()
    assert project.firmware["app"].budget == Budget(flash=512 * 1024, stack=8192, instructions=4_000_000)


def test_every_key_is_read() -> None:
    project = load_project(VALID / "complete.yml")
    assert project.root == VALID
    assert project.targets == {
        "m55": TargetSpec("m55", "cortex-m55", "mps3-an547"),
        "m4": TargetSpec("m4", "cortex-m4", "mps2-an386", toolchain=VALID / "cmake/own.cmake"),
        "host": TargetSpec("host", "host"),
    }
    assert project.models["kws"] == ModelSpec(
        name="kws",
        source=VALID / "models/kws_int8.tflite",
        compiler="native",
        interface=InterfaceNames(("mfcc",), {"StatefulPartitionedCall:0": "scores"}),
        executor="aot",
        targets=("m55", "m4"),
        folder=VALID,
        options={"memory": "balanced", "depth": 3, "ratio": 0.5, "fast": True, "quoted": "010"},
        vectors={"": VALID / "tests/kws.npz"},
        placement=Placement(".rodata.mlf", ".bss.dtcm"),
    )
    assert [type(value) for value in project.models["kws"].options.values()] == [str, int, float, bool, str]
    assert project.firmware["app"] == FirmwareSpec(
        name="app",
        models=("kws",),
        targets=("m55",),
        sources=(VALID / "src/main.c", VALID / "src/io.c"),
        include_dirs=(VALID / "include",),
    )
    assert project.firmware["own"] == FirmwareSpec(
        "own", models=(), targets=("m55", "m4", "host"), cmake=VALID / "firmware"
    )


def test_programs_that_compile_are_read() -> None:
    models = load_project(VALID / "programs.yml").models
    words = ("./export", "{source}", "--cpu={cpu}", "-o", "{output}")
    assert models["words"].program == CompilerProgram(VALID, words)
    split = ("tools/export", "two words", "{source}", "{output}")
    assert models["text"].program == CompilerProgram(VALID, split, inputs=("tools", "*.npy"))
    assert models["tvm"].program == CompilerProgram(VALID, (), ".venv-tvm/bin/python", ("tuning.log",))
    assert models["tvm"].compiler == "tvm"
    assert load_project(VALID / "smallest.yml").models["kws"].program is None


def test_placeholders_are_filled_in_every_word() -> None:
    command = load_project(VALID / "programs.yml").models["braces"].program.command
    values = {"source": "a b", "output": "/tmp/x.tar", "cpu": "cortex-m4", "name": "braces"}
    assert list(filled(command, values)) == ["sh", "-c", "awk '{ print }' a b > /tmp/x.tar # braces"]


def test_models_know_whether_they_share_a_workspace() -> None:
    models = load_project(VALID / "share_workspace.yml").models
    assert models["kws"].placement == Placement(".rodata.mlf", None, shares_workspace=1)
    assert models["vww"].placement == Placement(shares_workspace=1)
    assert models["own"].placement == Placement()
    models = load_project(VALID / "concurrent.yml").models
    numbers = {name: model.placement.shares_workspace for name, model in models.items()}
    assert numbers == {"vww": 1, "kws": 2, "ad": 1, "vad": 3, "ic": 1}


def test_placement_is_by_class_and_regions_are_by_target() -> None:
    project = load_project(VALID / "placement.yml")
    external = Placement(weights=".mlf_params", tables=".data.tables", workspace=".axi")
    assert project.models["kws"].placement == project.models["vww"].placement == external
    assert project.models["wake"].placement == Placement(params=".mlf_params", state=".bss.wake")
    assert project.targets["product"].regions == {".mlf_params": "QSPI", ".axi": "AXI_SRAM"}
    assert project.firmware["app"].params_binary == ".mlf_params"
    assert project.targets["sim"].regions == {".mlf_params": "PSRAM", ".axi": "PSRAM"}
    assert [external.constants(name) for name in ("weights", "biases", "tables")] == [
        ".mlf_params", None, ".data.tables",
    ]  # fmt: skip


def test_defaults() -> None:
    project = load_project(VALID / "complete.yml")
    exported = project.models["exported"]
    assert (exported.compiler, exported.executor, exported.targets) == ("archive", None, ("m55", "m4", "host"))
    smallest = load_project(VALID / "smallest.yml")
    assert smallest.models["kws"].compiler == "native"
    assert smallest.firmware == {}


def test_a_firmware_links_the_models_of_its_target_by_default(tmp_path: Path) -> None:
    path = write(
        tmp_path,
        "mlfbuild: 1\n"
        "targets: {a: {cpu: host}, b: {cpu: host}}\n"
        "models: {both: {source: x.tflite}, one: {source: y.tflite, targets: [b]}}\n"
        "firmware: {app: {sources: [main.c]}}\n",
    )
    project = load_project(path)
    assert [model.name for model in project.models_on("a", "app")] == ["both"]
    assert [model.name for model in project.models_on("b", "app")] == ["both", "one"]


def test_aliases_are_expanded_and_json_is_accepted() -> None:
    assert load_project(VALID / "json.yml").models["kws"].options == {"ratio": 0.25}
    project = load_project(VALID / "aliases.yml")
    assert project.targets["spare"].board == "mps2-an386"
    assert project.models["ad"].options == {"memory": "balanced"}
    assert project.models["ad"].targets == ("m4", "spare")


@pytest.mark.parametrize(
    "text",
    [SMALLEST.encode(), b"\xef\xbb\xbf" + SMALLEST.encode(), SMALLEST.replace("\n", "\r\n").encode(),
     b"---\n" + SMALLEST.encode() + b"...\n", SMALLEST.encode().rstrip(b"\n")],
    ids=["plain", "byte-order-mark", "crlf", "document-marks", "no-last-newline"],
)  # fmt: skip
def test_encodings_and_line_ends(tmp_path: Path, text: bytes) -> None:
    assert list(load_project(write(tmp_path, text)).models) == ["kws"]


@pytest.mark.parametrize(
    ("content", "code"),
    [
        ("", "project-file-empty"),
        ("\n", "project-file-empty"),
        ("# only a comment\n", "project-file-empty"),
        (SMALLEST.encode("utf-16"), "not-utf8"),
    ],
)
def test_content_that_is_no_project_is_refused_at_its_beginning(
    tmp_path: Path, content: str | bytes, code: str
) -> None:
    path = write(tmp_path, content)
    problem = failure(path)
    assert (problem.code, problem.place) == (code, f"{path}:1:1")


@pytest.mark.parametrize(
    ("name", "code", "reason"),
    [
        ("none.yml", "no-project-file", "no such project file"),
        (".", "project-file-is-folder", "is a folder"),
        ("mlfbuild.yml/in_a_file.yml", "project-file-unreadable", "Not a directory"),
        ("/dev/zero", "project-file-too-large", "larger than"),  # and is not read to its end
    ],
)
def test_a_path_that_is_no_project_file_is_refused(tmp_path: Path, name: str, code: str, reason: str) -> None:
    write(tmp_path, SMALLEST)
    problem = failure(tmp_path / name)
    assert (problem.code, problem.place) == (code, str(tmp_path / name))
    assert reason in problem.reason


@pytest.mark.parametrize("content", [b"\0" * 64, os.urandom(4096), b"x" * (2 << 20)], ids=["zeros", "noise", "huge"])
def test_binary_files_are_refused_in_one_line(tmp_path: Path, content: bytes) -> None:
    path = write(tmp_path, content)
    problem = failure(path)
    assert problem.place.startswith(str(path)) and str(problem).isprintable()


def test_mistakes_found_after_reading_have_a_position(tmp_path: Path) -> None:
    path = write(tmp_path, "mlfbuild: 1\ntargets: {a: {cpu: host}}\nmodels:\n  kws:\n    source: x.tflite\n")
    project = load_project(path)
    way = ("models", "kws", "source")
    missing = Mistake("no-such-file", reason="no such file", hint="correct the path")
    slow, odd = (Mistake(f"is-{word}", reason=word) for word in ("slow", "odd"))
    assert project.problems([((*way, "deeper"), odd), (way, missing), (("targets", "a", "cpu"), slow)]) == [
        Diagnostic("is-slow", f"{path}:2:20: targets.a.cpu", "slow"),
        Diagnostic("is-odd", f"{path}:5:13: models.kws.source.deeper", "odd"),
        Diagnostic("no-such-file", f"{path}:5:13: models.kws.source", "no such file", "correct the path"),
    ]


def test_a_project_is_a_value_that_can_be_pickled(tmp_path: Path) -> None:
    project = load_project(VALID / "complete.yml")
    assert pickle.loads(pickle.dumps(project)) == project
    with pytest.raises(AttributeError):
        project.root = tmp_path  # type: ignore[misc]


def test_comments_and_order_do_not_change_the_project(tmp_path: Path) -> None:
    one = load_project(write(tmp_path, SMALLEST))
    two = load_project(write(tmp_path, "# why\n" + "\n\n".join(reversed(SMALLEST.splitlines()))))
    assert one == two


def test_the_known_compilers_are_the_compilers_of_this_version() -> None:
    assert set(rules.COMPILERS) == set(COMPILERS)
    assert set(SOURCES.values()) <= set(rules.COMPILERS)


def test_importing_loads_neither_pydantic_nor_yaml() -> None:
    code = (
        "import sys, mlfbuild.jobs.project_checks, mlfbuild.jobs.project_jobs; "
        "from mlfbuild.project import Project, Provider, load_project; "
        "print(sorted({'pydantic', 'yaml'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"


def test_dependencies_are_read() -> None:
    project = load_project(VALID / "dependencies.yml")
    found = project.dependencies
    assert list(found) == [
        "cmsis-nn", "by-ssh", "by-url", "mirror", "file-mirror", "folder", "stated", "archive", "local-archive",
        "ethos-u-driver", "cmsis.dsp",
    ]  # fmt: skip
    assert found["cmsis-nn"] == Provider(
        name="cmsis-nn",
        git="https://github.com/ARM-software/CMSIS-NN",
        version="v7.0.0",
        sources=("Source/**/*.c",),
        include_dirs=("Include", "."),
        license="Apache-2.0 OR MIT",
        compile_options=("-O3", "-fno-math-errno", "-DNAME=1"),
        public_headers=True,
        bundle=True,
    )
    assert found["folder"] == Provider("folder", path="../folder", folder=VALID / "../folder")
    assert found["archive"].sha256 == "0123456789abcdef" * 4, "hashes are compared in lower case"
    assert found["ethos-u-driver"].target == "ethosu::core_driver"
    assert found["cmsis.dsp"].target == "CMSISDSP", "the default is the name of the package"
    assert load_project(VALID / "smallest.yml").dependencies == {}


def test_repositories_on_this_machine_have_a_folder() -> None:
    found = load_project(VALID / "dependencies.yml").dependencies
    mirror = found["mirror"]
    assert (mirror.folder, mirror.address) == (
        VALID / "../mirrors/lib.git",
        str(VALID.absolute() / "../mirrors/lib.git"),
    )
    others = [found[name] for name in ("cmsis-nn", "by-ssh", "by-url", "file-mirror")]
    assert all(one.folder is None and one.address == one.place for one in others)


def test_mistakes_in_dependencies_have_a_position_by_short_name() -> None:
    project = load_project(VALID / "dependencies.yml")
    file = VALID / "dependencies.yml"
    assert project.dependencies["cmsis-nn"].where == f"{file}:7:3: dependencies.CMSIS_NN"
    way = ("dependencies", "cmsis-nn", "version")
    (problem,) = project.problems([(way, Mistake("is-odd", reason="odd"))])
    assert problem.place == f"{file}:9:14: dependencies.cmsis-nn.version"
