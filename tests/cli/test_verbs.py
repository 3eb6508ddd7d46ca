"""Each verb does its job and says so; builds are for this machine, which is quick."""

from __future__ import annotations

import json
from pathlib import Path

import jsonschema
import pytest

from mlfbuild.archive import pack_archive
from support.command import Folder
from support.libraries import graph_library, native_library


def test_check(folder: Folder) -> None:
    ended = folder.run("check")
    assert ended == type(ended)(0, "mlfbuild.yml: no mistakes (1 target, 2 models, 1 firmware)\n", "")
    assert folder.run("check", "--format", "json").json == {"file": "mlfbuild.yml", "problems": [], "warnings": []}


def test_check_lists_every_mistake(folder: Folder) -> None:
    folder.write("mlfbuild.yml", "mlfbuild: 1\ntargets: {m4: {cpu: cortex-m44}}\nmodels: {kws: {sorce: kws.tflite}}\n")
    expected = [
        'mlfbuild.yml:2:21: targets.m4.cpu: unknown cpu "cortex-m44" (did you mean "cortex-m4"?)',
        'mlfbuild.yml:3:10: models.kws: missing key "source"',
        'mlfbuild.yml:3:16: models.kws.sorce: unknown key (did you mean "source"?)',
    ]
    text, as_json = folder.run("check"), folder.run("check", "--format", "json")
    assert (text.status, text.out, text.err.splitlines()) == (2, "", expected)
    assert as_json.status == 2
    assert as_json.json == {"file": "mlfbuild.yml", "problems": expected, "warnings": []}


def test_check_looks_for_the_files(folder: Folder) -> None:
    (folder.root / "models/beta.tflite").unlink()
    (folder.root / "main.c").unlink()
    text = (folder.root / "mlfbuild.yml").read_text()
    text = text.replace("cpu: host", "cpu: host, toolchain: own.cmake").replace("main.c]", "main.c], include-dirs: [h]")
    folder.write("mlfbuild.yml", f"{text}  own: {{cmake: src}}\n")
    ended = folder.run("check")
    assert ended.status == 2
    assert ended.err.splitlines() == [
        "mlfbuild.yml:3:30: targets.pc.toolchain: own.cmake: no such file; correct the path",
        "mlfbuild.yml:6:18: models.beta.source: models/beta.tflite: no such file; correct the path",
        "mlfbuild.yml:8:19: firmware.app.sources[0]: main.c: no such file; correct the path",
        "mlfbuild.yml:8:43: firmware.app.include-dirs[0]: h: no such folder; create it, or correct the path",
        "mlfbuild.yml:9:16: firmware.own.cmake: src: has no CMakeLists.txt; write one there, or name another folder",
    ]


def test_check_asks_the_compiler_about_options(folder: Folder) -> None:
    text = (folder.root / "mlfbuild.yml").read_text()
    folder.write("mlfbuild.yml", text.replace("beta.tflite}", "beta.tflite, options: {frobnicate: 3}}"))
    ended = folder.run("check")
    assert ended.status == 2
    assert ended.err.startswith("mlfbuild.yml:6:60: models.beta.options.frobnicate: ")


@pytest.mark.usefixtures("host_tools")
def test_plan_names_every_file_of_the_build(folder: Folder) -> None:
    before = folder.files()
    planned = folder.run("plan", "--format", "json").json
    assert folder.files() == before, "plan writes nothing"
    assert [model["up_to_date"] for model in planned["models"]] == [False, False]
    assert folder.run("build", "-q").status == 0
    made = {path for path in folder.files() - before if path.startswith("build/mlf/")}
    writes = {path for part in ("models", "targets") for entry in planned[part] for path in entry["writes"]}
    assert made == writes
    images = [path for entry in planned["firmware"] for path in entry["writes"]]
    assert images == ["build/pc/app/app"]
    assert (folder.root / images[0]).exists()
    again = folder.run("plan", "--format", "json").json
    assert all(entry["up_to_date"] for part in ("models", "targets") for entry in again[part])


def test_plan_reads_what_it_says(folder: Folder) -> None:
    planned = folder.run("plan", "--format", "json").json
    reads = {path for part in ("models", "firmware") for entry in planned[part] for path in entry["reads"]}
    assert {path for path in reads if not path.startswith("build/")} == {
        "mlfbuild.yml", "main.c", "models/alpha.tflite", "models/beta.tflite",
    }  # fmt: skip


def test_plan_for_people(folder: Folder, golden) -> None:
    ended = folder.run("plan", "--model", "alpha")
    assert ended.status == 0
    hashes = {part for part in ended.out.split("/") if part.startswith("mlfbuild-")}
    assert len(hashes) == 1
    headers = [line for line in ended.out.splitlines() if hashes & set(line.split("/"))]
    assert headers
    golden("\n".join(line for line in ended.out.splitlines() if line not in headers) + "\n", "plan.txt")


@pytest.mark.usefixtures("host_tools")
def test_build_makes_everything_once(folder: Folder) -> None:
    first = folder.run("build")
    assert first.status == 0
    assert first.out.splitlines() == [
        "alpha for pc: build/mlf/pc/alpha",
        "beta for pc: build/mlf/pc/beta",
        "app for pc: build/pc/app/app",
    ]
    assert "compile alpha for pc: compiled, " in first.err
    times = {path: (folder.root / path).stat().st_mtime_ns for path in folder.files() if "/mlf/" in path}
    second = folder.run("build", "-v")
    assert "compile alpha for pc: up to date\n" in second.err
    assert {path: (folder.root / path).stat().st_mtime_ns for path in times} == times


def test_build_of_one_model_leaves_the_firmware(folder: Folder) -> None:
    ended = folder.run("build", "--model", "beta", "--format", "json")
    assert ended.json == {
        "models": [
            {
                "model": "beta",
                "target": "pc",
                "archive": "build/mlf/pc/beta.tar",
                "tree": "build/mlf/pc/beta",
                "compiled": True,
                "written": ended.json["models"][0]["written"],
            }
        ],
        "firmware": [],
    }


@pytest.mark.usefixtures("host_tools")
def test_a_firmware_links_what_its_target_has(folder: Folder) -> None:
    text = (folder.root / "mlfbuild.yml").read_text()
    text = text.replace("beta.tflite}", "beta.tflite, targets: [spare]}").replace(", models: [alpha, beta]}", "}")
    folder.write("mlfbuild.yml", text.replace("{cpu: host}", "{cpu: host}\n  spare: {cpu: host}"))
    folder.write("main.c", '#include "tvmgen_alpha.h"\nint main(void) { return 0; }\n')
    ended = folder.run("build", "--target", "pc")
    assert (ended.status, ended.out.splitlines()[-1]) == (0, "app for pc: build/pc/app/app")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ("build --target pcc", """target 'pcc': not in the project file (did you mean "pc"?)"""),
        ("build --model gamma", "model 'gamma': not in the project file (the project has alpha, beta)"),
        ("plan --model alhpa", """model 'alhpa': not in the project file (did you mean "alpha"?)"""),
        ("verify --target mars", "target 'mars': not in the project file (the project has pc)"),
    ],
)
def test_a_choice_that_is_not_there(folder: Folder, arguments: str, message: str) -> None:
    ended = folder.run(*arguments.split())
    assert (ended.status, ended.out, ended.err) == (2, "", f"mlfbuild: {message}\n")


def test_a_model_that_is_not_for_the_target(folder: Folder) -> None:
    text = (folder.root / "mlfbuild.yml").read_text()
    text = text.replace("{cpu: host}", "{cpu: host}\n  spare: {cpu: host}")
    text = text.replace("beta.tflite}", "beta.tflite, targets: [spare]}").replace("[alpha, beta]", "[alpha]")
    folder.write("mlfbuild.yml", text)
    ended = folder.run("build", "--target", "pc", "--model", "beta")
    assert (ended.status, ended.err) == (
        2,
        "mlfbuild: model 'beta': not built for pc; choose one of its targets (spare), or add the target to the model\n",
    )


@pytest.mark.usefixtures("host_tools")
def test_verify_compares_on_the_target(folder: Folder) -> None:
    ended = folder.run("verify")
    assert ended.status == 0
    assert ended.out.startswith("alpha: 3 cases right on host")
    (report,) = folder.run("verify", "--format", "json").json
    assert (report["target"], report["module"], report["passed"], report["cases"]) == ("pc", "alpha", True, 3)
    assert folder.run("verify", "-q").out == ""


@pytest.mark.usefixtures("host_tools")
def test_verify_names_what_differs(folder: Folder) -> None:
    folder.write_vectors("alpha", wrong=True)
    ended = folder.run("verify")
    assert ended.status == 1
    assert "alpha" in ended.out and "case 1" in ended.out and "element 2" in ended.out
    assert ended.err.endswith("mlfbuild: verify: alpha for pc: failed; see above\n")
    as_json = folder.run("verify", "--format", "json")
    assert as_json.status == 1
    assert [report["passed"] for report in as_json.json] == [False]


@pytest.mark.usefixtures("host_tools")
def test_verify_goes_on_after_a_model_that_cannot_be_checked(folder: Folder) -> None:
    folder.write("broken.npz", b"no vectors at all")
    text = (folder.root / "mlfbuild.yml").read_text()
    text = text.replace("  alpha:", "  beta: {source: models/beta.tflite, vectors: broken.npz}\n  alpha:")
    folder.write("mlfbuild.yml", text.replace("  beta: {source: models/beta.tflite}\n", ""))
    ended = folder.run("verify")
    assert ended.status == 5
    assert ended.out.startswith("alpha: 3 cases right on host")
    assert "broken.npz" in ended.err.splitlines()[-1]
    as_json = folder.run("verify", "--format", "json").json
    assert [(entry["module"], entry["passed"]) for entry in as_json] == [("beta", False), ("alpha", True)]
    folder.write_vectors("alpha", wrong=True)
    ended = folder.run("verify")
    assert ended.status == 1
    assert "broken.npz" in ended.err, "both are told"
    assert ended.err.endswith("mlfbuild: verify: alpha for pc: failed; see above\n")


def test_verify_without_vectors_is_no_success(folder: Folder) -> None:
    ended = folder.run("verify", "--model", "beta")
    assert ended.status == 1
    assert "nothing to verify: model beta has no vectors" in ended.err


@pytest.mark.usefixtures("host_tools")
def test_verify_says_what_it_leaves_out(folder: Folder) -> None:
    text = (folder.root / "mlfbuild.yml").read_text()
    folder.write("mlfbuild.yml", text.replace("{cpu: host}", "{cpu: host}\n  hardware: {cpu: cortex-m4}"))
    ended = folder.run("verify", "--target", "hardware")
    assert ended.status == 1
    assert "nothing to verify: model beta has no vectors" in ended.err
    assert "target hardware has no board that QEMU emulates" in ended.err
    ended = folder.run("verify", "--target", "pc")
    assert ended.status == 0
    assert ended.err.startswith("not verified: model beta has no vectors")


def test_compile_and_inspect_and_unpack(folder: Folder) -> None:
    size = folder.run(
        "compile", "models/alpha.tflite", "--cpu", "cortex-m4", "-o", "out/a.tar", "--format", "json"
    ).json
    assert size == {
        "model": "alpha",
        "archive": "out/a.tar",
        "size": (folder.root / "out/a.tar").stat().st_size,
        "constants": 72,
        "workspace": 16,
        "workspace_bound": 16,
    }
    facts = folder.run("inspect", "out/a.tar", "--format", "json").json
    assert [module["name"] for module in facts["modules"]] == ["alpha"]
    assert facts["modules"][0]["inputs"][0]["shape"] == [1, 8]
    assert "module alpha" in (page := folder.run("inspect", "out/a.tar").out)
    assert "16    in use at one time: no plan of its calls is smaller\n" in page
    assert folder.run("unpack", "out/a.tar", "-o", "tree").out.startswith("tree: ")
    assert (folder.root / "tree/mlf.cmake").is_file()
    again = folder.run("unpack", "out/a.tar", "-o", "tree", "--format", "json").json
    assert (again["directory"], again["written"], again["removed"]) == ("tree", [], [])
    assert again["unchanged"]


def test_compile_tells_the_memory_plan_and_its_bound(folder: Folder) -> None:
    lines = folder.run("compile", "models/alpha.tflite", "--cpu", "cortex-m4", "-o", "a.tar", "-v").out.splitlines()
    plan = "  constants 72 bytes, workspace 16 bytes"
    assert lines[1:] == [f"{plan}, 16 of them in use at one time: no plan of its calls is smaller"]
    assert len(folder.run("compile", "models/alpha.tflite", "--cpu", "cortex-m4", "-o", "a.tar").out.splitlines()) == 1
    folder.run("convert", "a.tar", "--to", "5", "-o", "old.tar")  # what is known is kept
    assert folder.run("compile", "old.tar", "--cpu", "cortex-m4", "-o", "b.tar", "-v").out.splitlines()[1] == lines[1]


def test_compile_names_the_model_after_its_file(folder: Folder) -> None:
    for file, name in (("KWS-v2.tflite", "kws_v2"), ("1st.tflite", "model_1st"), ("board.tflite", "model_board")):
        folder.write(file, (folder.root / "models/alpha.tflite").read_bytes())
        assert folder.run("compile", file, "--cpu", "host", "-o", "a.tar", "--format", "json").json["model"] == name
    ended = folder.run("compile", "1st.tflite", "--cpu", "host", "-o", "a.tar", "--name", "first")
    assert ended.out.startswith("a.tar: model first for host, ")


def test_compile_of_an_archive_keeps_it(folder: Folder) -> None:
    folder.write("tiny.tar", pack_archive(native_library("tiny")))
    assert folder.run("compile", "tiny.tar", "--cpu", "host", "-o", "again.tar").status == 0
    assert (folder.root / "again.tar").read_bytes() == (folder.root / "tiny.tar").read_bytes()


def test_inspect_of_a_graph_archive(folder: Folder) -> None:
    folder.write("net.tar", pack_archive(graph_library("net")))
    assert "graph executor" in folder.run("inspect", "net.tar").out


def test_schema_is_a_json_schema(folder: Folder) -> None:
    schema = folder.run("schema").json
    jsonschema.Draft202012Validator.check_schema(schema)
    assert schema == folder.run("schema", "--format", "json").json


def test_cmake_dir_has_the_package_and_the_toolchains(folder: Folder) -> None:
    path = Path(folder.run("cmake-dir").out.removesuffix("\n"))
    assert (path / "mlfbuild-config.cmake").is_file()
    assert (path / "toolchains/cortex-m4.cmake").is_file()
    assert json.loads(folder.run("cmake-dir", "--format", "json").out) == {"cmake_dir": str(path)}
