"""Models that never run at the same time share one workspace in the image, and a check detects it if they do."""

import re
import subprocess
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from elftools.elf.elffile import ELFFile

from mlfbuild.compilers import compiler_called
from mlfbuild.core.errors import UsageError
from mlfbuild.jobs import firmware_jobs, load, target_jobs
from mlfbuild.jobs.committed_tree import committed
from mlfbuild.library import CompileRequest
from mlfbuild.library.keys import Placement
from mlfbuild.targets import CPUS
from mlfbuild.usecases.build import BuildReport, build_project as build
from support import warm
from support.errors import raises
from support.examples import first_on_push
from support.host_c import WARNINGS
from support.tflite_builder import Network

PROJECT = """\
mlfbuild: 1
targets: {pc: {cpu: host}}
models:
  small: {source: small.tflite}
  large: {source: large.tflite}
  other: {source: other.tflite}
firmware: {app: {cmake: .}}
"""
SHARED = "share-workspace: [small, large]\n"

CMAKELISTS = """\
cmake_minimum_required(VERSION 3.22)
project(app LANGUAGES C)
include("${MLF_TREE}/mlf.cmake")
add_executable(app main.c)
target_link_libraries(app PRIVATE mlf::models m)
"""

# Calls every model; then one of the two again and again, while a timer's signal comes in between and calls the other.
MAIN = r"""
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/time.h>
#include "tvmgen_large.h"
#include "tvmgen_other.h"
#include "tvmgen_small.h"

#define CALL(model, in, out) \
    tvmgen_##model##_run(&(struct tvmgen_##model##_inputs){in}, &(struct tvmgen_##model##_outputs){out})

static int8_t input[512], expected[512], output[512], other[512];
static volatile int inside, interrupted, refused, wrong;

static void interrupt(int signal) {
    static int8_t scratch[512];
    const int32_t status = CALL(small, input, scratch);
    (void)signal;
    interrupted += inside;
    refused += inside && status == -2;
    wrong += status != 0 && status != -2;
    wrong += !inside && status != 0;
}

int main(int argc, char **argv) {
    const struct itimerval often = {{0, 100}, {0, 100}};
    for (int i = 0; i < 512; i++) input[i] = (int8_t)(i * 7);
    if (CALL(small, input, output) != 0 || CALL(large, input, expected) != 0) return 1;
    if (CALL(other, input, other) != 0) return 1;
    if (argc > 1 && strcmp(argv[1], "interrupt") == 0) {
        signal(SIGALRM, interrupt);
        setitimer(ITIMER_REAL, &often, 0);
        for (int i = 0; i < 20000000 && refused < 20 && interrupted < 2000; i++) {
            inside = 1;
            const int32_t status = CALL(large, input, output);
            inside = 0;
            wrong += status != 0 || memcmp(output, expected, sizeof output) != 0;
        }
        setitimer(ITIMER_REAL, &(struct itimerval){0}, 0);
        signal(SIGALRM, SIG_IGN);
        wrong += CALL(small, input, output) != 0; /* the refused calls left the workspace to others */
    }
    for (int i = 0; i < 4; i++) printf("%d %d ", expected[i], other[i]);
    printf("refused %s, wrong %d\n", refused >= 20 ? "often" : "never", wrong);
    return 0;
}
"""


def network(seed: int, *, width: int) -> bytes:
    """Return two int8 FULLY_CONNECTED layers with ``width`` values between them, which are in the workspace."""
    random = np.random.default_rng(seed)
    made = Network()
    source = made.input((1, 64), scale=0.05, zero_point=3)
    weights = [random.integers(-127, 128, shape, np.int8) for shape in ((width, 64), (32, width))]
    bias = [random.integers(-500, 500, size, np.int32) for size in (width, 32)]
    between = made.fully_connected(source, weights[0], bias[0], weight_scales=[0.01], scale=0.5)
    return made.build([made.fully_connected(between, weights[1], bias[1], weight_scales=[0.01], scale=2.0)])


class Repo:
    """A firmware repository of three models for this machine."""

    def __init__(self, root: Path) -> None:
        self.root = root
        for seed, (name, width) in enumerate({"small": 48, "large": 400, "other": 96}.items()):
            (root / f"{name}.tflite").write_bytes(network(seed, width=width))
        (root / "main.c").write_text(MAIN)

    def build(self, extra: str = "", *, kind: str = "Debug") -> BuildReport:
        (self.root / "mlfbuild.yml").write_text(PROJECT + extra)
        (self.root / "CMakeLists.txt").write_text(f"set(CMAKE_BUILD_TYPE {kind})\n{CMAKELISTS}")
        project = load(self.root / "mlfbuild.yml")
        targets = target_jobs(project)
        return build(targets, firmware_jobs(project, targets))

    def run(self, *arguments: str) -> str:
        command = [self.root / "build/pc/app/app", *arguments]
        return subprocess.run(command, capture_output=True, text=True, check=True, timeout=120).stdout

    def variables(self) -> dict[str, int]:
        """Return the bytes of each workspace in the image, and of its flag."""
        with (self.root / "build/pc/app/app").open("rb") as file:
            table = ELFFile(file).get_section_by_name(".symtab")
            return {symbol.name: symbol["st_size"] for symbol in table.iter_symbols() if "workspace" in symbol.name}

    def source(self, model: str) -> str:
        return (self.root / f"build/mlf/pc/{model}/codegen/host/src/{model}_lib0.c").read_text()


@pytest.fixture
def repo(tmp_path: Path, tool: Callable[[str], str]) -> Repo:
    tool("cmake")
    return Repo(tmp_path)


def test_image_has_one_workspace_of_the_largest_size(repo: Repo) -> None:
    repo.build(kind="Release")
    apart, answers = repo.variables(), repo.run()
    assert set(apart) == {"tvmgen_small_workspace", "tvmgen_large_workspace", "tvmgen_other_workspace"}
    assert apart["tvmgen_small_workspace"] < apart["tvmgen_large_workspace"]
    repo.build(SHARED, kind="Release")
    assert repo.variables() == {
        "mlf_shared_workspace": apart["tvmgen_large_workspace"],
        "tvmgen_other_workspace": apart["tvmgen_other_workspace"],
    }
    assert repo.run() == answers


def test_concurrent_models_have_workspaces_and_checks_of_their_own(repo: Repo) -> None:
    repo.build()
    apart, answers = repo.variables(), repo.run()
    repo.build("share-workspace: [large, other, small]\nconcurrent: [[small, large]]\n")
    together = repo.variables()
    assert together == {
        "mlf_shared_workspace": apart["tvmgen_large_workspace"],
        "mlf_shared_workspace_2": apart["tvmgen_small_workspace"],
        "mlf_shared_workspace_busy": 1,
        "mlf_shared_workspace_2_busy": 1,
    }
    assert sum(together.values()) < sum(apart.values())
    # A signal's run of one during a run of the other is not refused, and both results are right.
    assert repo.run("interrupt") == repo.run() == answers


def test_simultaneous_runs_are_detected_without_ndebug(repo: Repo) -> None:
    repo.build()
    answers = repo.run()
    repo.build(SHARED)
    assert repo.variables()["mlf_shared_workspace_busy"] == 1
    assert repo.run() == answers
    assert repo.run("interrupt") == answers.replace("never", "often")


@pytest.mark.sweep
def test_sharing_rebuilds_only_those_models(repo: Repo) -> None:
    repo.build()
    for extra, compiled in ((SHARED, {"small", "large"}), (SHARED, set()), ("", {"small", "large"})):
        report = repo.build(extra)
        assert {result.job.model for result in report.models if result.compiled} == compiled


def test_code_differs_only_in_the_workspace(repo: Repo) -> None:
    def operators(model: str) -> str:
        text = repo.source(model)
        return text[text.index("MLF_NOINLINE") : text.index(f"int32_t tvmgen_{model}_run")]

    repo.build()
    alone = {model: repo.source(model) for model in ("small", "large", "other")}
    before = {model: operators(model) for model in ("small", "large")}
    repo.build(SHARED)
    assert repo.source("other") == alone["other"]
    assert {model: operators(model) for model in before} == before
    changed = set(repo.source("small").splitlines()) - set(alone["small"].splitlines())
    assert changed
    assert "tvmgen_small_workspace" not in repo.source("small")


BUILDS = {
    "mlf.mk": (
        "Makefile",
        (
            "include tree/mlf.mk\nCFLAGS = {flags}\nbuild/pc/app/app: main.c $(MLF_LIBRARIES)\n"
            "\t$(CC) $(CFLAGS) $(MLF_INCLUDES) -o $@ $^ -lm\n"
        ),
    ),
    "SConscript": (
        "SConstruct",
        (
            "env = Environment(CCFLAGS='{flags}', LIBS=['m'])\n"
            "models = SConscript('tree/SConscript', exports='env', variant_dir='out', duplicate=False)\n"
            "env.Prepend(**models)\nenv.Program('build/pc/app/app', 'main.c')\n"
        ),
    ),
    "models.apply": (
        "SConstruct",
        (
            "env = Environment(tools=['default', 'mlf'], CCFLAGS='{flags}', LIBS=['m'])\n"
            "env.MlfModels('mlfbuild.yml').apply(env)\nenv.Program('build/pc/app/app', 'main.c')\n"
        ),
    ),
}


@pytest.mark.parametrize(
    "flags", first_on_push(["-O1", "-O2 -DNDEBUG", "-O2 -flto -DNDEBUG"]), ids=["debug", "release", "lto"]
)
@pytest.mark.parametrize("way", BUILDS)
def test_builds_without_cmake_have_one_workspace_and_the_check(
    repo: Repo, tool: Callable[[str], str], way: str, flags: str
) -> None:
    (repo.root / "mlfbuild.yml").write_text(PROJECT.split("firmware", maxsplit=1)[0] + SHARED)
    name, text = BUILDS[way]
    (repo.root / name).write_text(text.format(flags=flags))
    if way == "models.apply":
        (repo.root / "site_scons/site_tools").mkdir(parents=True)
        (repo.root / "site_scons/site_tools/mlf.py").write_text("from mlfbuild.scons import exists, generate\n")
    else:
        project = load(repo.root / "mlfbuild.yml")
        build([committed(project, target_jobs(project), repo.root / "tree")])
    (repo.root / "build/pc/app").mkdir(parents=True, exist_ok=True)
    command = [tool("make"), "build/pc/app/app"] if way == "mlf.mk" else [warm.command("SCons"), "-Q"]
    done = subprocess.run(command, cwd=repo.root, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    guarded = "NDEBUG" not in flags
    sizes = repo.variables()
    assert set(sizes) == {
        "mlf_shared_workspace",
        "tvmgen_other_workspace",
        *(["mlf_shared_workspace_busy"] if guarded else []),
    }
    largest = max(workspace_size(repo, way, model) for model in ("small", "large"))
    assert sizes["mlf_shared_workspace"] == largest > workspace_size(repo, way, "small")
    assert "wrong 0" in repo.run()
    if guarded:
        assert "refused often, wrong 0" in repo.run("interrupt")


def workspace_size(repo: Repo, way: str, model: str) -> int:
    """Return the bytes of a model's workspace in its header."""
    tree = repo.root / ("build/mlf/pc" if way == "models.apply" else "tree")
    header = (tree / f"{model}/codegen/host/include/tvmgen_{model}.h").read_text()
    found = re.search(rf"^#define TVMGEN_{model.upper()}_WORKSPACE_SIZE (\d+)", header, re.MULTILINE)
    assert found is not None
    return int(found[1])


@pytest.mark.parametrize(
    ("compiler", "flags"),
    [
        ("gcc", []),
        ("gcc", ["-DNDEBUG"]),
        ("arm-none-eabi-gcc", ["-mcpu=cortex-m4"]),
        ("arm-none-eabi-gcc", ["-mcpu=cortex-m0plus"]),
    ],
    ids=["debug", "release", "m4", "m0plus"],
)
def test_shared_code_compiles_without_a_warning(
    tmp_path: Path, tool: Callable[[str], str], compiler: str, flags: list[str]
) -> None:
    model = tmp_path / "net.tflite"
    model.write_bytes(network(1, width=8))
    request = CompileRequest("net", model, CPUS["host"], placement=Placement(shares_workspace=1))
    (module,) = compiler_called("native").compile(request).modules
    for file in module.codegen:
        path = tmp_path / file.path
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(bytes(file.data))
    include = f"-I{tmp_path / 'host/include'}"
    source = tmp_path / "host/src/net_lib0.c"
    subprocess.run([tool(compiler), *WARNINGS, *flags, include, "-c", source, "-o", tmp_path / "net.o"], check=True)
    symbols = subprocess.run([tool("nm"), tmp_path / "net.o"], capture_output=True, text=True, check=True).stdout
    assert " C mlf_shared_workspace\n" in symbols
    assert ("mlf_shared_workspace_busy" in symbols) == (flags != ["-DNDEBUG"])
    assert " U __atomic" not in symbols, "cores without the instructions have no library for them either"


def test_model_without_workspace_shares_none(tmp_path: Path) -> None:
    random = np.random.default_rng(1)
    net = Network()
    source = net.input((1, 8), scale=0.05, zero_point=3)
    weights, bias = random.integers(-127, 128, (4, 8), np.int8), random.integers(-500, 500, 4, np.int32)
    model = tmp_path / "net.tflite"
    model.write_bytes(net.build([net.fully_connected(source, weights, bias, weight_scales=[0.01], scale=0.1)]))
    compiled = [
        compiler_called("native").compile(CompileRequest("net", model, CPUS["host"], placement=placement))
        for placement in (Placement(), Placement(shares_workspace=1))
    ]
    assert compiled[0] == compiled[1]


def test_compilers_reject_what_the_project_file_rejects(tmp_path: Path) -> None:
    model = tmp_path / "net.tflite"
    model.write_bytes(network(1, width=8))
    request = CompileRequest("net", model, CPUS["host"], placement=Placement(None, ".bss.dtcm", shares_workspace=1))
    with raises(UsageError, "shared-workspace-placed", at="net: placement.workspace"):
        compiler_called("native").compile(request)
