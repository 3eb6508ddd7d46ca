"""Changes of a required library rebuild what depends on it with ``models.apply(env)``, by the output of SCons."""

import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from support.dependent_models import EXPORTED, write_model, write_repo
from support.examples import first_on_push
from support.firmware_repo import SITE_TOOL, FirmwareRepo, Ran, assert_nothing_ran

SCONSTRUCT = """\
env = Environment(tools=["default", "mlf"], CCFLAGS="-Wall -Wextra -Wconversion -Werror".split())
models = env.MlfModels("mlfbuild.yml")
models.apply(env)
env.Program("build/app", env.Object("build/main.o", "main.c"))
"""
LIBRARY = "build/mlf.lib/pc/libmlf_dep_tiny.a"
COPIED = "Writing build/mlf/pc/mlf.cmake"
RELINKED = [f"ar {LIBRARY}", f"ranlib {LIBRARY}", "gcc build/app"]


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory, tool: Callable[[str], str]) -> Path:
    """A folder with a repository that has been built, and the library next to it."""
    tool("gcc")
    folder = tmp_path_factory.mktemp("built")
    repo = repo_in(folder)
    write_repo(repo.root)
    repo.write("SConstruct", SCONSTRUCT)
    repo.write("site_scons/site_tools/mlf.py", SITE_TOOL)
    repo.build("-Q")
    assert output(repo) == "7 7\n"
    return folder


@pytest.fixture
def repo(built: Path, tmp_path: Path) -> FirmwareRepo:
    """A copy of it, which SCons finds up to date."""
    shutil.copytree(built, tmp_path / "copy")
    return repo_in(tmp_path / "copy")


def repo_in(folder: Path) -> FirmwareRepo:
    repo = FirmwareRepo.__new__(FirmwareRepo)
    repo.root = folder / "repo"
    return repo


def output(repo: FirmwareRepo) -> str:
    return subprocess.run([repo.root / "build/app"], check=True, capture_output=True, text=True).stdout


def rebuild(repo: FirmwareRepo, *arguments: str) -> Ran:
    return repo.scons("-Q", "--debug=explain", *arguments, status=0)


def made(*names: str) -> list[str]:
    return [f"gcc build/mlf.lib/pc/dep_tiny/src-{name}.o" for name in names]


def library(repo: FirmwareRepo, path: str) -> Path:
    return repo.root.parent / "tiny" / path


@pytest.mark.sweep
def test_two_models_share_one_library(repo: FirmwareRepo) -> None:
    assert_nothing_ran(rebuild(repo))
    assert [path.name for path in repo.root.rglob("libmlf_dep_*")] == ["libmlf_dep_tiny.a"]
    copies = repo.root / "build/mlf/pc/dependencies/tiny"
    assert {path.name for path in copies.rglob("*.c")} == {"add.c", "offset.c", "twice.c"}


@pytest.mark.sweep
def test_a_changed_source(repo: FirmwareRepo) -> None:
    library(repo, "src/offset.c").write_text('#include "own.h"\nint tiny_offset(void) { return 5; }\n')
    ran = rebuild(repo)
    assert ran.steps == [COPIED, *made("offset"), *RELINKED]
    assert ran.reasons["build/mlf.lib/pc/dep_tiny/src-offset.o"].endswith("tiny/src/offset.c' changed")
    assert output(repo) == "9 9\n"
    assert_nothing_ran(rebuild(repo))


@pytest.mark.sweep
def test_a_new_source(repo: FirmwareRepo) -> None:
    library(repo, "src/more.c").write_text("int more;\n")
    steps = rebuild(repo).steps
    assert set(made("more")) <= set(steps) and not set(made("add", "offset", "twice")) & set(steps)
    assert_nothing_ran(rebuild(repo))


@pytest.mark.sweep
def test_headers(repo: FirmwareRepo) -> None:
    for name, objects in (("own", made("add", "offset")), ("tiny", made("add", "twice"))):
        header = library(repo, f"src/{name}.h")
        header.write_text(header.read_text() + "/* changed */\n")
        models = [f"gcc build/mlf.lib/pc/{model}/{model}_lib0.o" for model in ("one", "two") if name == "tiny"]
        assert sorted(rebuild(repo).steps) == sorted([COPIED, *objects, *models]), "objects are the same, so it stops"
        assert_nothing_ran(rebuild(repo))


@pytest.mark.parametrize("harm", first_on_push(["delete", "edit"]))
def test_edited_copy_is_restored(repo: FirmwareRepo, harm: str) -> None:
    copy = repo.root / "build/mlf/pc/dependencies/tiny/src/offset.c"
    if harm == "delete":
        copy.unlink()
    else:
        copy.write_text("int tiny_offset(void) { return 99; }\n")
    ran = rebuild(repo)
    assert ran.steps == [COPIED], "its content is what it was when it was compiled"
    assert b"return 3" in copy.read_bytes()
    assert_nothing_ran(rebuild(repo))


@pytest.mark.sweep
def test_changed_provider_keys(repo: FirmwareRepo) -> None:
    repo.replace("mlfbuild.yml", "compile-options: [-O1]", "compile-options: [-O2]")
    steps = rebuild(repo).steps
    assert {*made("add", "offset", "twice"), COPIED} <= set(steps) and not [step for step in steps if "_lib0" in step]
    assert_nothing_ran(rebuild(repo))
    repo.replace("mlfbuild.yml", "version: v1.0", "version: v2.0")
    failed = repo.scons("-Q", status=2)
    assert "dependencies.tiny: is v2.0, but one (one.tar) requires v1.0; " in failed.output
    repo.replace("mlfbuild.yml", "  tiny: {path: ../tiny, version: v2.0", "  other: {path: ../tiny, version: v2.0")
    failed = repo.scons("-Q", status=2)
    assert "dependency tiny: one (one.tar), two (two.tar) need tiny v1.0 " in (failed.output)


@pytest.mark.sweep
def test_model_that_requires_another_function(repo: FirmwareRepo) -> None:
    write_model(repo.root, "two", "tiny_twice")
    steps = rebuild(repo).steps
    assert not [step for step in steps if "dep_tiny" in step]
    assert output(repo) == "7 8\n"
    assert_nothing_ran(rebuild(repo))


def test_clean_removes_all_results(repo: FirmwareRepo) -> None:
    (repo.root / "build/mlf/pc/dependencies/notes.txt").write_text("mine")
    rebuild(repo, "-c")
    left = [path.relative_to(repo.root / "build").as_posix() for path in (repo.root / "build").rglob("*.*")]
    assert [path for path in left if not path.startswith("mlf.lib")] == ["mlf/pc/dependencies/notes.txt"]
    assert not list((repo.root / "build").rglob("*.o"))


def test_package_is_in_cpppath_and_libs(repo: FirmwareRepo) -> None:
    (repo.root / "own").mkdir()
    (repo.root / "own/tiny.h").write_bytes(library(repo, "src/tiny.h").read_bytes())
    (repo.root / "own/tiny.c").write_text("#include <tiny.h>\nint8_t tiny_add(int8_t x) { return (int8_t)(x + 10); }\n")
    text = (repo.root / "mlfbuild.yml").read_text()
    repo.write(
        "mlfbuild.yml", text[: text.index("dependencies:")] + "dependencies:\n  tiny: {package: Tiny, version: v1.0}\n"
    )
    repo.replace(
        "SConstruct",
        "models.apply(env)\n",
        'env.Append(CPPPATH=["own"])\nmodels.apply(env)\n'
        'env.Append(LIBS=env.StaticLibrary("build/tiny", "own/tiny.c"))\n',
    )
    steps = rebuild(repo).steps
    assert not [step for step in steps if "dep_tiny" in step]
    assert output(repo) == "14 14\n"
    assert not (repo.root / "build/mlf/pc/dependencies/tiny").exists()


@pytest.mark.sweep
def test_archive_of_a_program_names_its_library(repo: FirmwareRepo) -> None:
    """SCons makes the archive first, because only the archive names the libraries that its code requires."""
    repo.replace("mlfbuild.yml", "{source: models/one.tar}", EXPORTED)
    rebuild(repo)
    assert output(repo) == "7 7\n"
    assert_nothing_ran(rebuild(repo))
    write_model(repo.root, "one", "tiny_twice")
    steps = rebuild(repo).steps
    assert not [step for step in steps if "dep_tiny" in step]
    assert "gcc build/mlf.lib/pc/one/one_lib0.o" in steps
    assert output(repo) == "8 7\n"
    assert_nothing_ran(rebuild(repo))
