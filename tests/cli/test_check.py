"""`mlfbuild check`: every mistake of a project file, with its place."""

from __future__ import annotations

from support.command import Folder
from support.errors import assert_printed


def test_correct_project_file_passes(folder: Folder) -> None:
    ended = folder.run("check")
    assert ended == type(ended)(0, "mlfbuild.yml: no mistakes (1 target, 2 models, 1 firmware)\n", "")
    assert folder.run("check", "--format", "json").json == {"file": "mlfbuild.yml", "problems": [], "warnings": []}


def test_every_mistake_is_listed(folder: Folder) -> None:
    folder.write("mlfbuild.yml", "mlfbuild: 1\ntargets: {m4: {cpu: cortex-m44}}\nmodels: {kws: {sorce: kws.tflite}}\n")
    expected = [
        'mlfbuild.yml:2:21: targets.m4.cpu: unknown cpu "cortex-m44" (did you mean "cortex-m4"?)',
        'mlfbuild.yml:3:10: models.kws: missing key "source"; add source',
        'mlfbuild.yml:3:16: models.kws.sorce: unknown key (did you mean "source"?)',
    ]
    text, as_json = folder.run("check"), folder.run("check", "--format", "json")
    assert (text.status, text.out, text.err.splitlines()) == (2, "", expected)
    assert as_json.status == 2
    assert as_json.json == {"file": "mlfbuild.yml", "problems": expected, "warnings": []}


def test_missing_files_are_mistakes(folder: Folder) -> None:
    (folder.root / "models/beta.tflite").unlink()
    (folder.root / "main.c").unlink()
    text = (folder.root / "mlfbuild.yml").read_text()
    text = text.replace("cpu: host", "cpu: host, toolchain: own.cmake").replace("main.c]", "main.c], include-dirs: [h]")
    folder.write("mlfbuild.yml", f"{text}  own: {{cmake: src}}\n")
    assert folder.mistakes("check") == [
        ("no-such-file", "mlfbuild.yml:3:30: targets.pc.toolchain"),
        ("no-such-file", "mlfbuild.yml:6:18: models.beta.source"),
        ("no-such-file", "mlfbuild.yml:8:19: firmware.app.sources[0]"),
        ("no-such-folder", "mlfbuild.yml:8:43: firmware.app.include-dirs[0]"),
        ("no-cmakelists", "mlfbuild.yml:9:16: firmware.own.cmake"),
    ]


def test_compiler_options_are_checked(folder: Folder) -> None:
    text = (folder.root / "mlfbuild.yml").read_text()
    folder.write("mlfbuild.yml", text.replace("beta.tflite}", "beta.tflite, options: {frobnicate: 3}}"))
    assert folder.mistakes("check") == [("unknown-option", "mlfbuild.yml:6:60: models.beta.options.frobnicate")]


BUDGETS = """\
mlfbuild: 1
targets: {m4: {cpu: cortex-m4}, pc: {cpu: host}}
models:
  alpha: {source: models/alpha.tflite, budget: {flash: 64 KiB, stack: 1k}}
  beta: {source: models/beta.tflite}
"""
FIRMWARE = "firmware: {app: {sources: [main.c], models: [alpha], targets: [m4], budget: {flash: 1 M}}}\n"


def test_budgets_that_no_build_checks_are_warnings(folder: Folder) -> None:
    folder.write("mlfbuild.yml", BUDGETS)
    ended = folder.run("check")
    assert ended.status == 0
    (first,) = ended.err.splitlines()
    place = "warning: mlfbuild.yml:4:48: models.alpha.budget"
    assert_printed(first, "budget-without-firmware", place, "flash, stack", "--fail-over-budget")
    folder.write(
        "mlfbuild.yml",
        BUDGETS.replace("cortex-m4}", "cortex-m4, mcu: stm32l4r5}").replace("64 KiB,", "64k, latency: 1 s,"),
    )
    latency = folder.run("check").err.splitlines()[1]
    assert_printed(latency, "run-budget-without-firmware", place, "latency", "mlfbuild profile")
    folder.write("mlfbuild.yml", BUDGETS + "budget-file: sizes.json\n")
    warnings = folder.run("check", "--format", "json").json["warnings"]
    assert [line.split(": ")[1] for line in warnings] == ["models.alpha.budget", "budget-file"]
    folder.write("mlfbuild.yml", BUDGETS + FIRMWARE)
    assert folder.run("check", "--format", "json").json["warnings"] == []
