"""Budgets of stack, and the stack in reports, with a linked image."""

import re
from collections.abc import Callable

import pytest

from support.command import Folder
from support.errors import assert_printed
from support.firmware_repo import tiny_network
from support.schemas import validator

PROJECT = """\
mlfbuild: 1
targets: {m4: {cpu: cortex-m4, board: mps2-an386}}
models: {alpha: {source: alpha.tflite, budget: {MODEL}}}
firmware: {app: {sources: [main.c], budget: {IMAGE}}}
"""
MAIN = """\
#include "tvmgen_alpha.h"
static int32_t twice(int32_t x) { return 2 * x; }
int32_t (*volatile function)(int32_t) = twice;
int main(void)
{
    int8_t x[8] = {0}, y[4];
    struct tvmgen_alpha_inputs a = {x};
    struct tvmgen_alpha_outputs b = {y};
    return tvmgen_alpha_run(&a, &b);
}
"""


@pytest.fixture
def project(folder: Folder, tool: Callable[..., str]) -> Folder:
    tool("cmake", "ninja", "arm-none-eabi-gcc")
    folder.write("alpha.tflite", tiny_network(1))
    folder.write("main.c", MAIN)
    set_budgets(folder)
    return folder


def set_budgets(folder: Folder, model: str = "", image: str = "") -> None:
    folder.write("mlfbuild.yml", PROJECT.replace("MODEL", model).replace("IMAGE", image))


def test_stack_is_reported_and_checked(project: Folder, monkeypatch: pytest.MonkeyPatch) -> None:
    facts = project.run("report", "--format", "json").json
    validator(project.run("schema", "--report").json).validate(facts)
    (image,) = facts["images"]
    whole, own = image["stack"], image["models"][0]["stack"]
    assert own["path"][0] == "tvmgen_alpha_run" and whole["path"][:2] == ["main", "tvmgen_alpha_run"]
    assert own["worst_case"] == sum(own["frames"]) and whole["worst_case"] == sum(whole["frames"])
    assert (own["reason"], own["measured"], whole["reason"]) == ("", None, "")
    deepest = own["worst_case"]
    assert 0 < deepest < whole["worst_case"] < 1024

    set_budgets(project, f"stack: {deepest}", "stack: 1 KiB")
    ended = project.run("report", status=0)
    line = f"\nmodel alpha, stack: {deepest} bytes in the worst case (100 % of its budget of {deepest})\n"
    assert line in ended.out and f"\nmain, stack: {whole['worst_case']} bytes in the worst case" in ended.out
    *_, (function, size) = [pair for pair in zip(own["path"], own["frames"], strict=True) if pair[1]]
    assert f"  {size:,}  {function}\n" in ended.out
    assert project.run("report", "-o", "saved.json").status == 0
    assert line in project.run("report", "--from", "saved.json").out, "it says the same later"

    set_budgets(project, f"stack: {deepest - 1}", f"stack: {whole['worst_case'] - 4}")
    for _ in range(2):
        ended = project.run("build", status=1)
        lines = ended.err.splitlines()[-2:]
        facts = (f" {deepest} bytes", " 1 byte ", f" {deepest - 1} bytes", "in the last build", f"{function} {size})")
        assert_printed(lines[0], "stack-over-budget", "mlfbuild: app.elf for m4: model alpha", *facts)
        facts = (f" {whole['worst_case']} bytes", " 4 bytes ")
        assert_printed(lines[1], "stack-over-budget", "app.elf for m4: main", *facts)

    monkeypatch.setenv("MLFBUILD_ARM_NONE_EABI_OBJDUMP", "no-such-objdump")
    ended = project.run("build", status=3)
    facts = ("apt-get install binutils-arm-none-eabi", "MLFBUILD_ARM_NONE_EABI_OBJDUMP")
    assert_printed(ended.err.splitlines()[-1], "program-not-found", "mlfbuild: no-such-objdump", *facts)
    set_budgets(project)
    ended = project.run("report")
    assert ended.status == 0 and "\nmain, stack: unknown\n  no-such-objdump: program not found; " in ended.out


def test_an_unknown_stack_fails_its_budget(project: Folder) -> None:
    project.write(
        "main.c", MAIN.replace("return tvmgen_alpha_run(&a, &b)", "return function(tvmgen_alpha_run(&a, &b))")
    )
    set_budgets(project, "stack: 2 KiB", "stack: 4 KiB")
    ended = project.run("build", status=1)
    facts = ("4,096 bytes (4 KiB)", "main calls a function through a pointer, at 0x")
    assert_printed(ended.err.splitlines()[-1], "stack-not-known", "mlfbuild: app.elf for m4: main", *facts)
    set_budgets(project, "stack: 2 KiB")
    assert project.run("build").status == 0
    ended = project.run("report")
    assert re.search(r"\nmain, stack: unknown\n  main calls a function through a pointer, at 0x", ended.out)


def test_a_build_compares_the_stack_of_the_linker_script(project: Folder) -> None:
    small = '__asm__(".global MLF_STACK_SIZE\\n.equ MLF_STACK_SIZE, 512");\n'
    deep = MAIN.replace("    int8_t x", "    volatile int8_t big[600] = {0};\n    int8_t x")
    project.write("main.c", small + deep)
    for _ in range(2):  # the first failure is not the last one
        assert project.refused("build") == (1, "stack-too-small", "app.elf: main")
    project.write("main.c", small + MAIN)
    assert project.run("build").status == 0
    project.write("main.c", deep)
    assert project.run("build").status == 0
    assert project.run("report", "--format", "json").json["images"][0]["faults"] == []
