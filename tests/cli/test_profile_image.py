"""`mlfbuild profile --in`: all code of a user's image between two marks, by function."""

import re
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from mlfbuild.cli.output.invocation import run
from mlfbuild.targets import MCUS
from mlfbuild.timing import modelled_error
from support.command import Folder
from support.firmware_repo import tiny_network

PROJECT = """\
mlfbuild: 1
targets:
  m4: {cpu: cortex-m4, board: mps2-an386}
  part: {cpu: cortex-m4, board: mps2-an386, mcu: stm32l4r5}
  m3: {cpu: cortex-m3, board: mps2-an385}
  m33: {cpu: cortex-m33, board: mps2-an505}
  own: {cpu: cortex-m4}
models:
  alpha: {source: alpha.tflite, vectors: alpha.npz}
firmware:
  app: {cmake: ., models: [alpha], targets: [m4]}
"""
CMAKELISTS = """\
cmake_minimum_required(VERSION 3.22)
project(app LANGUAGES C ASM)
include("${MLF_TREE}/mlf.cmake")
foreach(name IN ITEMS app clock psram few ticks pended never open nested unmarked)
  add_executable(${name} main.c)
  string(TOUPPER ${name} macro)
  target_compile_definitions(${name} PRIVATE ${macro})
  target_link_libraries(${name} PRIVATE mlf::models mlf::board)
endforeach()
"""
MAIN = """\
#include <stdint.h>
#include <string.h>
#include "mlf_bench.h"
#include "tvmgen_alpha.h"
#define REGISTER(address) (*(volatile uint32_t *)(address))
#ifdef TICKS
#define REPEATS 10
#else
#define REPEATS 1
#endif
#ifdef UNMARKED
#define mlf_bench_begin()
#define mlf_bench_end()
#endif

#if defined CLOCK
#define SOURCE REGISTER(0xE000E018) /* SysTick */
#elif defined PSRAM
#define SOURCE REGISTER(0x21000000) /* of the board, but not of the part */
#else
#define SOURCE interrupts
#endif

static int8_t x[8], y[4];
static volatile size_t size = sizeof x;
static volatile uint32_t interrupts;
static volatile uint32_t *volatile source = &SOURCE;

__attribute__((noinline)) static void count(void) { interrupts++; }
void SysTick_Handler(void);
void SysTick_Handler(void) { count(); }
void PendSV_Handler(void);
void PendSV_Handler(void) { count(); interrupts++; }

__attribute__((noinline)) static int recursive(int n) { return n < 2 ? n : recursive(n - 1) + recursive(n - 2); }
__attribute__((noinline)) static void now(void) { (void)*source; }
__attribute__((noinline)) static void interrupt(void) { REGISTER(0xE000ED04) = 1u << 28; }
__attribute__((noinline)) static int ends_in_a_call_of_the_model(void)
{
    static struct tvmgen_alpha_inputs inputs = {x};
    static struct tvmgen_alpha_outputs outputs = {y};
    return tvmgen_alpha_run(&inputs, &outputs);
}

int main(void)
{
    struct tvmgen_alpha_inputs inputs = {x};
    struct tvmgen_alpha_outputs outputs = {y};
#ifdef TICKS
    REGISTER(0xE000E014) = 1000;
    REGISTER(0xE000E010) = 7;
#endif
#ifdef NEVER
    for (volatile int forever = 1; forever;) { }
#endif
    for (int n = 0; ; n++) {
#ifdef FEW
        if (n == 2) return 3;
#endif
        mlf_bench_begin();
        for (int i = 0; i < (n < 2 ? 3 : 4); i++) {
            now();
        }
        memset(x, 1, size);
        for (int i = 0; i < REPEATS; i++) {
            tvmgen_alpha_run(&inputs, &outputs);
        }
        ends_in_a_call_of_the_model();
        recursive(n < 2 ? 7 : 8);
#ifdef PENDED
        interrupt();
        recursive(5);
#endif
#ifdef NESTED
        mlf_bench_begin();
#endif
#ifdef OPEN
        if (size != 0) return 4;
#endif
        mlf_bench_end();
    }
}
"""
OPERATOR = "tvmgen_alpha_fully_connected_8_to_4"


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory, tool: Callable[..., str]) -> Path:
    """Return the folder of the project, whose images are in ``build/m4/app``."""
    tool("cmake", "ninja", "arm-none-eabi-gcc", "qemu-system-arm", "gcc")
    root = tmp_path_factory.mktemp("image")
    (root / "alpha.tflite").write_bytes(tiny_network(1))
    np.savez(root / "alpha.npz", in0=np.ones((1, 1, 8), np.int8), out0=np.zeros((1, 1, 4), np.int8))
    for name, text in (("mlfbuild.yml", PROJECT), ("CMakeLists.txt", CMAKELISTS), ("main.c", MAIN)):
        (root / name).write_text(text)
    assert run(["build", "-q", "-f", str(root / "mlfbuild.yml"), "--target", "m4"]) == 0
    return root


@pytest.fixture
def profile(folder: Folder, built: Path) -> Callable[..., Any]:
    """Return a function that profiles an image by name and returns the JSON, or the status and code of the error."""

    def profiled(name: str, *options: str, target: str = "m4") -> Any:
        image = name if "/" in name else str(built / f"build/m4/app/{name}")
        project = str(built / "mlfbuild.yml")
        ended = folder.run("profile", "-f", project, "--in", image, "--target", target, *options, "--format", "json")
        return ended.json if ended.status == 0 else (ended.status, ended.error["code"], ended.error["reason"])

    return profiled


def functions(found: dict[str, Any]) -> dict[tuple[str, str], int]:
    return {(each["owner"], each["function"]): each["instructions"] for each in found["functions"]}


def test_all_code_is_counted_by_function(built: Path, folder: Folder, profile: Callable[..., Any]) -> None:
    found = profile("app.elf", "--runs", "3")
    first, second, third = (functions(run) for run in found["runs"])
    assert first == second
    assert [sum(each.values()) for each in (first, third)] == [found["runs"][at]["instructions"] for at in (0, 2)]
    changed = {name for name in first if first[name] != third[name]}
    assert changed - {("firmware", "main")} == {("firmware", "recursive"), ("firmware", "now")}
    assert {("C library", "memset"), ("firmware", "main"), ("alpha", "between operators")} < first.keys()
    assert not any(owner == "interrupt" for owner, _ in first)
    assert found["median"] == 1
    # The same code as in the test firmware of the model; it runs twice here.
    arguments = ("profile", "-f", str(built / "mlfbuild.yml"), "--target", "m4", "--format", "json")
    (alpha,) = folder.run(*arguments, status=0).json["profiles"]
    assert first["alpha", OPERATOR] == 2 * alpha["operators"][0]["instructions"]
    assert first["alpha", "between operators"] == 2 * alpha["rest"]


def test_cycles_are_modelled_for_the_part_of_the_target(profile: Callable[..., Any]) -> None:
    found = profile("app.elf", "--runs", "2", target="part")
    assert found["modelled"]["mcu"] == "stm32l4r5"
    cold, warm = found["runs"]
    assert [functions(run) for run in (cold, warm)] == [
        functions(run) for run in profile("app.elf", "--runs", "2")["runs"]
    ]
    for each in (cold, warm):
        assert each["cycles"] == sum(one["cycles"] for one in each["functions"]) == sum(each["cycles_by_kind"].values())
        assert each["latency"] == -(-each["cycles"] * 10**9 // found["modelled"]["clock"])
    # The caches of the part keep their content from run to run.
    assert warm["cycles_by_kind"]["waiting"] < cold["cycles_by_kind"]["waiting"]


def test_accesses_to_registers_are_modelled_without_waits_and_counted(profile: Callable[..., Any]) -> None:
    plain, clock = (profile(f"{name}.elf", "--runs", "3", target="part") for name in ("app", "clock"))
    assert plain["remarks"] == []
    (remark,) = clock["remarks"]
    assert "the core in a run: 3 to 4, most of them by firmware: now; " in remark
    assert [each["register_accesses"] for each in clock["runs"]] == [3, 3, 4]
    for found, without in zip(clock["runs"], plain["runs"], strict=True):
        # SysTick and the variable in SRAM, which `app` reads instead, cost the same; so does all other code.
        assert [{**each, "register_accesses": 0} for each in found["functions"]] == without["functions"]


def test_tables_have_the_median_run_and_a_line_for_each(built: Path, folder: Folder) -> None:
    image = str(built / "build/m4/app/app.elf")
    ended = folder.run("profile", "-f", str(built / "mlfbuild.yml"), "--in", image, "--target", "part", "--runs", "3")
    counted, cycles, runs = ended.out.rstrip("\n").split("\n\n")
    head, columns, *rows, total = counted.splitlines()
    number = total.split()[0]
    assert re.fullmatch(rf"app\.elf for part on mps2-an386: {number} instructions in run \d of 3, the median", head)
    assert (columns.split(), total.split()[1:]) == (["count", "share", "function"], ["100.0%", "total"])
    assert f"alpha: {OPERATOR}" in "\n".join(rows)
    head, columns, *rows = cycles.splitlines()
    assert head.startswith("app.elf for part on stm32l4r5 at 120 MHz: ")
    assert head.endswith(f" (modelled, +-{modelled_error(MCUS['stm32l4r5'])} %)")
    assert columns.split() == ["cycles", "share", "us", "arith.", "ld/st", "branch", "wait", "function"]
    assert [line.split()[0] for line in runs.splitlines()] == ["run", "1", "2", "3"]
    assert max(map(len, rows)) <= 80


def test_handlers_of_interrupts_are_counted_alone(profile: Callable[..., Any]) -> None:
    plain, pended = (profile(f"{name}.elf", "--runs", "1") for name in ("app", "pended"))
    without, found = functions(plain["runs"][0]), functions(pended["runs"][0])
    calls = without["firmware", "recursive"] - found["firmware", "recursive"]
    assert calls < 0, "recursive runs once more"
    # Its call of `count` is part of it.
    assert found["interrupt", "PendSV_Handler"] > 8
    assert ("firmware", "count") not in found
    assert (plain["remarks"], len(pended["remarks"])) == ([], 1)
    assert "PendSV_Handler" in pended["remarks"][0]
    # Those of a timer come at any time, so also in operators and between a call and the called function.
    ticks = [functions(each) for each in profile("ticks.elf", "--runs", "1000")["runs"][2:]]
    own = [{name: number for name, number in each.items() if name[0] != "interrupt"} for each in ticks]
    assert [each for each in own if each != own[0]] == []


@pytest.mark.parametrize(
    ("name", "target", "error"),
    [
        ("unmarked.elf", "m4", (5, "marks-missing", "mlf_bench_begin, mlf_bench_end")),
        ("never.elf", "m4", (7, "marks-not-reached", "mlf_bench_begin was not called before the image was stopped")),
        ("open.elf", "m4", (7, "marks-not-reached", "mlf_bench_end was not called before the image ended with")),
        ("nested.elf", "m4", (7, "marks-nested", "again before mlf_bench_end")),
        ("psram.elf", "part", (7, "cycles-not-modelled", "now (main.c:36) used the address 0x21000000")),
        ("app.elf", "m3", (4, "image-for-another-device", "it is for Armv7E-M, but the device is a Cortex-M3")),
        ("app.elf", "m33", (4, "image-too-large", "where mps2-an505 has no memory")),
        ("app.elf", "own", (1, "nothing-to-profile", "no board that QEMU emulates for own")),
        ("/no/app.elf", "m4", (5, "no-such-input", "")),
    ],
)  # fmt: skip
def test_images_without_figures_are_refused(
    profile: Callable[..., Any], name: str, target: str, error: tuple[int, str, str]
) -> None:
    # A limit for the others would make them depend on the load of this machine.
    limit = ("--timeout", "0.5") if name == "never.elf" else ()
    status, code, reason = profile(name, *limit, target=target)
    assert (status, code) == error[:2]
    assert error[2] in reason


def test_a_stripped_image_is_refused(built: Path, profile: Callable[..., Any], tmp_path: Path) -> None:
    subprocess.run(["arm-none-eabi-strip", built / "build/m4/app/app.elf", "-o", tmp_path / "app.elf"], check=True)
    assert profile(str(tmp_path / "app.elf"))[:2] == (5, "image-stripped")


def test_an_image_that_ends_has_the_runs_before(profile: Callable[..., Any]) -> None:
    found = profile("few.elf")
    assert len(found["runs"]) == 2
    assert found["remarks"] == ["few.elf was counted 2 times, not 5: it ended with exit status 3"]


def test_an_image_is_for_one_target_and_has_a_time_limit(folder: Folder, built: Path) -> None:
    arguments = ("profile", "-f", str(built / "mlfbuild.yml"))
    image = str(built / "build/m4/app/app.elf")
    assert folder.refused(*arguments, "--in", image) == (2, "target-not-chosen", image)
    assert folder.refused(*arguments, "--timeout", "1") == (2, "option-needs-another", "--timeout")
