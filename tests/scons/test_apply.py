"""``models.apply(env)``: models in firmware that is linked with SCons' own ``Program``."""

import json
import os
import re
import subprocess
from collections import UserList, deque
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from SCons.Environment import Environment
from SCons.Util import CLVar

from mlfbuild.archive import pack_archive
from mlfbuild.scons.variables import extend
from support.errors import assert_printed
from support.examples import first_on_push
from support.firmware_repo import TWO_MODELS, FirmwareRepo, Ran
from support.libraries import graph_library, native_library
from support.scons_versions import takes_deques

SCONSTRUCT = """\
env = Environment(tools=["default", "mlf"], MLFBUILDDIR="build")
env.VariantDir("build/app", "src", duplicate=False)
models = env.MlfModels("mlfbuild.yml")
models.apply(env)
env.Program("build/app/app", ["build/app/main.c"])
"""
MAIN = """\
#include <stdio.h>
#include "tvmgen_alpha.h"
#include "tvmgen_beta.h"

int main(void) {
  int8_t in[8] = {1, 2, 3, 4, 5, 6, 7, 8}, alpha[4], beta[4];
  struct tvmgen_alpha_inputs alpha_in = {in};
  struct tvmgen_alpha_outputs alpha_out = {alpha};
  struct tvmgen_beta_inputs beta_in = {in};
  struct tvmgen_beta_outputs beta_out = {beta};
  int status = tvmgen_alpha_run(&alpha_in, &alpha_out) + tvmgen_beta_run(&beta_in, &beta_out);
  printf("%d %d %d\\n", status, alpha[0], beta[0]);
  return status;
}
"""
APP = "build/app/app"
OBJECTS = {"alpha_lib0.o", "beta_lib0.o", "main.o"}


@pytest.fixture
def repo(tmp_path: Path, tool: Callable[[str], str]) -> FirmwareRepo:
    """A repository that has not been built yet."""
    tool("gcc")
    repo = FirmwareRepo(tmp_path)
    for name in ("CMakeLists.txt", "src/app.h"):
        (tmp_path / name).unlink()
    repo.write("mlfbuild.yml", TWO_MODELS)
    repo.write("SConstruct", SCONSTRUCT)
    repo.write("src/main.c", MAIN)
    return repo


def objects(ran: Ran) -> set[str]:
    return {Path(path).name for path in ran.written if path.endswith(".o")}


def explained(repo: FirmwareRepo, *arguments: str) -> dict[str, str]:
    """Build and return what SCons made, each with the rest of the line that gives the reason."""
    output = repo.build("--debug=explain", "-Q", *arguments).output
    return dict(re.findall(r"scons: (?:re)?building `([^']*)' because:? ?(.*)", output))


def answer(repo: FirmwareRepo, program: str = APP) -> str:
    return subprocess.run([repo.root / program], capture_output=True, text=True, check=True).stdout


# Dependencies --------------------------------------------------------------------------------------------------------


def test_fresh_parallel_build_has_every_dependency(repo: FirmwareRepo) -> None:
    ran = repo.build("-j8")
    assert objects(ran) == OBJECTS
    assert answer(repo).startswith("0 ")
    assert explained(repo) == {}, "what the first build did not know, the second would have to make again"


@pytest.mark.sweep
def test_dry_run_tree_and_clean(repo: FirmwareRepo) -> None:
    dry = repo.build("-n", "--tree=all", "--debug=explain")
    assert not dry.written
    assert "+-build/mlf/pc/alpha/codegen/host/include/tvmgen_alpha.h" in dry.output
    assert "Linking" in dry.output or "gcc -o build/app/app" in dry.output
    repo.build()
    mine = repo.write("build/mlf/pc/alpha/notes.txt", "mine")
    repo.build("-c")
    left = [path for path in (repo.root / "build").rglob("*") if path.is_file()]
    assert left == [mine]
    assert objects(repo.build()) == OBJECTS


@pytest.mark.sweep
@pytest.mark.parametrize("duplicate", first_on_push([True, False]))
def test_variant_folders(repo: FirmwareRepo, duplicate: bool) -> None:
    repo.write(
        "SConstruct",
        'for name, flag in ("debug", "-O0"), ("release", "-O2"):\n'
        '    env = Environment(tools=["default", "mlf"], CCFLAGS=flag)\n'
        f'    env.SConscript("src/SConscript", exports="env", variant_dir="build/" + name, duplicate={duplicate})\n',
    )
    repo.write(
        "src/SConscript",
        'Import("env")\nmodels = env.MlfModels("#mlfbuild.yml")\nmodels.apply(env)\nenv.Program("app", "main.c")\n',
    )
    ran = repo.build("-j4")
    assert ran.output.count("Compiling model models/alpha.tflite") == 1
    assert "Copying build/debug/build/mlf/pc/alpha.tar -> build/release/build/mlf/pc/alpha.tar" in ran.output
    assert answer(repo, "build/debug/app") == answer(repo, "build/release/app")
    assert not explained(repo)


@pytest.mark.sweep
def test_clone_with_other_flags_has_separate_libraries(repo: FirmwareRepo) -> None:
    repo.write(
        "SConstruct",
        SCONSTRUCT.replace("duplicate=False", "duplicate=False)\nenv.VariantDir('build/small', 'src', duplicate=False")
        + 'small = env.Clone()\nsmall.Append(CCFLAGS="-Os")\nmodels.apply(small)\nmodels.apply(small)\n'
        'small.Program("build/small/app", ["build/small/main.c"])\n',
    )
    ran = repo.build()
    assert ran.output.count("-Os") == 3, "main and both models"
    link = next(line for line in ran.output.splitlines() if line.startswith("gcc -o build/small/app "))
    assert re.findall(r"\S+\.a", link) == ["build/mlf.lib/pc/1/libmlf_alpha.a", "build/mlf.lib/pc/1/libmlf_beta.a"]
    assert answer(repo, "build/small/app") == answer(repo)
    assert not explained(repo)


def test_libraries_are_below_the_build_folder_of_the_models(repo: FirmwareRepo) -> None:
    repo.write(
        "SConstruct",
        'env = Environment(tools=["default", "mlf"], MLFBUILDDIR="out")\n'
        'models = env.MlfModels("mlfbuild.yml")\n'
        'SConscript("src/SConscript", exports=["env", "models"])\n'
        'SConscript("src/SConscript", exports=["env", "models"], variant_dir="debug", duplicate=False)\n',
    )
    repo.write("src/SConscript", 'Import("env", "models")\nmodels.apply(env.Clone())\n')
    assert repo.build("-Q").status == 0
    made = {path.relative_to(repo.root).as_posix() for path in repo.root.rglob("libmlf_alpha.a")}
    assert made == {"out/mlf.lib/pc/libmlf_alpha.a", "out/mlf.lib/pc.debug/libmlf_alpha.a"}
    assert not list(repo.root.glob("src/build")) + list(repo.root.glob("debug/*"))


def test_later_flags_are_used(repo: FirmwareRepo) -> None:
    repo.write("SConstruct", SCONSTRUCT + 'env.Append(CCFLAGS="-DLATE")\n')
    assert repo.build().output.count("-DLATE") == 3


def test_models_have_their_own_level(repo: FirmwareRepo) -> None:
    repo.write("SConstruct", SCONSTRUCT + 'env.Append(CCFLAGS=["-O0"])\n')
    levels = {"alpha_lib0.o": "-O2", "beta_lib0.o": "-O2", "main.o": "-O0"}
    assert objects_by_level(repo.build().output) == levels
    repo.write("mlfbuild.yml", TWO_MODELS.replace("beta.tflite", "beta.tflite, optimize: inherit"))
    ran = repo.build()
    assert objects_by_level(ran.output) == {"beta_lib0.o": "-O0"} and objects(ran) == {"beta_lib0.o"}
    assert not any(path.endswith(".tar") for path in ran.written), "the archives are the same"
    assert repo.build().written == frozenset()


def objects_by_level(output: str) -> dict[str, str]:
    """Return the last optimisation level of each object that was compiled."""
    compiled = [line.split() for line in output.splitlines() if " -c " in line]
    return {
        Path(words[words.index("-o") + 1]).name: [word for word in words if word.startswith("-O")][-1]
        for words in compiled
    }


def test_selected_models(repo: FirmwareRepo) -> None:
    repo.write("SConstruct", SCONSTRUCT.replace("apply(env)", 'apply(env, "beta")'))
    repo.write("src/main.c", '#include "tvmgen_beta.h"\nint main(void) { return tvmgen_beta_run(0, 0) == 99; }\n')
    assert objects(repo.build()) == {"beta_lib0.o", "main.o"}


def test_unknown_model_is_rejected(repo: FirmwareRepo) -> None:
    repo.write("SConstruct", SCONSTRUCT.replace("apply(env)", 'apply(env, "gamma")'))
    ran = repo.scons(status=2)
    assert "scons: *** model 'gamma': MlfModels returned only alpha, beta; " in ran.output
    assert f'File "{repo.root}/SConstruct", line 4, in <module>' in ran.output


def test_one_target_twice_with_different_models_is_rejected(repo: FirmwareRepo) -> None:
    again = SCONSTRUCT + 'assert env.MlfModels("mlfbuild.yml") == models\n'
    repo.write("SConstruct", again + 'env.MlfModels("mlfbuild.yml", models=["beta"])\n')
    ran = repo.scons(status=2)
    assert "target 'pc': MlfModels was called for build/mlf/pc before, with other models; call it once" in ran.output


def test_a_compiler_for_another_cpu_is_rejected(repo: FirmwareRepo, tool: Callable[[str], str]) -> None:
    tool("arm-none-eabi-gcc")
    repo.write("mlfbuild.yml", TWO_MODELS.replace("  pc: {cpu: host}", "  m4: {cpu: cortex-m4}"))
    ran = repo.scons(status=2)
    assert_printed(ran.output, "flags-for-another-cpu", "target m4 (cortex-m4)")
    assert not [path for path in ran.written if path.endswith(".a")]
    link = SCONSTRUCT.replace("env.Program", "env.Default('build/mlf.lib')  # ")
    flags = 'env.Replace(CC="arm-none-eabi-gcc", CCFLAGS="-mcpu=cortex-m4 -mthumb")\n'  # no FPU: any float ABI works
    repo.write("SConstruct", link + flags)
    repo.build()


# Rebuilding ----------------------------------------------------------------------------------------------------------


def test_one_change_makes_one_archive_and_for_each_target_one_tree_and_one_link(repo: FirmwareRepo) -> None:
    repo.write("mlfbuild.yml", TWO_MODELS.replace("  pc:", "  small: {cpu: host}\n  pc:"))
    repo.write(
        "SConstruct",
        'for target in ("pc", "small"):\n'
        '    env = Environment(tools=["default", "mlf"])\n'
        '    env.MlfModels("mlfbuild.yml", target=target).apply(env)\n'
        '    env.Program(f"build/{target}/app", env.Object(f"build/{target}/main.o", "src/main.c"))\n',
    )
    repo.build("-j4")
    repo.write_model("alpha", seed=7)
    assert explained(repo, "-j4").keys() == {
        made
        for target in ("pc", "small")
        for made in (
            f"build/mlf/{target}/alpha.tar",
            f"build/mlf/{target}/alpha/RECORD.json",
            f"build/mlf.lib/{target}/alpha/alpha_lib0.o",
            f"build/mlf.lib/{target}/libmlf_alpha.a",
            f"build/{target}/app",
        )
    }


@pytest.mark.sweep
def test_unpacked_file_is_restored_and_nothing_is_compiled(repo: FirmwareRepo) -> None:
    repo.build()
    for victim in ("src/alpha_lib0.c", "include/tvmgen_alpha.h", "src/mlfbuild/fully_connected.h"):
        (path,) = (repo.root / "build/mlf/pc/alpha/codegen/host").glob(victim)
        good, state = path.read_bytes(), path.stat()
        for damage in ("deleted", "edited in its old size and at its old time"):
            if damage == "deleted":
                path.unlink()
            else:
                path.write_bytes(good[:-2] + b"?\n")
                os.utime(path, ns=(state.st_atime_ns, state.st_mtime_ns))
            made = explained(repo)
            assert made == {"build/mlf/pc/alpha/RECORD.json": "AlwaysBuild() is specified"}, (victim, damage)
            assert path.read_bytes() == good
    assert not explained(repo)


# Archives ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("form", first_on_push(["array", "incbin"]))
def test_graph_and_parameters_as_bytes_of_the_image(repo: FirmwareRepo, form: str) -> None:
    repo.write("models/net.tar", pack_archive(graph_library("net")))
    repo.write("mlfbuild.yml", TWO_MODELS.split("  alpha", maxsplit=1)[0] + "  net: {source: models/net.tar}\n")
    repo.write("SConstruct", SCONSTRUCT.replace('MLFBUILDDIR="build"', f'MLFBLOBS="{form}"'))
    repo.write(
        "src/main.c",
        '#include <stdio.h>\n#include "mlf_net_blobs.h"\n'
        "int main(void) { fwrite(mlf_net_graph_json, 1, mlf_net_graph_json_size, stdout); return 0; }\n",
    )
    repo.build("-j8")
    assert json.loads(answer(repo)) == json.loads(bytes(graph_library("net").modules[0].graph_json or b""))
    assert not explained(repo)


def test_unknown_form_of_blobs_is_rejected(repo: FirmwareRepo) -> None:
    repo.write("models/net.tar", pack_archive(graph_library("net")))
    repo.write("mlfbuild.yml", TWO_MODELS.split("  alpha", maxsplit=1)[0] + "  net: {source: models/net.tar}\n")
    repo.write("SConstruct", SCONSTRUCT.replace('MLFBUILDDIR="build"', 'MLFBLOBS="hex"'))
    ran = repo.scons(status=2)
    assert_printed(ran.output, "unknown-blob-form", "scons: *** MLFBLOBS", "'hex'")


def test_an_archive_of_several_modules(repo: FirmwareRepo) -> None:
    repo.write("models/two.tar", pack_archive(native_library("one", "two")))
    repo.write("mlfbuild.yml", TWO_MODELS.split("  alpha", maxsplit=1)[0] + "  pair: {source: models/two.tar}\n")
    repo.write(
        "src/main.c",
        '#include "tvmgen_one.h"\n#include "tvmgen_two.h"\n'
        "int main(void) { return sizeof(struct tvmgen_one_inputs) != sizeof(struct tvmgen_two_inputs); }\n",
    )
    ran = repo.build("-j8")
    assert {"build/mlf.lib/pc/libmlf_one.a", "build/mlf.lib/pc/libmlf_two.a"} <= ran.written
    assert not explained(repo)


# compile_commands.json -----------------------------------------------------------------------------------------------


def test_compilation_database_has_generated_files(repo: FirmwareRepo) -> None:
    tool = 'env.Tool("compilation_db")\nenv.CompilationDatabase("build/compile_commands.json")\nmodels ='
    repo.write("SConstruct", SCONSTRUCT.replace("models =", tool, 1))
    repo.build()
    entries = json.loads(repo.read("build/compile_commands.json"))
    folder = "build/mlf/pc/{0}/codegen/host/src/{0}_lib0.c"
    assert {entry["file"] for entry in entries} == {"src/main.c", folder.format("alpha"), folder.format("beta")}
    for entry in entries:
        assert (Path(entry["directory"]) / entry["file"]).is_file()
        command = [*entry["command"].split(), "-fsyntax-only"]
        subprocess.run(command, cwd=entry["directory"], check=True)


# Other people's construction variables -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (None, ["new"]),
        ("", ["new"]),
        ("one", ["one", "new"]),
        (f"one{os.pathsep}two words", ["one", "two words", "new"]),
        (["one"], ["one", "new"]),
        (("one",), ("one", "new")),
        (deque(["one"]), deque(["one", "new"])),
        (UserList(["one"]), UserList(["one", "new"])),
        (CLVar("one two"), CLVar("one two new")),
    ],
)
def test_type_of_a_variable_is_kept(value: Any, expected: Any) -> None:
    env = Environment(tools=[])
    if value is not None:
        env["CPPPATH"] = value
    before = list(value or "")
    extend(env, "CPPPATH", ["new"])
    assert env["CPPPATH"] == expected
    assert type(env["CPPPATH"]) is type(expected)
    assert list(value or "") == before, "other environments may hold the object"


def test_libraries_in_one_string() -> None:
    env = Environment(tools=[], LIBS="m c")
    extend(env, "LIBS", ["new"], front=True)
    assert env["LIBS"] == ["new", "m", "c"]


@takes_deques
@pytest.mark.parametrize(
    "own", first_on_push(['CPPPATH=deque(["src"])', 'CPPPATH="src"', 'CPPPATH=CLVar("src")', 'CPPPATH=("src",)'])
)
def test_a_build_with_variables_of_every_kind(repo: FirmwareRepo, own: str) -> None:
    repo.write(
        "SConstruct",
        "from collections import deque\nfrom SCons.Util import CLVar\n"
        + SCONSTRUCT.replace('MLFBUILDDIR="build"', f'LIBS="m", CPPDEFINES=deque(["ONE", ("TWO", 2)]), {own}'),
    )
    repo.write("src/main.c", MAIN.replace("return status", "return status + own()").replace("int main", OWN_C))
    repo.write("src/own.h", "static int own(void) { return ONE + TWO != 3; }\n")
    ran = repo.build()
    assert ran.output.count("-DONE -DTWO=2 ") == 3
    assert answer(repo).startswith("0 ")


OWN_C = '#include "own.h"\n\nint main'
