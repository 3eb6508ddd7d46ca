"""``MlfReport``: reports of images in files, made again if the image or other inputs of the report change."""

import json
import re
import subprocess
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from mlfbuild.cli.output.invocation import run
from support.errors import assert_printed
from support.firmware_repo import HEADER, PROJECT, SCONSTRUCT, FirmwareRepo
from support.schemas import validator
from support.snapshot import keep

ELF = "build/m4/app/app.elf"
TEXT, JSON = "build/report.txt", "build/sizes.json"
REPORTS = 'env.MlfReport("build/report", app)\nenv.MlfReport("build/sizes.json", app)\n'
MAIN = """\
#include "app.h"
#include "mlf_board.h"
#include "tvmgen_alpha.h"
int main(void)
{
    int8_t x[8] = {0}, y[4];
    struct tvmgen_alpha_inputs inputs = {x};
    struct tvmgen_alpha_outputs outputs = {y};
    mlf_board_puts(GREETING "\\n");
    return tvmgen_alpha_run(&inputs, &outputs);
}
"""


WITH_BUDGET = PROJECT.replace("alpha.tflite}", "alpha.tflite, budget: {flash: 16 KiB}}")

FILES = {"SConstruct": SCONSTRUCT + REPORTS, "mlfbuild.yml": WITH_BUDGET, "src/main.c": MAIN, "src/app.h": HEADER}


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory, tool: Callable[..., str]) -> FirmwareRepo:
    """A repository with a report of each form, built once for all tests."""
    tool("arm-none-eabi-gcc", "cmake", "ninja")
    repo = FirmwareRepo(tmp_path_factory.mktemp("parent") / "reported")
    for name, text in FILES.items():
        repo.write(name, text)
    ran = repo.build("-Q")
    assert f"Writing {TEXT} from {ELF}\n" in ran.output and f"Writing {JSON} from {ELF}\n" in ran.output
    keep(repo.root)
    return repo


def made(repo: FirmwareRepo, *arguments: str, env: dict[str, str] | None = None) -> set[str]:
    """Return the image and the reports that a build writes."""
    ran = repo.scons("-Q", *arguments, env=env, status=0)
    reports = {path for path in (TEXT, JSON) if f"Writing {path} from {ELF}\n" in ran.output}
    assert reports == ran.written & {TEXT, JSON}, "the words are what happened"
    return ran.written & {TEXT, JSON, ELF}


def test_text(repo: FirmwareRepo) -> None:
    text = repo.read(TEXT).decode()
    size = subprocess.run(["arm-none-eabi-size", ELF], cwd=repo.root, capture_output=True, text=True, check=True)
    code, data, bss = map(int, size.stdout.splitlines()[1].split()[:3])
    assert text.startswith(f"app for m4: {code + data:,} bytes of flash, {data + bss:,} of RAM ({ELF})\n")
    assert "\nmodel alpha, largest in flash\n" in text and " of 16,384 bytes of flash (" in text
    assert str(repo.root) not in text, "the same text in every checkout"


def test_json(repo: FirmwareRepo, capsys: pytest.CaptureFixture[str]) -> None:
    facts = json.loads(repo.read(JSON))
    assert run(["schema", "--report"]) == 0
    validator(json.loads(capsys.readouterr().out)).validate(facts)
    (image,) = facts["images"]
    assert (image["firmware"], image["target"], image["cpu"]) == ("app", "m4", "cortex-m4")
    alpha, beta = image["models"]
    assert (alpha["budget"]["flash"], alpha["budget"]["ram"]) == (16384, None) and "budget" not in beta
    assert alpha["flash"] > 0 and (beta["name"], beta["flash"]) == ("beta", 0), "nobody calls it"
    assert run(["report", "-C", str(repo.root), "--target", "m4", "--format", "json", "-q"]) == 0
    assert json.loads(capsys.readouterr().out) == facts, "the command says the same"


def test_nothing_changed(repo: FirmwareRepo) -> None:
    assert made(repo) == set()


def test_image_linked_again_with_the_same_bytes(repo: FirmwareRepo) -> None:
    repo.write("src/main.c", MAIN + "// the end\n")
    assert made(repo) == {ELF}


def test_changed_image(repo: FirmwareRepo) -> None:
    before = repo.read(TEXT)
    repo.replace("src/app.h", "hello", "a longer greeting than this one was")
    assert made(repo) == {ELF, TEXT, JSON}
    assert repo.read(TEXT) != before
    assert made(repo) == set()


@pytest.mark.sweep
def test_changed_budget(repo: FirmwareRepo) -> None:
    repo.replace("mlfbuild.yml", "16 KiB", "15 KiB")
    assert made(repo) == {TEXT, JSON}, "the image is the same"
    assert b" of 15,360 bytes of flash (" in repo.read(TEXT)
    repo.write("mlfbuild.yml", b"# a comment\n" + repo.read("mlfbuild.yml"))
    assert made(repo) == set()


@pytest.mark.sweep
def test_accepted_baseline(repo: FirmwareRepo) -> None:
    repo.write("mlfbuild.yml", f"budget-file: sizes.json\n{WITH_BUDGET}")
    ran = repo.scons("-Q", status=2)
    assert_printed(ran.output, "baseline-missing", "sizes.json")
    assert "Traceback" not in ran.output
    assert run(["report", "-q", "-C", str(repo.root), "--update-baseline"]) == 0
    assert made(repo) == {TEXT, JSON}
    assert b"\nsince sizes.json\n" in repo.read(TEXT)
    assert "baseline" in json.loads(repo.read(JSON))["images"][0]
    assert made(repo) == set()
    accepted = json.loads(repo.read("sizes.json"))
    accepted["images"]["app for m4"][""]["flash"] += 100
    repo.write("sizes.json", json.dumps(accepted))
    assert made(repo) == {TEXT, JSON}
    assert b"\n  the image: -100 bytes of flash (" in repo.read(TEXT)


@pytest.mark.sweep
def test_changed_mlfbuild(repo: FirmwareRepo, package_copy: Path) -> None:
    path = {"PYTHONPATH": str(package_copy)}
    made(repo, env=path)
    source = package_copy / "mlfbuild/report/text/sizes.py"
    source.write_text(source.read_text().replace('"total"', '"altogether"'))
    assert made(repo, env=path) == {TEXT, JSON}
    assert b"\naltogether " in repo.read(TEXT)


def test_deleted_report_is_made_again(repo: FirmwareRepo) -> None:
    good = repo.read(TEXT)
    (repo.root / TEXT).unlink()
    assert made(repo, "build/report.txt") == {TEXT}
    assert repo.read(TEXT) == good


def test_line_of_the_user(repo: FirmwareRepo) -> None:
    (repo.root / TEXT).unlink()
    repo.replace("SConstruct", 'tools=["default", "mlf"]', 'tools=["default", "mlf"], MLFREPORTCOMSTR="Sizes: $TARGET"')
    assert f"Sizes: {TEXT}\n" in repo.build("-Q", TEXT).output
    (repo.root / TEXT).unlink()
    assert repo.build("-Q", "-s", TEXT).output == ""
    assert (repo.root / TEXT).is_file()


@pytest.mark.parametrize(
    ("call", "code", "place"),
    [
        ('"build/report.md", app', "unknown-report-form", "build/report.md"),
        ('"build/report.txt", []', "report-without-image", "build/report.txt"),
    ],
)
def test_mistakes_in_calls_are_reported(repo: FirmwareRepo, call: str, code: str, place: str) -> None:
    repo.write("SConstruct", f"{SCONSTRUCT}env.MlfReport({call})\n")
    ran = repo.scons("-Q", status=2)
    assert_printed(ran.output, code, f"scons: *** {place}")
    assert 'SConstruct", line 4' in ran.output and "Traceback" not in ran.output


def test_an_image_over_its_budget(repo: FirmwareRepo) -> None:
    repo.replace("mlfbuild.yml", "16 KiB", "100")
    ran = repo.scons("-Q", "-k", status=2)
    assert_printed(ran.output, "size-over-budget", "model alpha", " 100 bytes,")
    assert not ran.written & {TEXT, JSON}, "SCons discards the outputs of a failed step"
    explained = ["build/m4/app/app-over-budget.txt", "build/m4/app/app-over-budget.json"]
    assert f"\nsee {', '.join(explained)}\n" in ran.output
    assert set(explained) <= ran.written
    assert repo.read(explained[0]).startswith(b"app for m4: ") and b" of 100 bytes of flash (" in repo.read(
        explained[0]
    )
    assert json.loads(repo.read(explained[1]))["images"][0]["models"][0]["budget"]["flash"] == 100
    repo.replace("mlfbuild.yml", "100", "16 KiB")
    repo.build("-Q")
    assert not any((repo.root / path).exists() for path in explained), "they would tell of another image"


@pytest.mark.sweep
def test_a_model_over_its_budget_of_instructions(repo: FirmwareRepo, tool: Callable[..., str]) -> None:
    tool("qemu-system-arm", "gcc")
    repo.replace("mlfbuild.yml", "flash: 16 KiB", "instructions: 10")
    ran = repo.scons("-Q", status=2)
    assert_printed(ran.output, "instructions-over-budget", "app.elf for m4: model alpha")
    assert "Traceback" not in ran.output
    repo.replace("mlfbuild.yml", "instructions: 10", "instructions: 10k")
    assert made(repo) == {TEXT, JSON}, "its build has failed, the image is the same"
    ran = repo.build("-Q")
    assert not ran.matching("profile/"), "nothing runs again"
    assert "build/profile/m4/alpha/alpha/counts.json" in repo.build("-Q", "-c").removed


WITH_RUNS = 'env.MlfReport("build/report", app, MLFPROFILE=True)\nenv.MlfReport("build/sizes.json", app)\n'


@pytest.mark.sweep
def test_runs_in_a_report(repo: FirmwareRepo, tool: Callable[..., str]) -> None:
    tool("qemu-system-arm", "gcc")
    repo.write("SConstruct", SCONSTRUCT + WITH_RUNS)
    np.savez(repo.root / "alpha.npz", in0=np.ones((1, 1, 8), np.int8), out0=np.zeros((1, 1, 4), np.int8))
    repo.write("mlfbuild.yml", WITH_BUDGET.replace("alpha.tflite,", "alpha.tflite, vectors: alpha.npz,"))
    assert made(repo) == {TEXT}
    assert re.search(
        rb"\n\nalpha for m4 on mps2-an386: [\d,]+ instructions for the first case of alpha.npz\n", repo.read(TEXT)
    )
    assert b"beta for m4 on" not in repo.read(TEXT), "nobody calls it"
    assert made(repo) == set()
    np.savez(repo.root / "alpha.npz", in0=np.zeros((1, 1, 8), np.int8), out0=np.zeros((1, 1, 4), np.int8))
    assert made(repo) == {TEXT}
    repo.write("SConstruct", SCONSTRUCT + REPORTS)
    assert made(repo) == {TEXT}
    assert b"instructions for" not in repo.read(TEXT)


def test_runs_need_an_image_with_known_models_and_board(repo: FirmwareRepo) -> None:
    repo.write("SConstruct", SCONSTRUCT + 'env.MlfReport("build/report", "other.elf", MLFPROFILE=True)\n')
    ran = repo.scons("-Q", status=2)
    assert_printed(ran.output, "profile-without-firmware", "scons: *** build/report.txt")
    repo.write("SConstruct", SCONSTRUCT + WITH_RUNS)
    repo.replace("mlfbuild.yml", ", board: mps2-an386", "")
    ran = repo.scons("-Q", status=2)
    assert_printed(ran.output, "profile-without-board", "scons: *** build/report.txt", "target 'm4'")


HOST = 'env.MlfReport("build/report.txt", env.MlfFirmware("app", models=env.MlfModels("mlfbuild.yml", target="pc")))\n'


def test_image_for_this_machine(tmp_path: Path) -> None:
    repo = FirmwareRepo(tmp_path)
    repo.write("mlfbuild.yml", PROJECT.replace("m4: {cpu: cortex-m4, board: mps2-an386}", "pc: {cpu: host}")
               .replace("targets: [m4]", "targets: [pc]"))  # fmt: skip
    repo.write("SConstruct", SCONSTRUCT.splitlines(keepends=True)[0] + HOST)
    ran = repo.scons("-Q", status=2)
    assert (
        "scons: *** target 'pc': images for this machine have no report; choose firmware for a target with a board or "
        "toolchain\nFile" in ran.output
    ), ran.output


PROGRAM = """\
flags = ["-mcpu=cortex-m4", "-mthumb"]
env = Environment(
    tools=["default", "mlf"], CC="arm-none-eabi-gcc", AR="arm-none-eabi-ar", RANLIB="arm-none-eabi-ranlib",
    CCFLAGS=[*flags, "-Os"], LINKFLAGS=[*flags, "--specs=nosys.specs", "--specs=nano.specs"],
)
models = env.MlfModels("mlfbuild.yml")
models.apply(env, "alpha")
env.Append(LINKFLAGS=["-Wl,-Map=${TARGET}.map"])
app = env.Program("build/app.elf", "src/main.c")
env.MlfReport("build/report.txt", app)
"""


def test_image_that_scons_links(tmp_path: Path, tool: Callable[..., str]) -> None:
    tool("arm-none-eabi-gcc")
    repo = FirmwareRepo(tmp_path)
    repo.write("src/main.c", '#include "tvmgen_alpha.h"\nint main(void) { return tvmgen_alpha_run(0, 0); }\n')
    with_map = 'env.Append(LINKFLAGS=["-Wl,-Map=${TARGET}.map"])\n'
    repo.write("SConstruct", PROGRAM.replace(with_map, ""))
    repo.build("-Q")
    assert repo.read("build/app.elf.map"), "each link with models writes a map, which the checks read"
    repo.write("SConstruct", PROGRAM)
    repo.build("-Q")
    text = repo.read("build/report.txt").decode()
    assert text.startswith("app.elf: ") and "\nalpha  " in text and "weights  tvmgen_alpha_" in text
    assert not repo.build("-Q").written & {"build/app.elf", "build/report.txt"}
