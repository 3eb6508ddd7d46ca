"""`mlfbuild check`: every mistake of a project file, with its place."""

import sys

import pytest

from support.command import Folder
from support.errors import assert_printed
from support.firmware_repo import tiny_network


def test_correct_project_file_passes(folder: Folder) -> None:
    ended = folder.run("check")
    assert ended == type(ended)(0, "mlfbuild.yml: no mistakes (1 target, 2 models, 1 firmware)\n", "")
    assert folder.run("check", "--format", "json").json == {
        "file": "mlfbuild.yml",
        "problems": [],
        "warnings": [],
        "missing": [],
    }


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
    assert as_json.json == {"file": "mlfbuild.yml", "problems": expected, "warnings": [], "missing": []}


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


def test_options_are_checked_for_each_target(folder: Folder) -> None:
    folder.write("net.tflite", tiny_network(0))
    npu = "n: {cpu: cortex-m55, npu: {type: ethos-u55, macs: 128}}"
    model = "{source: net.tflite, parameters: replaceable}"
    for targets in (f"{npu}, m4: {{cpu: cortex-m4}}", f"m4: {{cpu: cortex-m4}}, {npu}"):
        folder.write("mlfbuild.yml", f"mlfbuild: 1\ntargets: {{{targets}}}\nmodels: {{net: {model}}}\n")
        result = folder.run("check", "--no-tools")
        assert result.status == 2 and result.err.startswith("mlfbuild.yml:3:"), result.err
        assert "models.net.parameters: is not supported on a target with an NPU" in result.err


def test_copies_of_weights_that_a_build_would_refuse(folder: Folder) -> None:
    folder.write("net.tflite", tiny_network(0))
    model = "{source: net.tflite, parameters: replaceable, weights: {memory: dtcm, stream: 4 KiB}}"
    target = "{mcu: stm32f746, memories: {dtcm: {}, sram: {}}}"
    folder.write("mlfbuild.yml", f"mlfbuild: 1\ntargets: {{m7: {target}}}\nmodels: {{net: {model}}}\n")
    assert folder.mistakes("check", "--no-tools") == [("weights-refused", "mlfbuild.yml:3:70: models.net.weights")]


def test_budgets_that_no_build_checks_are_warnings(folder: Folder) -> None:
    folder.write("mlfbuild.yml", BUDGETS)
    ended = folder.run("check", status=0)
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


REFUSED_LATER = """\
mlfbuild: 1
targets:
  m4: {cpu: cortex-m4}
  board: {cpu: cortex-m4, board: mps2-an386}
  desk: {cpu: cortex-m4, runner: {gdb: "localhost:3333"}}
models:
  kws:
    source: kws.tflite
    interface: {inputs: [a, b], outputs: {nothing: scores}}
    options: {hook: true, interface-api: packed}
    vectors: kws.npz
firmware:
  app: {sources: [main.c], targets: [board, m4]}
"""


def project_with_network(folder: Folder, text: str) -> None:
    (folder.root / "kws.tflite").write_bytes(tiny_network(1))
    folder.write("main.c", "int main(void) { return 0; }\n")
    folder.write("kws.npz", "")
    folder.write("mlfbuild.yml", text)


LATER_MISTAKES = [
    ("device-memory-unknown", "mlfbuild.yml:5:34: targets.desk.runner.memory"),
    ("interface-count", "mlfbuild.yml:9:25: models.kws.interface.inputs"),
    ("interface-name-unknown", "mlfbuild.yml:9:42: models.kws.interface.outputs"),
    ("packed-without-c-interface", "mlfbuild.yml:10:21: models.kws.options.hook"),
]


def test_what_build_or_verify_would_refuse_is_a_mistake(folder: Folder) -> None:
    project_with_network(folder, REFUSED_LATER)
    assert folder.mistakes("check") == [
        *LATER_MISTAKES,
        ("start-up-code-missing", "mlfbuild.yml:13:45: firmware.app.targets[1]"),
    ]
    folder.write("main.c", "void Reset_Handler(void) { for (;;) {} }\n")
    right = REFUSED_LATER.replace("[a, b]", "[a]").replace("{nothing: scores}", "[scores]").replace("hook: true, ", "")
    folder.write("mlfbuild.yml", right.replace("    vectors: kws.npz\n", ""))
    ended = folder.run("check", status=0)
    (warning,) = ended.err.splitlines()  # the device can run firmware, but not verify models
    assert_printed(warning, "device-memory-unknown", "warning: mlfbuild.yml:5:34: targets.desk.runner.memory", "no mcu")


def test_a_linker_script_of_the_user_may_bring_start_up_code(folder: Folder) -> None:
    text = REFUSED_LATER.replace("m4: {cpu: cortex-m4}", "m4: {cpu: cortex-m4, toolchain: own.cmake}")
    project_with_network(folder, text)
    folder.write("own.cmake", "set(CMAKE_EXE_LINKER_FLAGS_INIT -Town.ld)\n")
    assert "start-up-code-missing" not in dict(folder.mistakes("check"))


def test_missing_files_are_reported_together_with_other_mistakes(folder: Folder) -> None:
    project_with_network(folder, REFUSED_LATER.replace("main.c", "other.c").replace("board: mps2", "bord: mps2"))
    (folder.root / "kws.tflite").unlink()
    folder.write("mlfbuild.yml", (folder.root / "mlfbuild.yml").read_text().replace("3333", "99999"))
    assert folder.mistakes("check") == [
        ("unknown-key", "mlfbuild.yml:4:27: targets.board.bord"),
        ("invalid-gdb-address", "mlfbuild.yml:5:40: targets.desk.runner.gdb"),
        ("no-such-file", "mlfbuild.yml:8:13: models.kws.source"),
        ("no-such-file", "mlfbuild.yml:13:19: firmware.app.sources[0]"),
    ]


def test_a_missing_file_hides_no_other_mistake(folder: Folder) -> None:
    other = "  lost: {source: lost.tflite}\nfirmware:"
    project_with_network(folder, REFUSED_LATER.replace("firmware:", other).replace("kws.npz", "gone.npz"))
    assert folder.mistakes("check") == [
        *LATER_MISTAKES,
        ("no-such-file", "mlfbuild.yml:11:14: models.kws.vectors"),
        ("no-such-file", "mlfbuild.yml:12:18: models.lost.source"),
        ("start-up-code-missing", "mlfbuild.yml:14:45: firmware.app.targets[1]"),
    ]
    states = {each["name"]: each for each in folder.run("doctor", "--format", "json").json["targets"]}
    assert "model lost" in str(states["m4"]), "doctor reports the same"


def test_a_gdb_server_of_an_unknown_kind_is_a_mistake(folder: Folder) -> None:
    device = 'desk: {cpu: cortex-m4, runner: {gdb: "localhost:3399"}}'
    models = "models: {net: {source: models/alpha.tflite}}"
    folder.write("mlfbuild.yml", f"mlfbuild: 1\ntargets: {{{device}}}\n{models}\n")
    assert ("gdb-server-unknown", "mlfbuild.yml:2:42: targets.desk.runner") in folder.mistakes("check")


def test_missing_tools_are_exit_3_unless_there_are_mistakes(folder: Folder, monkeypatch: pytest.MonkeyPatch) -> None:
    text = "mlfbuild: 1\ntargets: {m4: {cpu: cortex-m4, c-compiler: clang}, pc: {cpu: host}}\n"
    project_with_network(folder, text + "models: {net: {source: net.onnx}}\n")
    folder.write("net.onnx", "")
    monkeypatch.setenv("MLFBUILD_CLANG", "/nowhere/clang")
    monkeypatch.setitem(sys.modules, "onnx", None)
    ended = folder.run("check", status=3)
    clang, onnx, error = ended.err.splitlines()
    assert clang.startswith("warning: m4: /nowhere/clang: ")
    assert onnx.startswith("warning: m4, pc: model net: ") and "pip install" in onnx
    assert error.startswith("mlfbuild: mlfbuild.yml: ")
    facts = folder.run("check", "--format", "json")
    assert (facts.status, len(facts.json["missing"])) == (3, 2)
    assert folder.run("check", "--no-tools").status == 0
    project_with_network(folder, text + "models: {net: {source: kws.tflite, interface: {inputs: [a, b]}}}\n")
    ended = folder.run("check", status=2)
    assert ended.err.splitlines()[0].startswith("warning: m4: /nowhere/clang: ")
