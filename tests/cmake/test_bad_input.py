"""Mistakes in the use of the CMake package: each stops the configuration with one line that names the remedy."""

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from mlfbuild.targets import cmake_folder
from support.cmake_repo import CMakeRepo, Ran, error_lines
from support.errors import assert_printed
from support.firmware_repo import tiny_network

CALL = "mlfbuild_models(mlfbuild.yml TARGET pc)"
INSTALL = "activate its virtual environment or set MLFBUILD_COMMAND to its path"


@pytest.fixture
def repo(tmp_path: Path, tool: Callable[..., str]) -> CMakeRepo:
    tool("cmake", "ninja")
    repo = CMakeRepo(tmp_path)
    repo.replace("CMakeLists.txt", "LANGUAGES C", "LANGUAGES NONE")
    repo.replace(
        "CMakeLists.txt", "add_executable(app src/main.c)\ntarget_link_libraries(app PRIVATE mlf::models)\n", ""
    )
    return repo


def the_error(ran: Ran) -> str:
    """Return the only line of CMake's only error."""
    assert ran.status == 1, ran.output
    assert ran.output.count("CMake Error") == 1, ran.output
    (line,) = error_lines(ran.output)
    return line


@pytest.mark.parametrize(
    ("call", "words"),
    [
        ("mlfbuild_models(mlfbuild.yml TARGET pc3)", ("unknown-target", "mlfbuild: target 'pc3'")),
        (
            "mlfbuild_models(mlfbuild.yml TARGET pc MODELS gamma)",
            ("model-not-built-for-target", "mlfbuild: model 'gamma'"),
        ),
        ("mlfbuild_models(mlfbuild.yml TARGET pc MODELS alhpa)", ("unknown-model", "mlfbuild: model 'alhpa'")),
        ("mlfbuild_models(other.yml TARGET pc)", ("no-project-file", "@/other.yml")),
        (
            "mlfbuild_models(mlfbuild.yml)",
            "@/mlfbuild.yml: has several targets (pc, pc2, m4); add TARGET <target> to mlfbuild_models",
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
def test_mistakes_are_reported_in_one_line(repo: CMakeRepo, call: str, words: str | tuple[str, str]) -> None:
    """Errors of the command have a code and a place; those of the CMake package are only text."""
    repo.replace("CMakeLists.txt", CALL, call)
    line = the_error(repo.configure())
    if isinstance(words, str):
        assert line == words.replace("@@", INSTALL).replace("@", str(repo.root))
    else:
        assert_printed(line, words[0], words[1].replace("@", str(repo.root)))


def test_start_up_code_of_a_target_without_board(tmp_path: Path, tool: Callable[..., str]) -> None:
    tool("cmake", "ninja", "gcc")
    repo = CMakeRepo(tmp_path)
    repo.replace("CMakeLists.txt", "mlf::models)", "mlf::models mlf::board)")
    ran = repo.configure(status=1)
    assert error_lines(ran.output)[0].startswith("app: links mlf::board")


def test_project_file_mistakes_are_reported_with_their_lines(repo: CMakeRepo) -> None:
    repo.replace("mlfbuild.yml", "alpha.tflite}", "alpha.tflite, vectros: x.npz}")
    repo.replace("mlfbuild.yml", "beta.tflite}", "beta.tflite, tragets: [pc]}")
    ran = repo.configure(status=1)
    first, second = error_lines(ran.output)
    assert_printed(first, "unknown-key", f"{repo.root}/mlfbuild.yml:7:40: models.alpha.vectros", '"vectors"')
    assert_printed(second, "unknown-key", f"{repo.root}/mlfbuild.yml:8:38: models.beta.tragets", '"targets"')


@pytest.mark.parametrize(
    ("source", "words"),
    [
        ("build/mlf/pc/beta/net.tflite", "the tree of model 'beta'"),
        ("build/mlf/pc/beta.tar", "the archive of model 'beta'"),
        ("link.tflite", "the tree of model 'beta'"),
    ],
)
def test_output_folder_around_the_source_of_another_model_is_rejected(repo: CMakeRepo, source: str, words: str) -> None:
    inside = repo.write("build/mlf/pc/beta/net.tflite", tiny_network(1))
    repo.write("build/mlf/pc/beta.tar", b"")
    (repo.root / "link.tflite").symlink_to(inside)
    repo.replace("mlfbuild.yml", "models/alpha.tflite", source)
    assert_printed(
        the_error(repo.configure()), "source-among-outputs", f"mlfbuild: {repo.root}/{source}", "model 'alpha'", words
    )


def test_missing_generator_is_reported(repo: CMakeRepo) -> None:
    repo.replace("mlfbuild.yml", "alpha.tflite}", "alpha.tflite, compiler: tvn}")
    ran = repo.configure(status=1)
    (line,) = error_lines(ran.output)
    assert line.startswith(f"{repo.root}/mlfbuild.yml:7:50: models.alpha.compiler: ")


@pytest.mark.sweep
def test_file_of_the_user_in_place_of_a_tree_is_rejected(repo: CMakeRepo, tool: Callable[..., str]) -> None:
    tool("gcc")
    repo.replace("CMakeLists.txt", "LANGUAGES NONE", "LANGUAGES C")
    repo.write("build/mlf/pc/alpha/metadata.json", "mine")
    assert repo.configure().status == 0
    ran = repo.run_build("--target", "mlf_alpha")
    assert ran.status != 0
    tree = f"{repo.build_dir}/mlf/pc/alpha"
    assert_printed(ran.output, "foreign-files-in-tree", f"mlfbuild: {tree}", ": metadata.json;")
    assert (repo.build_dir / "mlf/pc/alpha/metadata.json").read_text() == "mine"


def test_old_cmake_is_no_error_for_an_optional_package(repo: CMakeRepo) -> None:
    repo.replace("CMakeLists.txt", CALL, "")
    repo.replace(
        "CMakeLists.txt",
        "find_package(mlfbuild CONFIG REQUIRED)",
        'set(CMAKE_VERSION 3.21.4)\nfind_package(mlfbuild CONFIG QUIET)\nmessage(STATUS "found: ${mlfbuild_FOUND}")',
    )
    ran = repo.configure(status=0)
    assert "found: 0" in ran.output


def test_command_of_another_version_is_rejected(repo: CMakeRepo, tmp_path: Path) -> None:
    other = tmp_path / "mlfbuild"
    other.write_text('#!/bin/sh\necho "{}"\n')
    other.chmod(0o755)
    repo.replace("CMakeLists.txt", CALL, f'set(MLFBUILD_COMMAND "{other}")\n{CALL}')
    line = the_error(repo.configure())
    assert line.startswith(f"{other}: is another version of mlfbuild than ")
    assert line.endswith(f"; set mlfbuild_DIR to what `{other} cmake-dir` prints")


def test_build_folder_is_for_one_target(repo: CMakeRepo) -> None:
    repo.replace("CMakeLists.txt", "LANGUAGES NONE", "LANGUAGES C")
    repo.replace("CMakeLists.txt", CALL, f"{CALL}\nmlfbuild_models(mlfbuild.yml TARGET pc2)")
    file = f"{repo.root}/mlfbuild.yml"
    assert the_error(repo.configure()) == (
        f"mlfbuild_models: target pc2 (host) of {file} after target pc (host) of {file}: one build folder is for one "
        "target; configure another for pc2"
    )


@pytest.mark.sweep
def test_two_project_files_with_the_same_model_name_are_rejected(repo: CMakeRepo) -> None:
    repo.replace("CMakeLists.txt", "LANGUAGES NONE", "LANGUAGES C")
    repo.replace("CMakeLists.txt", CALL, f"{CALL}\nmlfbuild_models(other.yml TARGET pc)")
    shutil.copy(repo.root / "mlfbuild.yml", repo.root / "other.yml")
    first, second = (f"{repo.root}/{name}.yml" for name in ("mlfbuild", "other"))
    assert the_error(repo.configure()) == (
        f"mlfbuild_models: model alpha of {second}: {first} has a model of that name, too; rename one"
    )


def test_model_that_cannot_be_compiled_fails_the_build_with_its_error(
    repo: CMakeRepo, tool: Callable[..., str]
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


def test_deleted_python_is_reported(repo: CMakeRepo, tmp_path: Path) -> None:
    command = tmp_path / "mlfbuild"
    command.write_text("#!/nowhere/python\n")
    command.chmod(0o755)
    repo.replace("CMakeLists.txt", CALL, f'set(MLFBUILD_COMMAND "{command}")\n{CALL}')
    assert the_error(repo.configure()).startswith(f"{command}: cannot be run (")


@pytest.mark.parametrize("character", ["$", "#", "`", "[", "]"])
def test_folder_in_which_cmake_cannot_build_is_named(tmp_path: Path, tool: Callable[..., str], character: str) -> None:
    tool("cmake")
    folder = tmp_path / f"a{character}b"
    folder.mkdir()
    repo = CMakeRepo(folder)
    repo.replace("CMakeLists.txt", "LANGUAGES C", "LANGUAGES NONE")
    assert f"a path with {character}: {repo.root}/mlfbuild.yml" in the_error(repo.configure())
