"""`mlfbuild plan`, which other build systems read."""

import json
import re
import shutil

import pytest

from support.command import PROJECT, Folder


@pytest.mark.usefixtures("host_tools")
def test_every_file_of_the_build_is_listed(folder: Folder) -> None:
    before = folder.files()
    planned = folder.run("plan", "--format", "json").json
    assert folder.files() == before, "plan writes nothing"
    assert [model["up_to_date"] for model in planned["models"]] == [False, False]
    assert folder.run("build", "-q").status == 0
    made = {path for path in folder.files() - before if path.startswith("build/mlf/")}
    writes = {path for part in ("models", "targets") for entry in planned[part] for path in entry["writes"]}
    folders = {path for path in writes if path.endswith("/")}
    assert folders == {f"build/mlf/pc/{model}/codegen/host/src/mlfbuild/" for model in ("alpha", "beta")}
    headers = {path for path in made if f"{path.rpartition('/')[0]}/" in folders}
    assert headers
    assert (made - headers) | folders == writes
    images = [path for entry in planned["firmware"] for path in entry["writes"]]
    assert images == ["build/pc/app/app"]
    assert (folder.root / images[0]).exists()
    again = folder.run("plan", "--format", "json").json
    assert all(entry["up_to_date"] for part in ("models", "targets") for entry in again[part])


def test_inputs_are_listed(folder: Folder) -> None:
    planned = folder.run("plan", "--format", "json").json
    reads = {path for part in ("models", "firmware") for entry in planned[part] for path in entry["reads"]}
    assert {path for path in reads if not path.startswith("build/")} == {
        "mlfbuild.yml", "main.c", "models/alpha.tflite", "models/beta.tflite",
    }  # fmt: skip


def test_plan_as_text(folder: Folder, golden) -> None:
    ended = folder.run("plan", "--model", "alpha", status=0)
    golden(ended.out, "plan.txt")


def test_lines_have_the_content_of_the_plan(folder: Folder) -> None:
    whole = folder.run("plan", "--format", "json").json
    first, *parts = [json.loads(line) for line in folder.run("plan", "--lines").out.splitlines()]
    assert parts == [*whole["targets"], *whole["models"]]
    assert (first["targets"], first["models"]) == (["pc"], ["alpha", "beta"])
    assert first["generator"] == whole["generator"]


def test_inputs_include_all_code_except_kernel_headers(folder: Folder) -> None:
    assert folder.run("build", "--model", "alpha").status == 0
    model, _ = folder.run("plan", "--format", "json").json["models"]
    tree = folder.root / "build/mlf/pc/alpha"
    names = {path.removeprefix("build/mlf/pc/alpha/") for path in model["changing"]}
    code = {path.relative_to(tree).as_posix() for path in (tree / "codegen").rglob("*") if path.is_file()}
    assert names == {path for path in code if "/mlfbuild/" not in path}
    assert {"codegen/host/src/alpha_lib0.c", "codegen/host/include/tvmgen_alpha.h"} <= names
    assert set(model["changing"]) < set(model["writes"])


def test_removed_models_are_listed_with_their_files(folder: Folder) -> None:
    assert folder.run("generate", "--model", "beta").status == 0
    tree = "build/mlf/pc/beta"
    made = {path for path in folder.files() if path.startswith("build/mlf/pc/")}
    folder.write("build/mlf/pc/beta/notes.txt", "mine")
    folder.write("build/mlf/pc/mine/RECORD.json", "{}")
    assert strays(folder) == []
    without = re.sub(r"  beta: .*\n", "", PROJECT).replace("[alpha, beta]", "[alpha]")
    folder.write("mlfbuild.yml", without)
    (stray,) = strays(folder)
    assert (stray["model"], stray["tree"], set(stray["files"])) == ("beta", tree, made)
    shutil.rmtree(folder.root / tree)
    assert strays(folder) == []


def strays(folder: Folder) -> list[dict[str, object]]:
    (target,) = folder.run("plan", "--format", "json").json["targets"]
    return list(target["strays"])
