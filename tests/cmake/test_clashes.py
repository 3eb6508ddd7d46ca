"""Models that are linked into one image: if two share a global symbol, the build fails before linking."""

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from support.cmake_repo import MOSTLY_NINJA, CMakeRepo
from support.errors import assert_printed
from support.libraries import archive_with

PROJECT = """\
mlfbuild: 1
targets: {pc: {cpu: host}}
models:
  alpha: {source: alpha.tar}
  beta: {source: beta.tar}
"""
MAIN = "int main(void) { return 0; }\n"
LINKED = "target_link_libraries(app PRIVATE mlf::models)\n"


def assert_clash(output: str) -> None:
    objects = "(libmlf_alpha.a(alpha_helper.c.o), libmlf_beta.a(beta_helper.c.o))"
    assert_printed(output, "symbols-in-conflict", "mlfbuild: app", "models alpha and beta", "'helper'", objects)


@pytest.fixture(params=MOSTLY_NINJA)
def repo(request: pytest.FixtureRequest, tmp_path: Path, tool: Callable[..., str]) -> CMakeRepo:
    """A repository with two models, which are archives that both define the symbol ``helper``."""
    tool("gcc", "cmake", "ninja", "make")
    repo = CMakeRepo(tmp_path, request.param)
    repo.write("mlfbuild.yml", PROJECT)
    repo.write("src/main.c", MAIN)
    for name in ("alpha", "beta"):
        repo.write(f"{name}.tar", archive_with(name, "int helper;\n"))
    return repo


def clash(repo: CMakeRepo) -> str:
    """Return the output of a build that fails because of a conflict."""
    assert repo.configure().status == 0
    ran = repo.run_build()
    assert ran.status != 0
    assert "Traceback" not in ran.output
    assert not ran.linked
    return ran.output


@pytest.mark.sweep
def test_conflict_fails_the_build_until_it_is_resolved(repo: CMakeRepo) -> None:
    assert_clash(clash(repo))
    assert_clash(clash(repo))
    repo.write("beta.tar", archive_with("beta", "static int helper;\nint *beta_helper = &helper;\n"))
    ran = repo.build()
    assert ran.linked
    assert "Comparing the models in app" in ran.steps
    assert repo.build().steps == []
    repo.write("beta.tar", archive_with("beta", "int helper;\n"))
    assert_clash(clash(repo))


IMAGES = """\
add_library(between STATIC src/main.c)
target_link_libraries(between PRIVATE mlf::models)
add_library(only_code STATIC src/main.c)
add_executable(behind_a_library src/main.c)
target_link_libraries(behind_a_library PRIVATE between only_code)

add_executable(conditional src/main.c)
target_link_libraries(conditional PRIVATE mlf::alpha $<$<CONFIG:Debug>:mlf::beta>)

add_executable(linked_in_another_folder src/main.c)
add_subdirectory(part)

add_library(plugin SHARED src/main.c)
target_link_libraries(plugin PRIVATE mlf::models)

add_library(one_model SHARED src/main.c)
target_link_libraries(one_model PRIVATE mlf::beta)
add_executable(another_model src/main.c)
target_link_libraries(another_model PRIVATE mlf::alpha one_model)

add_executable(no_model src/main.c)
"""


def compared(repo: CMakeRepo) -> dict[str, set[str]]:
    """Return the models of each image that are compared before it is linked."""
    repo.configure(status=0)
    folder = repo.build_dir / "mlf/.cmake/images"
    return {
        path.stem: {line.partition("=")[0] or Path(line).name for line in path.read_text().splitlines()}
        for path in folder.glob("*.libraries")
    }


def test_every_image_with_two_models_is_checked(repo: CMakeRepo) -> None:
    linked = "target_link_libraries({0} PRIVATE mlf::models)\n"
    there = linked.format("linked_in_another_folder") + "add_executable(made_there ../src/main.c)\n"
    repo.write("part/CMakeLists.txt", there + linked.format("made_there"))
    repo.write("CMakeLists.txt", (repo.root / "CMakeLists.txt").read_text() + IMAGES)
    images = compared(repo)
    assert set(images) == {
        "app", "behind_a_library", "conditional", "linked_in_another_folder", "made_there", "plugin",
    }  # fmt: skip
    assert images.pop("behind_a_library") == {"alpha", "beta", "libbetween.a", "libonly_code.a"}
    assert all(models == {"alpha", "beta"} for models in images.values())
    if repo.generator == "Ninja":
        assert "mlf-check-app" not in repo.ninja("-t", "query", "CMakeFiles/app.dir/src/main.c.o"), (
            "sources do not wait"
        )
        assert "images/app.checked" in repo.ninja("-t", "query", "app")


def test_committed_tree_is_checked(repo: CMakeRepo) -> None:
    for name in ("alpha", "beta"):
        repo.mlfbuild("unpack", f"{name}.tar", "-o", f"trees/{name}")
    repo.replace("CMakeLists.txt", "mlf::models", "mlf::alpha mlf::beta")
    models = "mlfbuild_models(mlfbuild.yml TARGET pc"
    repo.replace("CMakeLists.txt", models, f"mlfbuild_tree(trees/beta)\n{models} MODELS alpha")
    assert compared(repo) == {"app": {"alpha", "beta"}}
    repo.replace("CMakeLists.txt", f"{models} MODELS alpha)", "mlfbuild_tree(trees/alpha)")
    shutil.rmtree(repo.build_dir)
    assert compared(repo) == {"app": {"alpha", "beta"}}
