"""Mistakes in the use of CMake's package: each stops the configure step with one line that says what to do."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from mlfbuild.targets import cmake_folder
from support.cmake_repo import CMakeRepo, Ran, error_lines
from support.firmware_repo import tiny_network

CALL = "mlfbuild_models(mlfbuild.yml TARGET pc)"
INSTALL = "install it (pip install mlfbuild) or set MLFBUILD_COMMAND to its path"


@pytest.fixture
def repo(tmp_path: Path, tool: Callable[[str], str]) -> CMakeRepo:
    for name in ("cmake", "ninja"):
        tool(name)
    repo = CMakeRepo(tmp_path)
    repo.replace("CMakeLists.txt", "LANGUAGES C", "LANGUAGES NONE")
    repo.replace(
        "CMakeLists.txt", "add_executable(app src/main.c)\ntarget_link_libraries(app PRIVATE mlf::models)\n", ""
    )
    return repo


def the_error(ran: Ran) -> str:
    """The only line of CMake's only error."""
    assert ran.status == 1, ran.output
    assert ran.output.count("CMake Error") == 1, ran.output
    (line,) = error_lines(ran.output)
    return line


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (
            "mlfbuild_models(mlfbuild.yml TARGET pc3)",
            """mlfbuild: target 'pc3': not in the project file (did you mean "pc"?)""",
        ),
        (
            "mlfbuild_models(mlfbuild.yml TARGET pc MODELS gamma)",
            "mlfbuild: model 'gamma': not built for pc; choose one of its targets (m4), or add the target to the model",
        ),
        (
            "mlfbuild_models(mlfbuild.yml TARGET pc MODELS alhpa)",
            """mlfbuild: model 'alhpa': not in the project file (did you mean "alpha"?)""",
        ),
        (
            "mlfbuild_models(other.yml TARGET pc)",
            "@/other.yml: no such project file; name another file with -f, or run `mlfbuild init` to write one",
        ),
        (
            "mlfbuild_models(mlfbuild.yml)",
            "@/mlfbuild.yml: has the targets pc, pc2, m4: mlfbuild_models needs TARGET <target>",
        ),
        (
            "mlfbuild_models(mlfbuild.yml pc)",
            "bad arguments: pc; write mlfbuild_models(mlfbuild.yml TARGET <target> [MODELS <model>...])",
        ),
        (
            "mlfbuild_models(mlfbuild.yml TARGET)",
            "bad arguments: TARGET; write mlfbuild_models(mlfbuild.yml TARGET <target> [MODELS <model>...])",
        ),
        (
            "set(CMAKE_VERSION 3.21.4)\nfind_package(mlfbuild CONFIG REQUIRED)",
            "mlfbuild: needs CMake 3.22 or later, this is 3.21.4; pip install cmake",
        ),
        (
            'set(MLFBUILD_COMMAND "MLFBUILD_COMMAND-NOTFOUND" CACHE FILEPATH "" FORCE)\n'
            "set(CMAKE_FIND_USE_SYSTEM_ENVIRONMENT_PATH FALSE)\nset(CMAKE_FIND_USE_CMAKE_SYSTEM_PATH FALSE)\n"
            f'set(CMAKE_IGNORE_PATH "{cmake_folder().parent}/.venv/bin")\n' + CALL,
            "mlfbuild: program not found; @@",
        ),
        (
            'set(MLFBUILD_COMMAND "/nowhere/mlfbuild")\n' + CALL,
            "/nowhere/mlfbuild: cannot be run (No such file or directory); @@",
        ),
    ],
    ids=["target", "model-of-another-target", "model", "file", "no-target", "stray", "keyword", "old", "none", "gone"],
)  # fmt: skip
def test_one_line_says_what_to_do(repo: CMakeRepo, call: str, words: str) -> None:
    repo.replace("CMakeLists.txt", CALL, call)
    assert the_error(repo.configure()) == words.replace("@@", INSTALL).replace("@", str(repo.root))


def test_every_mistake_of_the_project_file_is_shown_at_its_line(repo: CMakeRepo) -> None:
    repo.replace("mlfbuild.yml", "alpha.tflite}", "alpha.tflite, vectros: x.npz}")
    repo.replace("mlfbuild.yml", "beta.tflite}", "beta.tflite, tragets: [pc]}")
    ran = repo.configure()
    assert ran.status == 1
    first, second = error_lines(ran.output)
    assert first == f'{repo.root}/mlfbuild.yml:7:40: models.alpha.vectros: unknown key (did you mean "vectors"?)'
    assert second == f'{repo.root}/mlfbuild.yml:8:38: models.beta.tragets: unknown key (did you mean "targets"?)'


@pytest.mark.parametrize(
    ("source", "words"),
    [
        ("build/mlf/pc/beta/net.tflite", "the tree of model 'beta'"),
        ("build/mlf/pc/beta.tar", "the archive of model 'beta'"),
        ("link.tflite", "the tree of model 'beta'"),
    ],
)
def test_an_output_folder_around_the_source_of_another_model(repo: CMakeRepo, source: str, words: str) -> None:
    inside = repo.write("build/mlf/pc/beta/net.tflite", tiny_network(1))
    repo.write("build/mlf/pc/beta.tar", b"")
    (repo.root / "link.tflite").symlink_to(inside)
    repo.replace("mlfbuild.yml", "models/alpha.tflite", source)
    advice = "move the model file, or choose another build folder"
    assert the_error(repo.configure()) == (
        f"mlfbuild: {repo.root}/{source}: the source of model 'alpha' is in the place of {words}; {advice}"
    )


def test_a_generator_that_is_missing(repo: CMakeRepo) -> None:
    repo.replace("mlfbuild.yml", "alpha.tflite}", "alpha.tflite, compiler: tvn}")
    ran = repo.configure()
    assert ran.status == 1
    (line,) = error_lines(ran.output)
    assert line.startswith(f"{repo.root}/mlfbuild.yml:7:50: models.alpha.compiler: ")


def test_a_file_of_somebody_else_where_a_tree_goes(repo: CMakeRepo, tool: Callable[[str], str]) -> None:
    tool("gcc")
    repo.replace("CMakeLists.txt", "LANGUAGES NONE", "LANGUAGES C")
    repo.write("build/mlf/pc/alpha/metadata.json", "mine")
    assert repo.configure().status == 0
    ran = repo.run_build("--target", "mlf_alpha")
    assert ran.status != 0
    tree = f"{repo.build_dir}/mlf/pc/alpha"
    reason = "contains files that mlfbuild did not write and would overwrite: metadata.json"
    assert f"mlfbuild: {tree}: {reason}; move them away, or choose another folder" in ran.output.splitlines()
    assert (repo.build_dir / "mlf/pc/alpha/metadata.json").read_text() == "mine"


def test_an_older_cmake_is_no_error_where_the_package_is_optional(repo: CMakeRepo) -> None:
    repo.replace("CMakeLists.txt", CALL, "")
    repo.replace(
        "CMakeLists.txt",
        "find_package(mlfbuild CONFIG REQUIRED)",
        'set(CMAKE_VERSION 3.21.4)\nfind_package(mlfbuild CONFIG QUIET)\nmessage(STATUS "found: ${mlfbuild_FOUND}")',
    )
    ran = repo.configure()
    assert ran.status == 0, ran.output
    assert "found: 0" in ran.output


def test_a_command_of_another_version(repo: CMakeRepo, tmp_path: Path) -> None:
    other = tmp_path / "mlfbuild"
    other.write_text('#!/bin/sh\necho "{}"\n')
    other.chmod(0o755)
    repo.replace("CMakeLists.txt", CALL, f'set(MLFBUILD_COMMAND "{other}")\n{CALL}')
    line = the_error(repo.configure())
    assert line.startswith(f"{other}: is another version of mlfbuild than ")
    assert line.endswith(f"; set mlfbuild_DIR to what `{other} cmake-dir` prints")


def test_one_build_folder_is_for_one_target(repo: CMakeRepo) -> None:
    repo.replace("CMakeLists.txt", "LANGUAGES NONE", "LANGUAGES C")
    repo.replace("CMakeLists.txt", CALL, f"{CALL}\nmlfbuild_models(mlfbuild.yml TARGET pc2)")
    file = f"{repo.root}/mlfbuild.yml"
    assert the_error(repo.configure()) == (
        f"mlfbuild_models: target pc2 (host) of {file} after target pc (host) of {file}: one build folder is for one "
        "target; configure another for pc2"
    )


def test_two_project_files_with_a_model_of_one_name(repo: CMakeRepo) -> None:
    repo.replace("CMakeLists.txt", "LANGUAGES NONE", "LANGUAGES C")
    repo.replace("CMakeLists.txt", CALL, f"{CALL}\nmlfbuild_models(other.yml TARGET pc)")
    shutil.copy(repo.root / "mlfbuild.yml", repo.root / "other.yml")
    first, second = (f"{repo.root}/{name}.yml" for name in ("mlfbuild", "other"))
    assert the_error(repo.configure()) == (
        f"mlfbuild_models: model alpha of {second}: {first} has a model of that name, too; rename one"
    )


def test_a_model_that_cannot_be_compiled_fails_the_build_with_the_commands_words(
    repo: CMakeRepo, tool: Callable[[str], str]
) -> None:
    tool("gcc")
    repo.write("models/alpha.tflite", b"no model at all, but long enough to look at")
    repo.replace("CMakeLists.txt", "LANGUAGES NONE", "LANGUAGES C")
    repo.write(
        "CMakeLists.txt",
        (repo.root / "CMakeLists.txt").read_text() + "add_executable(app src/main.c)\n"
        "target_link_libraries(app PRIVATE mlf::models)\n",
    )
    assert repo.configure().status == 0
    ran = repo.run_build()
    assert ran.status != 0
    assert f"\nmlfbuild: {repo.root}/models/alpha.tflite: " in ran.output
    assert "Traceback" not in ran.output
    assert not (repo.build_dir / "mlf/.cmake/pc/alpha.made").exists()


def test_a_python_that_is_gone(repo: CMakeRepo, tmp_path: Path) -> None:
    command = tmp_path / "mlfbuild"
    command.write_text("#!/nowhere/python\n")
    command.chmod(0o755)
    repo.replace("CMakeLists.txt", CALL, f'set(MLFBUILD_COMMAND "{command}")\n{CALL}')
    assert the_error(repo.configure()).startswith(f"{command}: cannot be run (")
