"""``compiler: tvm``: the command lines for its versions, and the archives that a stand-in for TVM writes."""

import json
import re
from dataclasses import replace
from pathlib import Path
from typing import TypeVar

import pytest

from mlfbuild.archive import pack_archive
from mlfbuild.compilers import compiler_called
from mlfbuild.compilers.tvm import TVM
from mlfbuild.compilers.tvm.tvmc import tvmc_arguments
from mlfbuild.core.errors import MlfError, ProcessFailedError, ToolNotFoundError, UsageError
from mlfbuild.library import CompileRequest, CompilerProgram, OptionValue
from mlfbuild.targets import CPUS
from support.errors import raises
from support.examples import first_on_push
from support.exporters import python_with_tvm
from support.firmware_repo import tiny_network

VERSIONS = ("0.8.0", "0.9.0", "0.11.1", "0.14.dev273", "0.18.0")

E = TypeVar("E", bound=MlfError)


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A project's folder with a model, and a Python with TVM 0.14."""
    root = tmp_path / "my project"
    (root / "models").mkdir(parents=True)
    (root / "models" / "kws.tflite").write_bytes(tiny_network(1))
    python_with_tvm(root / "tvm-0.14.0", "0.14.0")
    return root


def request(root: Path, version: str = "0.14.0", cpu: str = "cortex-m4", **options: OptionValue) -> CompileRequest:
    """Return a request for TVM ``version``; underscores in the names of options become dashes."""
    named = {key.replace("_", "-"): value for key, value in options.items()}
    program = CompilerProgram(root, interpreter=f"./tvm-{version}")
    return CompileRequest("kws", root / "models/kws.tflite", CPUS[cpu], options=named, program=program)


def told(root: Path) -> list[list[str]]:
    """Return the arguments of each run of tvmc."""
    path = root / "tvmc.txt"
    lines = path.read_text().splitlines() if path.exists() else []
    return [
        [re.sub(r"--output=.*/(\w+\.tar)", r"--output=<temporary>/\1", word) for word in json.loads(line)]
        for line in lines
    ]


def failure(request: CompileRequest, kind: type[E]) -> E:
    with pytest.raises(kind) as caught:
        TVM.compile(request)
    return caught.value


# Command lines -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("executor", "version"),
    first_on_push(
        [*(("aot", version) for version in VERSIONS), *(("graph", version) for version in VERSIONS[::-1])], 6
    ),
)
def test_command_lines(root: Path, version: str, executor: str, golden) -> None:
    python_with_tvm(root / f"tvm-{version}", version)
    asked = replace(request(root, version), executor=executor)
    if version != "0.8.0":
        asked = replace(asked, options={"target": "cmsis-nn,c", "opt-level": 2, "system-lib": executor == "graph",
                                        "pass-config": "tir.usmp.enable=1 tir.usmp.algorithm=hill_climb"})  # fmt: skip
    library = TVM.compile(asked)
    (words,) = told(root)
    golden("\n".join(words) + "\n", "arguments.txt")
    (module,) = library.modules
    assert (module.name, module.executor, library.version) == ("kws", executor, 7)
    assert "-mcpu=cortex-m4" in module.targets[0].text
    needs = [(item.short_name, item.version_spec) for item in module.external_dependencies]
    needs = [need for need in needs if need[0] != "tvm_standalone_crt"]  # of the stand-in's own graphs
    assert needs == ([("cmsis-nn", "v4.1.0")] if version in {"0.14.dev273", "0.18.0"} else [])  # TVM itself was asked


def arguments(version: tuple[int, int], cpu: str = "cortex-m55", executor: str | None = None, **options) -> list[str]:
    named = {key.replace("_", "-"): value for key, value in options.items()}
    asked = CompileRequest("kws", Path("kws.onnx"), CPUS[cpu], executor, named)
    return tvmc_arguments(asked, version, "kws.onnx", Path("out.tar"))


def test_cpu_is_passed_to_targets_that_support_it() -> None:
    assert "--target-c-mcpu=cortex-m55" in arguments((0, 14))
    both = arguments((0, 14), target="cmsis-nn,c")
    assert {"--target=cmsis-nn,c", "--target-c-mcpu=cortex-m55", "--target-cmsis-nn-mcpu=cortex-m55"} <= {*both}
    assert "--target-cmsis-nn-mcpu=cortex-m55" not in arguments((0, 8), target="cmsis-nn,c")
    assert "--target-c-mcpu=cortex-m4+nofp" in arguments((0, 14), cpu="cortex-m4+nofp")
    for without in ("host", "rv32imc"):
        assert not [word for word in arguments((0, 14), cpu=without) if "mcpu" in word]


def test_target_that_names_its_cpu_is_unchanged() -> None:
    words = arguments((0, 14), target="cmsis-nn -mcpu=cortex-m7, c -keys=cpu -mcpu=cortex-m0plus")
    assert not [word for word in words if "-mcpu=cortex-m55" in word]
    words = arguments((0, 14), arguments="--target-c-mcpu=cortex-m0plus")
    assert [word for word in words if "mcpu" in word] == ["--target-c-mcpu=cortex-m0plus"]


def test_vectorization_is_disabled_by_default() -> None:
    assert "--pass-config=tir.disable_vectorize=1" in arguments((0, 14))
    words = arguments((0, 14), pass_config="tir.disable_vectorize=0")
    assert [word for word in words if "vectorize" in word] == ["--pass-config=tir.disable_vectorize=0"]
    assert not [word for word in arguments((0, 14), target="llvm -mtriple=arm-none-eabi") if "vectorize" in word]


def test_the_packed_interface_has_packed_arguments() -> None:
    words = arguments((0, 14), interface_api="packed")
    assert {"--executor-aot-interface-api=packed", "--executor-aot-unpacked-api=0"} <= {*words}
    cpp = arguments((0, 14), runtime="cpp", system_lib=True)
    assert {"--runtime=cpp", "--runtime-cpp-system-lib=1", "--executor-aot-interface-api=packed"} <= {*cpp}


def test_further_arguments_are_last_before_the_model() -> None:
    words = arguments((0, 14), arguments="--desired-layout NCHW --tuning-records 'my log.json'")
    assert words[-5:] == ["--desired-layout", "NCHW", "--tuning-records", "my log.json", "kws.onnx"]


def test_options_of_another_executor_are_rejected() -> None:
    with raises(UsageError, "option-of-other-executor", at="kws: options.interface-api"):
        arguments((0, 14), executor="graph", interface_api="c")


def test_mlfbuild_adds_the_hook_to_graphs_of_tvm(root: Path) -> None:
    asked = replace(request(root, hook=True), executor="graph")
    (module,) = TVM.compile(asked).modules
    assert module.hook
    assert not [word for word in told(root)[0] if "hook" in word]
    error = failure(request(root, hook=True), UsageError)
    assert (error.code, error.place) == ("hook-of-aot-executor", "kws: options.hook")


@pytest.mark.parametrize("option", ["opt-level", "constant-byte-alignment"])
def test_options_of_later_versions_are_rejected(option: str) -> None:
    with raises(UsageError, "option-newer-than-tvm", at=f"kws: options.{option}"):
        arguments((0, 8), **{option: 2})


# Options of the project file -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("key", "value", "code"),
    [
        ("targt", "c", "unknown-option"),
        ("memory", "smallest", "unknown-option"),
        ("target", "  ", "invalid-option"),
        ("target", 3, "invalid-option"),
        ("runtime", "c", "invalid-option"),
        ("interface-api", True, "invalid-option"),
        ("unpacked-api", 1, "invalid-option"),
        ("hook", "yes", "invalid-option"),
        ("opt-level", 4, "invalid-option"),
        ("opt-level", True, "invalid-option"),
        ("workspace-byte-alignment", 12, "invalid-option"),
        ("constant-byte-alignment", 0, "invalid-option"),
        ("pass-config", "tir.usmp.enable", "invalid-option"),
        ("pass-config", "=1", "invalid-option"),
        ("pass-config", 1, "invalid-option"),
        ("arguments", "--tuning-records 'log", "unclosed-quote"),
        ("arguments", "-v --output=x.tar", "reserved-tvmc-argument"),
        ("arguments", "-f so", "reserved-tvmc-argument"),
    ],
)
def test_invalid_options_are_rejected(key: str, value: OptionValue, code: str) -> None:
    ((found, mistake),) = TVM.check_options({key: value})
    assert (found, mistake.code) == (key, code)


def test_valid_options_are_accepted() -> None:
    options = {
        "target": "c", "runtime": "crt", "interface-api": "packed", "unpacked-api": False, "link-params": True,
        "system-lib": True, "workspace-byte-alignment": 16, "constant-byte-alignment": 16, "opt-level": 0,
        "pass-config": "tir.usmp.enable=1", "arguments": "-v",
    }  # fmt: skip
    assert TVM.check_options(options) == []


# Runs ----------------------------------------------------------------------------------------------------------------


def test_two_runs_give_one_archive_and_the_version_is_read_once(root: Path) -> None:
    first, second = (pack_archive(TVM.compile(request(root))) for _ in range(2))
    assert first == second
    assert len(told(root)) == 2
    assert TVM.version(request(root)) == "0.14.0"
    assert (root / "tvmc.txt.starts").read_text().split() == ["-c", "-m", "-m"]


def test_tvm_is_not_imported_here(root: Path) -> None:
    import sys

    TVM.compile(request(root))
    assert not [name for name in sys.modules if name.partition(".")[0] == "tvm"]


def test_module_called_default_by_tvm_0_8_is_renamed(root: Path) -> None:
    python_with_tvm(root / "tvm-0.8.0", "0.8.0")
    (module,) = TVM.compile(request(root, "0.8.0")).modules
    assert module.name == "kws"
    paths = [str(file.path) for file in module.codegen]
    assert "host/src/kws_lib0.c" in paths
    assert not [file.path for file in module.codegen if b"tvmgen_default" in bytes(file.content)]


def test_a_failure_of_tvm_includes_its_output(root: Path) -> None:
    wrong = request(root, pass_config="tir.no_such=1")
    error = failure(wrong, ProcessFailedError)
    assert (error.code, error.place) == ("program-failed", "kws: tvmc of TVM 0.14.0")
    assert error.output.strip() == "Error: Configuration 'tir.no_such' is not defined in TVM."
    unknown = failure(request(root, arguments="--no-such-argument"), ProcessFailedError)
    assert unknown.reason == "failed with exit status 2"
    assert "tvmc compile: error: unrecognized arguments: --no-such-argument" in unknown.output


def test_code_for_another_cpu_is_rejected(root: Path) -> None:
    asked = request(root, cpu="cortex-m0plus", target="c -mcpu=cortex-m7", arguments="--target-c-mcpu=cortex-m7")
    assert failure(asked, UsageError).code == "module-for-another-cpu"


@pytest.mark.parametrize(
    ("version", "code"),
    [
        ("0.19.0", "tvm-version-unsupported"),
        ("0.25.0.post1", "tvm-version-unsupported"),
        ("0.7.0", "tvm-version-unsupported"),
        ("unknown", "tvm-without-version"),
    ],
)
def test_unsupported_versions_are_rejected(root: Path, version: str, code: str) -> None:
    python_with_tvm(root / f"tvm-{version}", version)
    error = failure(request(root, version), ToolNotFoundError)
    assert (error.code, error.place) == (code, f"{root}/tvm-{version}")
    assert "\n" not in str(error)
    assert not told(root)


def test_python_without_tvm_is_reported(root: Path) -> None:
    bare = python_with_tvm(root / "tvm-none", "0.14.0")
    bare.write_text(bare.read_text().replace("stand_in_tvm", "no_such_folder"))
    error = failure(request(root, "none"), ToolNotFoundError)
    assert (error.code, error.place) == ("tvm-not-importable", str(bare))
    assert "ModuleNotFoundError: No module named 'tvm'" in error.reason


def test_missing_python_is_reported(root: Path) -> None:
    error = failure(request(root, "missing"), ToolNotFoundError)
    assert (error.code, error.place) == ("program-not-found", "kws: TVM's interpreter: ./tvm-missing")


def test_the_default_is_the_python_in_path(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    python_with_tvm(root / "bin" / "python3", "0.18.0", root / "tvmc.txt")
    monkeypatch.setenv("PATH", f"{root / 'bin'}:/usr/bin:/bin")
    asked = replace(request(root), program=CompilerProgram(root))
    assert compiler_called("tvm").compile(asked).modules[0].name == "kws"
    assert len(told(root)) == 1
