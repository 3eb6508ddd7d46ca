"""Programs that SCons links itself: models that share a global symbol are reported before linking."""

import re
from collections.abc import Callable
from pathlib import Path

import pytest

from support.firmware_repo import FirmwareRepo
from support.libraries import archive_with

PROJECT = """\
mlfbuild: 1
targets: {pc: {cpu: host}}
models:
  alpha: {source: alpha.tar}
  beta: {source: beta.tar}
"""
SCONSTRUCT = """\
env = Environment(tools=["default", "mlf"])
models = env.MlfModels("mlfbuild.yml")
models.apply(env)
env.Program("app", ["main.c"])
"""
CLASH = (
    "app: models alpha and beta both define the global symbol 'helper' "
    "(libmlf_alpha.a(alpha_helper.o), libmlf_beta.a(beta_helper.o))"
)


@pytest.fixture
def repo(tmp_path: Path, tool: Callable[[str], str]) -> FirmwareRepo:
    tool("gcc")
    repo = FirmwareRepo(tmp_path)
    (tmp_path / "CMakeLists.txt").unlink()
    repo.write("mlfbuild.yml", PROJECT)
    repo.write("SConstruct", SCONSTRUCT)
    repo.write("main.c", "int main(void) { return 0; }\n")
    for name in ("alpha", "beta"):
        repo.write(f"{name}.tar", archive_with(name, "int helper;\n"))
    return repo


def test_conflict_fails_the_build_until_it_is_resolved(repo: FirmwareRepo) -> None:
    for _ in range(2):
        ran = repo.scons("-Q", "-j2", status=2)
        assert CLASH in ran.output
        assert "Traceback" not in ran.output
        assert not (repo.root / "app").exists(), "nothing is linked"
    repo.write("beta.tar", archive_with("beta", "static int helper;\nint *beta_helper = &helper;\n"))
    assert "_check" not in repo.build("-Q").output, "and nothing is printed where all is well"
    assert (repo.root / "app").is_file()
    assert "`.' is up to date" in repo.build("-Q").output


def test_conflict_is_reported_however_the_program_is_linked(repo: FirmwareRepo) -> None:
    repo.write(
        "SConstruct",
        SCONSTRUCT + 'main = env.Object("main.c")\n'
        'env.Program("own_list", main, LIBS=[*env["LIBS"], "m"])\n'
        'env.Program("as_sources", [*main, *models.apply(env)], LIBS=[])\n'
        'env["PROGEMITTER"] = lambda target, source, env: (target, source)\n'
        'env.Program("emitter", main)\n'
        'late = Environment(tools=["default", "mlf"])\nmodels.apply(late, "alpha")\n'
        'late.Program("late", main)\nmodels.apply(late, "beta")\n'
        'late.Clone().Program("clone", main)\n',
    )
    output = repo.scons("-Q", "-k").output
    for program in ("app", "own_list", "as_sources", "emitter", "late", "clone"):
        both = r"models (alpha and beta|beta and alpha) both define the global symbol 'helper'"
        assert re.search(rf"\[{program}\] {program}: {both}", output)


def test_conflict_with_the_firmware_is_reported(repo: FirmwareRepo) -> None:
    repo.write("beta.tar", archive_with("beta", "static int helper;\nint *beta_helper = &helper;\n"))
    repo.write("main.c", "int helper;\nint main(void) { return 0; }\n")
    ran = repo.scons("-Q", status=2)
    assert (
        "app: model alpha and the firmware both define the global symbol 'helper' (libmlf_alpha.a(alpha_helper.o), "
        "main.o); rename it in the firmware, or make it static"
    ) in ran.output


@pytest.mark.sweep
def test_models_of_two_programs_do_not_conflict(repo: FirmwareRepo) -> None:
    repo.write(
        "SConstruct",
        SCONSTRUCT.split("models.apply", maxsplit=1)[0]
        + 'for name in ("alpha", "beta"):\n    own = env.Clone()\n    models.apply(own, name)\n'
        '    own.Program(name, [own.Object(name + "_main", "main.c")])\n',
    )
    repo.build()


def test_a_dry_run_compares_nothing(repo: FirmwareRepo) -> None:
    assert repo.scons("-Q", "-n").status == 0
