"""Changes rebuild exactly what depends on them through the CMake package, by the output and files of Ninja and Make."""

import shutil
import tarfile
import time
from collections.abc import Callable
from pathlib import Path

import pytest

import mlfbuild
from support import warm
from support.cmake_repo import MOSTLY_NINJA, PROJECT, CMakeRepo, Ran
from support.examples import first_on_push
from support.snapshot import keep

MADE_ALPHA = ["Checking the tree of model alpha for pc", "Making model alpha for pc"]
LINKED_ALPHA = [
    "Building C object alpha_lib0.c.o", "Comparing the models in app", "Linking C executable app",
    "Linking C static library libmlf_alpha.a",
]  # fmt: skip


@pytest.fixture(scope="module", params=MOSTLY_NINJA)
def shared_repo(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory, tool: Callable[..., str]
) -> CMakeRepo:
    tool("gcc", "cmake", "ninja", "make")
    repo = CMakeRepo(tmp_path_factory.mktemp("repo"), request.param)
    settle(repo)
    keep(repo.folder)
    return repo


@pytest.fixture
def package_copy(tmp_path: Path) -> Path:
    """A folder with a copy of mlfbuild and its compiled modules, which tests can change."""
    package = Path(mlfbuild.__file__).parent
    shutil.copytree(package, tmp_path / "mlfbuild")
    shutil.copytree(package.parent / "cmake", tmp_path / "cmake")
    return tmp_path


def settle(repo: CMakeRepo, env: dict[str, str] | None = None) -> None:
    """Build until nothing is left to do; a build that writes files that it also watches needs another one."""
    for _ in range(2):
        if not repo.build(env=env).steps:
            return
    assert_nothing_ran(repo.build(env=env))


def date_of(repo: CMakeRepo, model: str) -> float:
    """Return the time of the first file in the model's archive."""
    with tarfile.open(repo.build_dir / f"mlf/pc/{model}.tar") as archive:
        return archive.getmembers()[0].mtime


def assert_nothing_ran(ran: Ran) -> None:
    assert ran.steps == []
    assert not ran.archives
    assert not ran.trees
    assert not ran.objects
    assert not ran.linked


def test_nothing_changed(repo: CMakeRepo) -> None:
    ran = repo.build()
    assert_nothing_ran(ran)
    assert not ran.configured
    if repo.generator == "Ninja":
        assert "ninja: no work to do." in ran.output


def test_configuration_compiles_nothing(tmp_path: Path) -> None:
    repo = CMakeRepo(tmp_path)
    ran = repo.configure(status=0)
    made = {path for path in ran.written if path.startswith("mlf/")}
    paths = ("mlf/.cmake/pc/{}.settings", "mlf/pc/{}/mlf.cmake")
    models = {path.format(name) for name in ("alpha", "beta") for path in paths}
    assert made == models | {"mlf/.cmake/generator", "mlf/.cmake/images/app.libraries"}


def test_second_configuration_makes_nothing(repo: CMakeRepo) -> None:
    (repo.build_dir / "CMakeCache.txt").unlink()
    assert_nothing_ran(repo.build())


@pytest.mark.sweep
def test_fresh_configuration_compiles_no_model_again(repo: CMakeRepo) -> None:
    (repo.build_dir / "CMakeCache.txt").unlink()
    shutil.rmtree(repo.build_dir / "CMakeFiles")  # as `cmake --fresh` does
    ran = repo.build()
    assert not ran.archives
    assert not ran.trees


def test_touch(repo: CMakeRepo) -> None:
    (repo.root / "models/alpha.tflite").touch()
    ran = repo.build(explain=True)
    assert ran.steps == MADE_ALPHA, "one generator may run, nothing behind it"
    assert "alpha.tflite" in ran.causes
    assert not ran.archives
    assert not ran.trees
    assert_nothing_ran(repo.build())


@pytest.mark.parametrize("touched", ["mlfbuild.yml", "CMakeLists.txt"])
def test_touching_inputs_of_the_configuration(repo: CMakeRepo, touched: str) -> None:
    (repo.root / touched).touch()
    ran = repo.build(explain=True)
    assert ran.configured
    assert touched in ran.causes or repo.generator != "Ninja", "with Makefiles CMake itself looks, not Make"
    assert_nothing_ran(ran)
    assert not repo.build().configured


def test_a_comment_in_the_project_file(repo: CMakeRepo) -> None:
    repo.write("mlfbuild.yml", "# a comment\n" + (repo.root / "mlfbuild.yml").read_text())
    assert_nothing_ran(repo.build())


@pytest.mark.sweep
def test_one_models_options(repo: CMakeRepo) -> None:
    repo.replace("mlfbuild.yml", "alpha.tflite}", "alpha.tflite, placement: {params: .rodata.elsewhere}}")
    ran = repo.build(explain=True)
    assert "alpha.settings" in ran.causes
    assert ran.steps == sorted(MADE_ALPHA + LINKED_ALPHA)
    assert ran.archives == {"alpha"}
    assert ran.trees == {"alpha"}
    assert_nothing_ran(repo.build())


def test_weights_of_one_model(repo: CMakeRepo) -> None:
    repo.write_model("alpha", seed=7)
    ran = repo.build(explain=True)
    assert ran.steps == sorted(MADE_ALPHA + LINKED_ALPHA), "main.c, which includes the header, is not compiled again"
    assert "alpha.tflite" in ran.causes
    assert not {cause for cause in ran.causes if "beta" in cause}
    assert ran.archives == {"alpha"}
    assert ran.trees == {"alpha"}
    assert "mlf/pc/alpha/codegen/host/src/alpha_lib0.c" in ran.written
    assert not [path for path in ran.written if path.endswith(".h")], "neither the interface nor kernels changed"
    assert_nothing_ran(repo.build())


def test_the_date_of_archives_is_that_of_the_configuration(repo: CMakeRepo) -> None:
    later = {"SOURCE_DATE_EPOCH": "1700000000"}
    assert_nothing_ran(repo.build(env=later))
    repo.write_model("alpha", seed=7)
    assert repo.build(env=later).archives == {"alpha"}
    assert date_of(repo, "alpha") == date_of(repo, "beta")
    assert not repo.configure(env=later, status=0).archives
    assert repo.build().archives == {"alpha", "beta"}
    assert (date_of(repo, "alpha"), date_of(repo, "beta")) == (1700000000, 1700000000)
    assert_nothing_ran(repo.build())


@pytest.mark.sweep
def test_a_model_is_added(repo: CMakeRepo) -> None:
    repo.replace("mlfbuild.yml", "gamma.tflite, targets: [m4]", "gamma.tflite")
    ran = repo.build()
    assert ran.archives == {"gamma"}
    assert ran.trees == {"gamma"}
    assert ran.objects - {"main.c.o"} == {"gamma_lib0.c.o"}, "main.c has one include folder more"
    assert ran.linked
    assert_nothing_ran(repo.build())


@pytest.mark.sweep
def test_a_model_is_removed(repo: CMakeRepo) -> None:
    repo.write("src/main.c", "int main(void) { return 0; }\n")
    repo.build()
    repo.write("build/mlf/pc/beta/codegen/notes.txt", "mine")
    repo.replace("mlfbuild.yml", "  beta: {source: models/beta.tflite}\n", "")
    ran = repo.build()
    assert not ran.archives
    assert ran.objects <= {"main.c.o"}
    assert ran.linked
    left = {path.relative_to(repo.build_dir).as_posix() for path in (repo.build_dir / "mlf/pc").iterdir()}
    assert left == {"mlf/pc/alpha", "mlf/pc/alpha.tar", "mlf/pc/.alpha.tar.key", "mlf/pc/beta"}
    assert [path.name for path in (repo.build_dir / "mlf/pc/beta").rglob("*") if path.is_file()] == ["notes.txt"]
    assert_nothing_ran(repo.build())
    repo.write("mlfbuild.yml", PROJECT)
    ran = repo.build()
    assert ran.archives == {"beta"}
    assert ran.linked


@pytest.mark.sweep
def test_changed_generator_with_the_same_output(repo: CMakeRepo, package_copy: Path) -> None:
    path = {"PYTHONPATH": str(package_copy)}
    assert repo.configure(env=path).status == 0
    settle(repo, path)
    source = package_copy / "mlfbuild/native/__init__.py"
    source.write_text(source.read_text() + "\n# a comment that changes no output\n")
    ran = repo.build(env=path)
    assert ran.configured
    assert ran.archives == {"alpha", "beta"}
    assert not ran.trees
    assert {step.split()[0] for step in ran.steps} == {"Making", "Checking"}
    assert not ran.objects
    assert_nothing_ran(repo.build(env=path))


def test_a_kernel_header(repo: CMakeRepo, package_copy: Path) -> None:
    path = {"PYTHONPATH": str(package_copy)}
    assert repo.configure(env=path).status == 0
    settle(repo, path)
    header = package_copy / "mlfbuild/native/kernels/portable/numbers/compiler.h"
    header.write_text(header.read_text() + "/* one line more */\n")
    ran = repo.build(env=path)
    assert ran.trees == {"alpha", "beta"}, "the sources have another hash of the kernels"
    assert {"alpha_lib0.c.o", "beta_lib0.c.o"} <= ran.objects
    assert (repo.build_dir / "mlf/pc/alpha/codegen/host/src/mlfbuild/compiler.h").read_bytes() == header.read_bytes()
    settle(repo, path)


def test_a_firmware_header(repo: CMakeRepo) -> None:
    repo.write("src/app.h", "#define STATUS 0 /* still */\n")
    ran = repo.build(explain=True)
    assert ran.steps == ["Building C object main.c.o", "Linking C executable app"]
    assert "app.h" in ran.causes


@pytest.mark.parametrize(
    "damage", first_on_push(["edited", "fragment deleted", "deleted", "record deleted", "fragment edited"], 2)
)
def test_unpacked_file_is_restored(repo: CMakeRepo, damage: str) -> None:
    names = {"record": "RECORD.json", "fragment": "mlf.cmake"}
    victim = repo.build_dir / "mlf/pc/alpha" / names.get(damage.split(maxsplit=1)[0], "codegen/host/src/alpha_lib0.c")
    good = victim.read_bytes()
    time.sleep(0.01)
    if damage.endswith("edited"):
        victim.write_bytes(good + b"# error\n")
    else:
        victim.unlink()
    ran = repo.build(explain=True)
    assert victim.name in ran.causes
    assert victim.read_bytes() == good
    assert not ran.archives
    assert ran.trees == {"alpha"}
    settle(repo)


def test_file_edited_before_a_build_is_resumed_is_restored(repo: CMakeRepo) -> None:
    victim = repo.build_dir / "mlf/pc/alpha/codegen/host/src/alpha_lib0.c"
    good = victim.read_bytes()
    (checked,) = (repo.build_dir / "mlf/.cmake/pc").glob("alpha.*.checked")
    checked.unlink()  # it was stopped between the two steps of a model
    checked.with_name(f"{checked.name}.fresh").write_bytes(b"")
    time.sleep(0.01)
    victim.write_bytes(good + b"# error\n")
    ran = repo.build()
    assert victim.read_bytes() == good
    assert "Checking the tree of model alpha for pc" in ran.steps
    settle(repo)


def test_making_a_model_runs_mlfbuild_once(repo: CMakeRepo, tmp_path: Path) -> None:
    command = tmp_path / "mlfbuild"
    program = warm.command("mlfbuild")
    command.write_text(f'#!/bin/sh\necho "$1" >> "{tmp_path}/verbs"\nexec "{program}" "$@"\n')
    command.chmod(0o755)
    assert repo.configure(f"-DMLFBUILD_COMMAND={command}").status == 0
    settle(repo)
    (tmp_path / "verbs").unlink()
    repo.write_model("alpha", seed=7)
    repo.build()
    assert (tmp_path / "verbs").read_text().split() == ["generate", "clashes"]


@pytest.mark.sweep
def test_clean_keeps_files_of_the_user(repo: CMakeRepo) -> None:
    mine = repo.write("build/mlf/pc/alpha/codegen/host/src/notes.txt", "mine")
    repo.build("--target", "clean")
    assert mine.read_text() == "mine"
    left = {path.name for path in (repo.build_dir / "mlf/pc").rglob("*") if path.is_file()}
    assert left == {"notes.txt", "mlf.cmake"}
    for name in ("src/main.c", "mlfbuild.yml", "models/alpha.tflite"):
        assert (repo.root / name).is_file()
    mine.unlink()
    ran = repo.build()
    assert ran.archives == {"alpha", "beta"}
    assert ran.linked


@pytest.mark.sweep
def test_makefiles(tmp_path: Path, tool: Callable[..., str]) -> None:
    """In the sweep, the other tests run with Makefiles."""
    tool("make")
    repo = CMakeRepo(tmp_path, "Unix Makefiles")
    settle(repo)
    for check in (test_nothing_changed, test_touch, test_a_firmware_header, test_weights_of_one_model):
        check(repo)


def test_a_new_file_that_a_pattern_matches_is_a_model(repo: CMakeRepo) -> None:
    repo.write("mlfbuild.yml", "mlfbuild: 1\ntargets: {pc: {cpu: host}}\nmodels: ['models/[ab]*.tflite']\n")
    settle(repo)
    repo.write_model("beta2", 7)
    ran = repo.build()
    assert ran.configured
    assert ran.archives == {"beta2"}
    assert ran.trees == {"beta2"}
    assert "mlf.cmake" in {Path(path).name for path in ran.written}
    settle(repo)
