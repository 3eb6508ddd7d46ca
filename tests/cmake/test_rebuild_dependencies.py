"""Changes of a required library rebuild what depends on it through the CMake package, by Ninja's output and files."""

import shutil
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from support.cmake_repo import CMakeRepo, Ran
from support.dependent_models import EXPORTED, write_model, write_repo
from support.examples import first_on_push
from support.snapshot import keep, restore

CMAKELISTS = """\
cmake_minimum_required(VERSION 3.22)
project(app LANGUAGES C)
add_compile_options(-Wall -Wextra -Wconversion -Werror)
find_package(mlfbuild CONFIG REQUIRED)
mlfbuild_models(mlfbuild.yml TARGET pc)
add_executable(app main.c)
target_link_libraries(app PRIVATE mlf::models)
"""
RELINKED = ["Comparing the models in app", "Linking C executable app", "Linking C static library libmlf_dep_tiny.a"]


class Repo(CMakeRepo):
    """A repository whose two models require a library in a folder next to it."""

    library: Path

    def write_all(self) -> None:
        self.library = write_repo(self.root)
        self.write("CMakeLists.txt", CMAKELISTS)

    @property
    def output(self) -> str:
        return subprocess.run([self.build_dir / "app"], check=True, capture_output=True, text=True).stdout


@pytest.fixture(scope="module")
def shared_repo(tmp_path_factory: pytest.TempPathFactory, tool: Callable[..., str]) -> Repo:
    tool("gcc", "cmake", "ninja")
    repo = Repo(tmp_path_factory.mktemp("repo"))
    for _ in range(3):
        if not repo.build().steps:
            break
    assert_nothing_ran(repo.build())
    keep(repo.folder)
    return repo


@pytest.fixture
def repo(shared_repo: Repo) -> Iterator[Repo]:
    """A repository after its first complete build."""
    restore(shared_repo.folder)
    yield shared_repo
    assert_nothing_ran(shared_repo.build())


def assert_nothing_ran(ran: Ran) -> None:
    assert "ninja: no work to do." in ran.output, ran.output
    assert ran.written <= {".ninja_log", ".ninja_deps"}


def rebuilt(repo: Repo) -> Ran:
    """Build once, and assert that no model was compiled or unpacked."""
    ran = repo.build(explain=True)
    assert not ran.archives
    assert not ran.trees - {"dependencies"}
    return ran


@pytest.mark.sweep
def test_two_models_share_one_library(repo: Repo) -> None:
    assert repo.output == "7 7\n"
    assert [path.name for path in repo.build_dir.rglob("libmlf_dep_*")] == ["libmlf_dep_tiny.a"]
    copies = repo.build_dir / "mlf/pc/dependencies/tiny"
    assert {path.name for path in copies.rglob("*.c")} == {"add.c", "offset.c", "twice.c"}


def test_a_changed_source(repo: Repo) -> None:
    (repo.library / "src/offset.c").write_text('#include "own.h"\nint tiny_offset(void) { return 5; }\n')
    ran = rebuilt(repo)
    assert "offset.c" in ran.causes
    assert ran.steps == sorted(["Building C object offset.c.o", *RELINKED])
    assert repo.output == "9 9\n"


def test_a_new_source(repo: Repo) -> None:
    (repo.library / "src/more").mkdir(exist_ok=True)
    (repo.library / "src/more/more.c").write_text("int tiny_more(void);\nint tiny_more(void) { return 5; }\n")
    assert rebuilt(repo).objects == {"more.c.o"}
    (repo.library / "src/offset.c").write_text(
        '#include "own.h"\nint tiny_more(void);\nint tiny_offset(void) { return tiny_more(); }\n'
    )
    assert rebuilt(repo).objects == {"offset.c.o"}
    assert repo.output == "9 9\n"


def test_a_header(repo: Repo) -> None:
    header = repo.library / "src/own.h"
    header.write_text(header.read_text() + "/* changed */\n")
    ran = rebuilt(repo)
    assert ran.objects == {"add.c.o", "offset.c.o"}


@pytest.mark.sweep
def test_header_that_models_include(repo: Repo) -> None:
    header = repo.library / "src/tiny.h"
    header.write_text(header.read_text() + "/* changed */\n")
    ran = rebuilt(repo)
    assert ran.objects == {"add.c.o", "twice.c.o", "one_lib0.c.o", "two_lib0.c.o"}


@pytest.mark.parametrize("harm", first_on_push(["delete", "edit"]))
def test_edited_copy_is_restored(repo: Repo, harm: str) -> None:
    copy = repo.build_dir / "mlf/pc/dependencies/tiny/src/offset.c"
    if harm == "delete":
        copy.unlink()
    else:
        copy.write_text("int tiny_offset(void) { return 99; }\n")
    ran = rebuilt(repo)
    assert ran.objects == {"offset.c.o"}
    assert repo.output == "7 7\n"


@pytest.mark.sweep
def test_changed_provider_keys(repo: Repo) -> None:
    repo.replace("mlfbuild.yml", "compile-options: [-O1]", "compile-options: [-O2]")
    ran = rebuilt(repo)
    assert ran.objects == {"add.c.o", "offset.c.o", "twice.c.o"}
    repo.replace("mlfbuild.yml", "version: v1.0", "version: v2.0")
    failed = repo.run_build()
    assert failed.status != 0
    words = " ".join(failed.output.split())
    assert "dependencies.tiny: is v2.0, but one (one.tar) requires v1.0; " in words
    repo.replace("mlfbuild.yml", "version: v2.0", 'version: "1.0"')
    assert not rebuilt(repo).objects, "the version is in a comment alone"


def test_another_folder(repo: Repo) -> None:
    other = repo.library.with_name("other")
    shutil.copytree(repo.library, other, dirs_exist_ok=True)
    (other / "src/offset.c").write_text('#include "own.h"\nint tiny_offset(void) { return 1; }\n')
    repo.replace("mlfbuild.yml", "path: ../tiny", "path: ../other")
    assert rebuilt(repo).objects == {"offset.c.o"}
    assert repo.output == "5 5\n"


@pytest.mark.sweep
def test_model_that_requires_another_function(repo: Repo) -> None:
    write_model(repo.root, "two", "tiny_twice")
    ran = repo.build()
    assert ran.archives == {"two"}
    assert ran.objects == {"two_lib0.c.o"}
    assert repo.output == "7 8\n"


@pytest.mark.sweep
def test_archive_of_a_program_names_its_library(repo: Repo) -> None:
    """CMake makes the archive first, because only the archive names the libraries that its code requires."""
    text = (repo.root / "mlfbuild.yml").read_text()
    repo.write("mlfbuild.yml", text.replace("{source: models/one.tar}", EXPORTED))
    repo.build()
    assert repo.output == "7 7\n"
    assert_nothing_ran(repo.build())
    write_model(repo.root, "one", "tiny_twice")
    ran = repo.build()
    assert ran.archives == {"one"}
    assert ran.objects == {"one_lib0.c.o"}
    assert repo.output == "8 7\n"


def test_missing_provider_stops_the_configuration(repo: Repo) -> None:
    text = (repo.root / "mlfbuild.yml").read_text()
    repo.write("mlfbuild.yml", text[: text.index("dependencies:")])
    failed = repo.run_build()
    assert failed.status != 0
    words = " ".join(failed.output.split())
    assert "dependency tiny: one (one.tar), two (two.tar) need tiny v1.0 " in words
    repo.write("mlfbuild.yml", text)
    assert not repo.build().objects, "only CMake runs again"
