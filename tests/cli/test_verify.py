"""`mlfbuild verify`: outputs are compared with vectors on this machine."""

from dataclasses import replace

import pytest

from mlfbuild.archive import open_archive, pack_archive
from mlfbuild.jobs import load, target_jobs
from mlfbuild.usecases import verified_state, verify_jobs
from support.command import PROJECT, Folder
from support.firmware_repo import tiny_network


@pytest.mark.usefixtures("host_tools")
def test_correct_outputs_pass(folder: Folder) -> None:
    ended = folder.run("verify", status=0)
    assert ended.out.startswith("alpha: 3 cases right on host")
    (report,) = folder.run("verify", "--format", "json").json
    assert (report["target"], report["module"], report["passed"], report["cases"]) == ("pc", "alpha", True, 3)
    assert folder.run("verify", "-q").out == ""


@pytest.mark.usefixtures("host_tools")
def test_results_of_several_targets_name_them(folder: Folder) -> None:
    text = (folder.root / "mlfbuild.yml").read_text()
    folder.write("mlfbuild.yml", text.replace("{cpu: host}", "{cpu: host}\n  again: {cpu: host}"))
    results = [line for line in folder.run("verify").out.splitlines() if "right on host" in line]
    assert [line.partition(":")[0] for line in results] == ["alpha for pc", "alpha for again"]
    folder.write_vectors("alpha", wrong=True)
    wrong = folder.run("verify").out
    assert "alpha for pc: case 1" in wrong and "alpha for again: case 1" in wrong


@pytest.mark.usefixtures("host_tools")
def test_wrong_outputs_fail_with_case_and_element(folder: Folder) -> None:
    folder.write_vectors("alpha", wrong=True)
    ended = folder.run("verify", status=1)
    assert "alpha" in ended.out and "case 1" in ended.out and "element 2" in ended.out
    assert ended.err.splitlines()[-1].startswith("mlfbuild: verify: alpha for pc: ")
    as_json = folder.run("verify", "--format", "json", status=1)
    assert [report["passed"] for report in as_json.json] == [False]


@pytest.mark.usefixtures("host_tools")
def test_other_models_are_verified_after_an_error(folder: Folder) -> None:
    folder.write("broken.npz", b"no vectors at all")
    text = (folder.root / "mlfbuild.yml").read_text()
    text = text.replace("  alpha:", "  beta: {source: models/beta.tflite, vectors: broken.npz}\n  alpha:")
    folder.write("mlfbuild.yml", text.replace("  beta: {source: models/beta.tflite}\n", ""))
    ended = folder.run("verify", status=5)
    assert ended.out.startswith("alpha: 3 cases right on host")
    assert "broken.npz" in ended.err.splitlines()[-1]
    as_json = folder.run("verify", "--format", "json").json
    assert [(entry["module"], entry["passed"]) for entry in as_json] == [("beta", False), ("alpha", True)]
    folder.write_vectors("alpha", wrong=True)
    ended = folder.run("verify", status=1)
    assert "broken.npz" in ended.err, "both are told"
    assert ended.err.splitlines()[-1].startswith("mlfbuild: verify: alpha for pc: ")


@pytest.mark.usefixtures("host_tools")
def test_a_case_without_end_is_stopped(folder: Folder) -> None:
    assert folder.run("compile", "models/alpha.tflite", "--cpu", "host", "-o", "alpha.tar", "-q").status == 0
    library = open_archive(folder.root / "alpha.tar")
    (module,) = library.modules
    codegen = tuple(
        replace(file, content=bytes(file.content).replace(b"return 0;", b"for (volatile int i = 0;; i++) {}"))
        for file in module.codegen
    )
    folder.write("alpha.tar", pack_archive(replace(library, modules=(replace(module, codegen=codegen),))))
    folder.write("mlfbuild.yml", PROJECT.replace("models/alpha.tflite", "alpha.tar"))
    ended = folder.run("verify", "--model", "alpha", "--timeout", "0.5", status=1)
    assert "alpha: case 0: no result after 0.5 s, so it was stopped" in ended.out
    assert folder.run("verify", "--timeout", "0").status == 2


def test_missing_vectors_are_a_failure(folder: Folder) -> None:
    assert folder.refused("verify", "--model", "beta") == (1, "nothing-to-verify", "mlfbuild.yml")
    assert "mlfbuild vectors beta" in folder.run("verify", "--model", "beta").err
    text = (folder.root / "mlfbuild.yml").read_text()
    folder.write("mlfbuild.yml", text.replace("models/beta.tflite", "beta.tar"))
    assert "mlfbuild vectors" not in folder.run("verify", "--model", "beta").err


@pytest.mark.usefixtures("host_tools")
def test_models_without_vectors_and_targets_without_board_are_listed(folder: Folder) -> None:
    text = (folder.root / "mlfbuild.yml").read_text()
    folder.write("mlfbuild.yml", text.replace("{cpu: host}", "{cpu: host}\n  hardware: {cpu: cortex-m4}"))
    ended = folder.run("verify", "--target", "hardware", status=1)
    assert "model beta has no vectors" in ended.err
    assert "target hardware has no runner, no board that QEMU emulates, and no mcu" in ended.err
    ended = folder.run("verify", "--target", "pc", status=0)
    assert ended.err.startswith("not verified: model beta has no vectors")


@pytest.mark.usefixtures("host_tools")
def test_reports_know_the_last_result_until_something_changes(folder: Folder) -> None:
    def state() -> tuple[str, str]:
        project = load(folder.root / "mlfbuild.yml")
        (job,) = verify_jobs(project, target_jobs(project), project.root / "build")
        found = verified_state(job)
        return found["state"], found.get("problem", "")

    assert state() == ("never", "")
    assert folder.run("verify").status == 0
    assert state() == ("passed", "")
    folder.write_vectors("alpha", wrong=True)
    assert state() == ("outdated", "")
    assert folder.run("verify").status == 1
    assert state()[0] == "failed" and "case 1" in state()[1]
    folder.write("models/alpha.tflite", tiny_network(5))
    assert folder.run("build", "--model", "alpha", "-q").status == 0
    assert state()[0] == "outdated"
    (next(folder.root.glob("build/verify/pc/alpha/result.json"))).write_text("[]")
    assert state()[0] == "never", "a damaged file is no result"
