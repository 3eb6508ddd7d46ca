"""`mlfbuild explore`: each point is built and measured once, and its settings reach the project file and the build."""

import json
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml

from mlfbuild.exploration import Exploration, ExploredPoint, read_explorations
from mlfbuild.jobs import load
from mlfbuild.usecases import explore_model, write_settings
from mlfbuild.usecases.add.project_text import with_values
from mlfbuild.verify.host import load as load_network
from support.command import Folder
from support.firmware_repo import tiny_network
from support.float_networks import calibration, float_tflite

PROJECT = """\
mlfbuild: 1
targets:
  f4: {mcu: nrf52840}  # the product
models:
  # the only one
  alpha:
    source: alpha.tflite  # of March
    evaluate: {data: test.npz, metric: top1, at-least: 0.1}
    explore:
      options.io: [arena]
      executor: [aot, graph]

# the end
"""


@pytest.fixture(scope="module")
def explored(tmp_path_factory: pytest.TempPathFactory, tool: Callable[..., str]) -> Path:
    """A project whose model has been explored."""
    for program in ("arm-none-eabi-gcc", "qemu-system-arm", "gcc"):
        tool(program)
    root = tmp_path_factory.mktemp("explored")
    (root / "alpha.tflite").write_bytes(tiny_network(0))
    inputs = np.random.default_rng(3).integers(-128, 128, (40, 1, 8)).astype(np.int8)
    np.savez(root / "test.npz", in0=inputs, labels=np.arange(40) % 4)
    (root / "mlfbuild.yml").write_text(PROJECT)
    result = explore_model(load(root / "mlfbuild.yml", changes={}), "alpha")
    assert (result.compiled, result.measured) == (2, 2)
    return root


@pytest.fixture
def desk(explored: Path, folder: Folder) -> Folder:
    shutil.copytree(explored, folder.root, dirs_exist_ok=True)
    return folder


def explore(desk: Folder, *arguments: str) -> Any:
    return desk.run("explore", "alpha", *arguments, "--format", "json", status=0).json


def test_a_second_run_repeats_nothing(desk: Folder) -> None:
    # In another folder: keys have no paths.
    found = explore(desk, "-o", "page.html")
    assert (found["compiled"], found["measured"]) == (0, 0)
    arena, graph, now = found["points"]
    assert graph["settings"] == {"options.io": "arena", "executor": "graph"}
    assert "AOT executor" in graph["problem"]
    assert (now["settings"], now["current"]) == ({}, True)
    assert arena["targets"]["f4"]["ram"] > now["targets"]["f4"]["ram"]
    assert {"flash", "stack", "instructions", "cycles", "latency"} < {*arena["targets"]["f4"]}
    page = (desk.root / "page.html").read_text()
    assert page.count('<path class="dots') == page.count('<tr id="p') == 2
    assert "AOT executor" in page
    assert "https:" not in page


def test_the_choice_is_written_and_comments_stay(desk: Folder) -> None:
    explore(desk, "--choose", "max ram where accuracy >= 0.1", "--write")
    text = (desk.root / "mlfbuild.yml").read_text()
    assert [line for line in PROJECT.splitlines() if line not in text.splitlines()] == []
    (model,) = load(desk.root / "mlfbuild.yml").models.values()
    assert (dict(model.options), model.executor) == ({"io": "arena"}, "aot")
    (found,) = read_explorations(desk.root / "mlfbuild.explore.json").values()
    assert [point.settings for point in found.points if point.current] == [{"options.io": "arena", "executor": "aot"}]
    desk.write("mlfbuild.yml", text.replace("    explore:", "    goal: size\n    explore:"))
    load(desk.root / "mlfbuild.yml")  # the record is one of the file as it is now


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("  a: a.tflite  # ours\n\n# end", "  a: {source: a.tflite, options: {memory: smallest}} # ours\n\n# end"),
        ("  a:\n    source: 'a'\n    optimize: O2", "  a:\n    source: 'a'\n    options: {memory: smallest}"),
        (
            "   a:\n      source: a\n      options:\n         hook: true\n\n# end",
            "   a:\n      source: a\n      options:\n         memory: smallest\n         hook: true\n\n# end",
        ),
        ("  a: {source: a, optimize: O2}", "  a: {source: a, options: {memory: smallest}}"),
        (
            "  a:\n    source: a\n    optimize: O2\n\n# end",
            "  a:\n    source: a\n    options: {memory: smallest}\n\n# end",
        ),
        ("  a:\n    source: a\n    optimize: O2 # why", None),
        ("- a.tflite", None),
    ],
)
def test_lines_and_comments_stay(before: str, after: str | None) -> None:
    changes = {("models", "a", "options", "memory"): "smallest", ("models", "a", "optimize"): None}
    found = with_values(f"# top\nmodels:\n{before}\n", changes)
    assert found == (after and f"# top\nmodels:\n{after}\n")


def with_goal(desk: Folder, goal: str, **keys: Any) -> None:
    document = yaml.safe_load(PROJECT)
    document["models"]["alpha"] |= {"goal": goal, **keys}
    desk.write("mlfbuild.yml", yaml.safe_dump(document))


def test_a_goal_takes_the_best_point(desk: Folder) -> None:
    with_goal(desk, "size")
    (found,) = read_explorations(desk.root / "mlfbuild.explore.json").values()
    smallest = min(found.measured, key=lambda point: point.figure("flash") or 0)
    (model,) = load(desk.root / "mlfbuild.yml").models.values()
    assert dict(model.options) == ({"io": "arena"} if smallest.settings else {})


@pytest.mark.parametrize("kept", [(), ("Softmax", "dense_2")])
def test_a_list_is_chosen_and_written_like_any_value(folder: Folder, kept: tuple[str, ...]) -> None:
    folder.write("net.tflite", float_tflite())
    calibration(folder.root / "data.npz", 1)
    text = (
        "mlfbuild: 1\ntargets: [cortex-m4]\nmodels:\n  alpha:\n    source: net.tflite  # of March\n"
        "    quantize: {calibration: data.npz, keep-float: [Softmax]}\n"
        "    explore: {quantize.keep-float: [[], [Softmax, dense_2]]}  # worth a try\n"
    )
    folder.write("mlfbuild.yml", text)
    project = load(folder.root / "mlfbuild.yml")
    assert [*project.models["alpha"].explore.values()] == [((), ("Softmax", "dense_2"))]
    point = ExploredPoint({"quantize.keep-float": kept}, {"cortex-m4": {"flash": 1}})
    write_settings(project, Exploration("alpha", {"cortex-m4": {}}, (point,)), point)
    after = (folder.root / "mlfbuild.yml").read_text()
    assert after.splitlines()[:5] + after.splitlines()[-1:] == text.splitlines()[:5] + text.splitlines()[-1:]
    folder.write("mlfbuild.yml", after.replace("    explore:", "    goal: size\n    explore:"))
    (model,) = load(folder.root / "mlfbuild.yml").models.values()
    assert model.quantize is not None
    assert model.quantize.keep_float == kept


@pytest.mark.parametrize(
    ("change", "code"),
    [
        (lambda desk: (desk.root / "mlfbuild.explore.json").unlink(), "goal-without-exploration"),
        (lambda desk: desk.write("alpha.tflite", tiny_network(1)), "exploration-outdated"),
        (lambda desk: with_goal(desk, "size", options={"memory": "smallest"}), "exploration-outdated"),
    ],
)
def test_a_goal_needs_an_exploration_of_the_model_as_it_is(
    desk: Folder, change: Callable[[Folder], None], code: str
) -> None:
    with_goal(desk, "size")
    change(desk)
    assert [found for found, place in desk.mistakes("check") if place.endswith("models.alpha.goal")] == [code]


@pytest.mark.parametrize(
    ("space", "code", "place"),
    [
        ({"options.memory": ["smallest", "tiny"]}, "invalid-option", 'explore."options.memory"[1]'),
        ({"optimize": ["O9"]}, "value-not-possible", "explore.optimize[0]"),
        ({"quantize.activations": ["int16"]}, "value-not-possible", 'explore."quantize.activations"[0]'),
        ({"targets.f4.clock": ["fast"]}, "value-not-possible", 'explore."targets.f4.clock"[0]'),
        ({"quantize.keep-float": [["Softmax"]]}, "value-not-possible", 'explore."quantize.keep-float"[0]'),
        ({"quantize.keep-float": [[], ["Softmax", 1]]}, "wrong-type", 'explore."quantize.keep-float"'),
        ({"licence": ["MIT"]}, "unknown-axis", "explore.licence"),
    ],
)
def test_values_that_the_model_cannot_have_are_mistakes(folder: Folder, space: Any, code: str, place: str) -> None:
    document = {**yaml.safe_load(PROJECT), "models": {"alpha": {"source": "models/alpha.tflite", "explore": space}}}
    folder.write("mlfbuild.yml", yaml.safe_dump(document))
    ((found, where),) = folder.mistakes("check")
    assert (found, where.endswith(f"models.alpha.{place}")) == (code, True), where


@pytest.mark.parametrize(
    ("arguments", "refused"),
    [
        (("beta",), (2, "unknown-model")),
        (("alpha", "--write"), (2, "option-needs-another")),
        (("alpha", "--choose", "most cycles"), (2, "not-a-choice")),
        (("alpha", "-o", "page.txt"), (2, "not-a-page")),
        (("alpha", "-o", "other.html"), (6, "output-of-another-kind")),
    ],
)
def test_mistakes_are_found_before_anything_is_built(
    folder: Folder, arguments: tuple[str, ...], refused: tuple[int, str]
) -> None:
    folder.write("mlfbuild.yml", "mlfbuild: 1\ntargets: [cortex-m4]\nmodels: [models/alpha.tflite]\n")
    folder.write("other.html", "<p>mine</p>")
    assert folder.refused("explore", *arguments)[:2] == refused
    folder.write("mlfbuild.yml", "mlfbuild: 1\ntargets: [host]\nmodels: [models/alpha.tflite]\n")
    assert folder.refused("explore", "alpha")[:2] == (1, "nothing-to-profile")


@pytest.mark.sweep
def test_a_run_that_was_killed_goes_on(desk: Folder) -> None:
    before = (desk.root / "mlfbuild.explore.json").read_bytes()
    shutil.rmtree(desk.root / "build")
    command = [sys.executable, "-m", "mlfbuild", "explore", "alpha", "-j", "1", "--format", "json"]
    with subprocess.Popen(command, cwd=desk.root, stderr=subprocess.PIPE, text=True) as running:
        assert running.stderr is not None
        started = (event for event in map(json.loads, running.stderr) if event["event"] == "job-started")
        measured = [next(event for event in started if event["verb"] == "measure") for _ in range(2)]
        running.send_signal(signal.SIGKILL)  # when the second one begins, the first one has been kept
    assert len({each["title"] for each in measured}) == 2
    found = explore(desk)
    assert (found["compiled"], found["measured"]) == (0, 1)
    assert (desk.root / "mlfbuild.explore.json").read_bytes() == before


@pytest.mark.sweep
def test_a_farm_finds_the_same(desk: Folder) -> None:
    before = (desk.root / "mlfbuild.explore.json").read_bytes()
    shutil.rmtree(desk.root / "build")
    found = explore(desk, "--on", "dask", "-j", "2")
    assert (found["compiled"], found["measured"]) == (2, 2)
    assert (desk.root / "mlfbuild.explore.json").read_bytes() == before


@pytest.mark.sweep
def test_each_quantised_model_is_made_once(folder: Folder) -> None:
    folder.write("net.tflite", float_tflite())
    calibration(folder.root / "data.npz")
    inputs = np.load(folder.root / "data.npz")["in0"]
    (outputs,) = load_network(folder.root / "net.tflite").run_cases([inputs])
    np.savez(folder.root / "test.npz", in0=inputs, out0=outputs)
    space = {"quantize.activations": ["int8", "int16"], "quantize.keep-float": [[], ["SOFTMAX"]]}
    keys = {"quantize": {"calibration": "data.npz"}, "evaluate": {"data": "test.npz", "metric": "mse"}}
    model = {"source": "net.tflite", "explore": space, "goal": "accuracy", **keys}
    document = {"mlfbuild": 1, "targets": {"f4": {"mcu": "nrf52840"}}, "models": {"alpha": model}}
    folder.write("mlfbuild.yml", yaml.safe_dump(document))
    found = explore(folder, "--choose", "max accuracy", "-o", "page.html")
    assert (found["compiled"], found["measured"]) == (4, 4)  # the project file is one of them
    assert found["chosen"] == {"quantize.activations": "int8", "quantize.keep-float": []}  # of errors, less is better
    assert "<td>[SOFTMAX]</td>" in (folder.root / "page.html").read_text()
    (best,) = load(folder.root / "mlfbuild.yml").models.values()
    assert best.quantize is not None
    assert (best.quantize.activations, best.quantize.keep_float) == ("int16", ("SOFTMAX",))
