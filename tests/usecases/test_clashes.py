"""Models of one image share no global symbol; if they do, the build reports which."""

import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from mlfbuild.archive import pack_archive
from mlfbuild.core.errors import CheckFailedError, InputFileError, ProcessFailedError
from mlfbuild.core.files import read_bytes
from mlfbuild.jobs import firmware_jobs, load, target_jobs
from mlfbuild.jobs.conflicts import check_models
from mlfbuild.usecases.build import build_project as build
from support import warm
from support.errors import raises
from support.examples import first_on_push
from support.firmware_repo import tiny_network
from support.libraries import native_library
from support.snapshot import keep, restore
from support.tvm_headers import write_tvm_headers

PROJECT = """\
mlfbuild: 1
targets: {pc: {cpu: host}}
models:
  alpha: {source: alpha.tflite}
  beta: {source: beta.tflite}
firmware: {app: {cmake: .}}
"""

CMAKELISTS = """\
cmake_minimum_required(VERSION 3.22)
project(app LANGUAGES C)
include("${MLF_TREE}/mlf.cmake")
add_executable(app main.c)
target_link_libraries(app PRIVATE mlf::alpha mlf::beta)
"""

MAIN = "int main(void) { return 0; }\n"


class Repo:
    """A firmware repository with two models for this machine."""

    def __init__(self, root: Path) -> None:
        self.root = root
        for name, seed in (("alpha", 1), ("beta", 2)):
            self.write(f"{name}.tflite", tiny_network(seed))
        self.write("mlfbuild.yml", PROJECT)
        self.write("CMakeLists.txt", CMAKELISTS)
        self.write("main.c", MAIN)

    def write(self, name: str, text: str | bytes) -> None:
        (self.root / name).write_bytes(text.encode() if isinstance(text, str) else text)

    def add(self, model: str, text: str, *, extra: str = "") -> None:
        """Compile ``text`` into the library of a model, as code of a careless compiler."""
        self.write(f"{model}_extra.c", text)
        lists = (self.root / "CMakeLists.txt").read_text()
        line = f"target_sources(mlf_{model} PRIVATE ${{CMAKE_SOURCE_DIR}}/{model}_extra.c)\n"
        self.write("CMakeLists.txt", lists.replace(line, "") + line + extra)

    def build(self) -> Path:
        project = load(self.root / "mlfbuild.yml")
        targets = target_jobs(project)
        (image,) = build(targets, firmware_jobs(project, targets)).firmware
        return image.elf

    def clash(self) -> str:
        """Build, which fails because of a conflict, and return the reason: models, symbol and objects."""
        with raises(CheckFailedError, "symbols-in-conflict", at="app") as error:
            self.build()
        return error.value.reason


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory, tool: Callable[[str], str]) -> Repo:
    """Return the repository after its first build."""
    tool("cmake")
    repo = Repo(tmp_path_factory.mktemp("clashes"))
    repo.build()
    keep(repo.root)
    return repo


@pytest.fixture
def repo(built: Repo) -> Repo:
    restore(built.root)
    return built


def test_two_real_models_share_no_symbol(repo: Repo) -> None:
    repo.write("main.c", '#include "tvmgen_alpha.h"\n#include "tvmgen_beta.h"\n'
               "int main(void) { return tvmgen_alpha_run(0, 0) + tvmgen_beta_run(0, 0) == -2 ? 0 : 1; }\n")  # fmt: skip
    subprocess.run([repo.build()], check=True)


def test_definition_that_the_linker_silently_drops_is_a_conflict(repo: Repo) -> None:
    elf = repo.build()
    for model, value in (("alpha", 1), ("beta", 2)):
        repo.add(model, f"int helper(void);\nint helper(void) {{ return {value}; }}\n")
    words = repo.clash()
    assert elf.is_file(), "the linker took one of them"
    assert words == (
        "models alpha and beta both define the global symbol 'helper' "
        "(libmlf_alpha.a(alpha_extra.c.o), libmlf_beta.a(beta_extra.c.o))"
    )
    assert repo.clash() == words, "every build reports it until it is fixed"
    repo.add("beta", "static int helper(void) { return 2; }\nint beta_helper;\nint (*beta_use)(void) = helper;\n")
    repo.build()


def test_definition_that_the_linker_rejects_is_a_conflict(repo: Repo) -> None:
    for model in ("alpha", "beta"):
        repo.add(model, f"int helper;\nint use_{model}(void);\nint use_{model}(void) {{ return helper++; }}\n")
    repo.write(
        "main.c", "int use_alpha(void);\nint use_beta(void);\nint main(void) { return use_alpha() + use_beta(); }\n"
    )
    assert "models alpha and beta both define the global symbol 'helper'" in repo.clash()


def test_other_link_errors_are_shown_unchanged(repo: Repo) -> None:
    repo.write("main.c", "int missing(void);\nint main(void) { return missing(); }\n")
    with pytest.raises(ProcessFailedError, match="missing"):
        repo.build()


@pytest.mark.parametrize("image", ["add_executable(other main.c)", ""])
def test_image_unknown_to_ninja_is_reported(repo: Repo, image: str) -> None:
    repo.write("CMakeLists.txt", CMAKELISTS.split("add_executable", maxsplit=1)[0] + image + "\n")
    with raises(ProcessFailedError, "cmake-image-missing", "app"):
        repo.build()


def test_using_a_symbol_of_another_model_is_a_conflict(repo: Repo) -> None:
    repo.add("alpha", "int helper(void);\nint helper(void) { return 1; }\n")
    repo.add("beta", "int helper(void);\nint use(void);\nint use(void) { return helper(); }\n")
    assert "model beta uses the global symbol 'helper' of model alpha (libmlf_beta.a(" in repo.clash()


def test_common_symbols_of_two_models_are_a_conflict(repo: Repo) -> None:
    for model in ("alpha", "beta"):
        repo.add(model, "int helper;\n", extra=f"target_compile_options(mlf_{model} PRIVATE -fcommon)\n")
    assert "models alpha and beta both define the global symbol 'helper'" in repo.clash()


def test_weak_functions_are_merged_but_not_with_strong_ones(repo: Repo) -> None:
    weak = "__attribute__((weak)) int helper(void);\nint helper(void) { return 1; }\n"
    repo.add("alpha", weak)
    repo.add("beta", weak)
    repo.build()
    repo.add("beta", weak.replace("__attribute__((weak)) ", ""))
    assert "both define the global symbol 'helper'" in repo.clash()


def test_weak_functions_that_differ_are_a_conflict(repo: Repo) -> None:
    weak = "__attribute__((weak)) int helper(void);\nint helper(void) {{ return {}; }}\n"
    repo.add("alpha", weak.format(1))
    repo.add("beta", weak.format(2))
    assert "models alpha and beta both define the global symbol 'helper'" in repo.clash()


def test_inline_functions_of_cxx_are_merged(repo: Repo, tool: Callable[[str], str]) -> None:
    tool("g++")
    repo.write("CMakeLists.txt", CMAKELISTS.replace("LANGUAGES C)", "LANGUAGES C CXX)"))
    for model in ("alpha", "beta"):
        text = f"inline int helper(int x) {{ return x * 3; }}\nint (*{model}_use)(int) = helper;\n"
        repo.write(f"{model}.cc", text)
        lists = (repo.root / "CMakeLists.txt").read_text()
        repo.write("CMakeLists.txt", lists + f"target_sources(mlf_{model} PRIVATE ${{CMAKE_SOURCE_DIR}}/{model}.cc)\n")
    repo.build()


@pytest.mark.parametrize(
    "kind", first_on_push(["__attribute__((common)) int helper;", "int helper(void) { return 1; }", "int helper;"])
)
def test_objects_for_link_time_optimisation_are_compared(repo: Repo, kind: str) -> None:
    repo.write("CMakeLists.txt", CMAKELISTS.replace("include(", "add_compile_options(-flto)\ninclude("))
    subprocess.run([repo.build()], check=True)
    for model in ("alpha", "beta"):
        repo.add(model, kind + "\n")
    words = repo.clash()
    assert "models alpha and beta both define the global symbol 'helper' (libmlf_alpha.a(alpha_extra.c.o), " in words


def test_same_weak_function_for_link_time_optimisation_is_merged(repo: Repo) -> None:
    repo.write("CMakeLists.txt", CMAKELISTS.replace("include(", "add_compile_options(-flto)\ninclude("))
    for model in ("alpha", "beta"):
        repo.add(model, "__attribute__((weak)) int helper(void) { return 1; }\n")
    repo.build()


def test_a_symbol_that_the_firmware_also_defines_is_a_conflict(repo: Repo) -> None:
    repo.add("alpha", "int helper(void);\nint helper(void) { return 1; }\n")
    repo.write("main.c", "int helper(void);\nint helper(void) { return 2; }\nint main(void) { return 0; }\n")
    assert repo.clash() == (
        "model alpha and the firmware both define the global symbol 'helper' "
        "(libmlf_alpha.a(alpha_extra.c.o), main.c.o)"
    )
    repo.add("alpha", "__attribute__((weak)) int helper(void);\nint helper(void) { return 1; }\n")
    repo.build()


def test_firmware_and_models_can_use_each_other(repo: Repo) -> None:
    repo.add("alpha", "int of_firmware(void);\nint of_alpha(void);\nint of_alpha(void) { return of_firmware(); }\n")
    repo.write(
        "main.c",
        "int of_alpha(void);\nint of_firmware(void);\nint of_firmware(void) { return 0; }\n"
        "int main(void) { return of_alpha(); }\n",
    )
    subprocess.run([repo.build()], check=True)


def test_library_that_is_not_linked_is_ignored(repo: Repo) -> None:
    for model in ("alpha", "beta"):
        repo.add(model, "int helper;\n")
    lists = (repo.root / "CMakeLists.txt").read_text()
    repo.write("CMakeLists.txt", lists.replace("mlf::alpha mlf::beta", "mlf::alpha"))
    repo.build()


def test_models_linked_through_a_library_are_compared(repo: Repo) -> None:
    for model in ("alpha", "beta"):
        repo.add(model, "int helper;\n")
    lists = (repo.root / "CMakeLists.txt").read_text()
    repo.write(
        "CMakeLists.txt",
        lists.replace("(app PRIVATE mlf::alpha mlf::beta)", "(app PRIVATE between)")
        + "add_library(between STATIC main.c)\ntarget_link_libraries(between PRIVATE mlf::models)\n",
    )
    assert "both define the global symbol 'helper'" in repo.clash()


def test_only_a_new_image_is_read(repo: Repo, monkeypatch: pytest.MonkeyPatch) -> None:
    reads: list[Path] = []

    def counting(path: Path, what: str) -> bytes:
        reads.append(path)
        return read_bytes(path, what)

    monkeypatch.setattr("mlfbuild.c_analysis.conflicts.read_bytes", counting)
    shutil.rmtree(repo.root / "build")
    repo.build()
    assert {path.name for path in reads} >= {"libmlf_alpha.a", "libmlf_beta.a"}
    reads.clear()
    repo.build()
    assert reads == []
    repo.write("main.c", "int main(void) { return 1; }\n")
    repo.build()
    assert {path.name for path in reads} >= {"libmlf_alpha.a", "libmlf_beta.a"}


TVM_MAIN = """
#include <stdio.h>
#include "tvmgen_add.h"
#include "tvmgen_conv.h"

int main(void) {
  static unsigned char a[2] = {3, 4};
  static float b[2] = {10, 20}, sum[2], data[3072], result[8];
  struct tvmgen_add_inputs add_inputs = {a, b};
  struct tvmgen_add_outputs add_outputs = {sum};
  struct tvmgen_conv_inputs conv_inputs = {data};
  struct tvmgen_conv_outputs conv_outputs = {result};
  const int status = tvmgen_add_run(&add_inputs, &add_outputs) | tvmgen_conv_run(&conv_inputs, &conv_outputs);
  printf("%d %g %g\\n", status, (double)sum[0], (double)sum[1]);
  return 0;
}
"""


@pytest.mark.parametrize("with_tvm", [False, True], ids=["alone", "beside TVM's headers"])
def test_two_archives_of_tvm_with_a_registry_each(repo: Repo, shared: Path, with_tvm: bool) -> None:
    """Each has separate names, even if the firmware uses TVM's headers for something else."""
    for name, archive in (("alpha", "add-graph"), ("beta", "conv-graph")):
        (repo.root / f"{name}.tflite").unlink()
        shutil.copy(shared / "archives" / f"{archive}.tar", repo.root / f"{name}.tar")
    repo.write("mlfbuild.yml", PROJECT.replace(".tflite", ".tar"))
    lists = CMAKELISTS.replace("mlf::beta)", "mlf::beta m)")
    if with_tvm:
        include = write_tvm_headers(repo.root / "tvm")
        lists = lists.replace("include(", f'include_directories("{include}")\ninclude(', 1)
    repo.write("CMakeLists.txt", lists)
    repo.write("main.c", TVM_MAIN)
    done = subprocess.run([repo.build()], capture_output=True, text=True, check=True)
    assert done.stdout == "0 23 84\n"


@pytest.mark.parametrize("driver", ["mlfbuild", "SCons"])
def test_both_drivers_report_the_conflict(repo: Repo, driver: str) -> None:
    for model in ("alpha", "beta"):
        repo.add(model, "int helper;\n")
    (repo.root / "site_scons/site_tools").mkdir(parents=True)
    repo.write("site_scons/site_tools/mlf.py", "from mlfbuild.scons import exists, generate\n")
    repo.write(
        "SConstruct",
        'env = Environment(tools=["default", "mlf"])\nmodels = env.MlfModels("mlfbuild.yml")\n'
        'env.MlfFirmware("app", models=models)\n',
    )
    done = warm.run(driver, *(["build", "-q"] if driver == "mlfbuild" else ["-Q", "-s"]), cwd=repo.root)
    assert done.returncode == (1 if driver == "mlfbuild" else 2)
    assert "models alpha and beta both define the global symbol 'helper'" in done.stderr
    assert "Traceback" not in done.stdout + done.stderr


@pytest.mark.parametrize("driver", ["build", "build --tree tree", "SCons"])
def test_two_modules_with_the_same_name_are_reported_before_linking(repo: Repo, driver: str) -> None:
    for name in ("alpha", "beta"):
        (repo.root / f"{name}.tflite").unlink()
        repo.write(f"{name}.tar", pack_archive(native_library("default")))
    repo.write("mlfbuild.yml", PROJECT.replace(".tflite", ".tar"))
    (repo.root / "site_scons/site_tools").mkdir(parents=True)
    repo.write("site_scons/site_tools/mlf.py", "from mlfbuild.scons import exists, generate\n")
    repo.write("SConstruct", 'Environment(tools=["default", "mlf"]).MlfModels("mlfbuild.yml")\n')
    command = ["SCons", "-Q"] if driver == "SCons" else ["mlfbuild", "-q", *driver.split()]
    done = warm.run(*command, cwd=repo.root, status=2 if driver == "SCons" else 1)
    assert done.stderr.lstrip().startswith("scons: *** " if driver == "SCons" else "mlfbuild: ")
    assert all(text in done.stderr for text in ("alpha", "beta", "'default'", "options: {module-name: beta}"))


def test_other_object_formats_are_ignored_and_damaged_objects_reported(tmp_path: Path) -> None:
    for name, content in (("a.o", b"BC\xc0\xde"), ("b.o", b"MZ")):
        (tmp_path / name).write_bytes(content)
    compiled = {"a": [tmp_path / "a.o"], "b": [tmp_path / "b.o"]}
    check_models(compiled, "app.elf")
    (tmp_path / "b.o").write_bytes(b"\x7fELF")
    with raises(InputFileError, "object-damaged", at=str(tmp_path / "b.o")):
        check_models(compiled, "app.elf")
