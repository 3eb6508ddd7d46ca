"""Short forms mean the same as the keys in full, and their mistakes are at the text that was written."""

from pathlib import Path

import pytest

from mlfbuild.core import Diagnostic, ProjectFileError
from mlfbuild.project import Project, load_project

MODELS = "models: {kws: kws.tflite}\n"
TARGETS = "targets: [host]\n"


def loaded(folder: Path, text: str) -> Project:
    (folder / "mlfbuild.yml").write_text(f"mlfbuild: 1\n{text}")
    return load_project(folder / "mlfbuild.yml")


def refused(folder: Path, text: str) -> list[str]:
    """Return place and code of each mistake."""
    with pytest.raises(ProjectFileError) as caught:
        loaded(folder, text)
    found = [problem for problem in caught.value.problems if isinstance(problem, Diagnostic)]
    return [f"{problem.place.removeprefix(f'{folder}/mlfbuild.yml:')} [{problem.code}]" for problem in found]


def add(folder: Path, *names: str) -> None:
    for name in names:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(b"")


def test_lists_and_texts_mean_the_same_as_keys(tmp_path: Path) -> None:
    short = loaded(tmp_path, "targets: [cortex-m4, mps2-an500, stm32f407vg]\nmodels: {kws: kws.tflite}\n")
    full = loaded(
        tmp_path,
        "targets:\n"
        "  cortex-m4: {cpu: cortex-m4}\n"
        "  mps2-an500: {cpu: cortex-m7, board: mps2-an500}\n"
        "  stm32f407vg: {mcu: stm32f407vg}\n"
        "models: {kws: {source: kws.tflite}}\n",
    )
    assert short == full
    assert [target.cpu for target in short.targets.values()] == ["cortex-m4", "cortex-m7", "cortex-m4"]


def test_names_of_targets_have_no_special_characters(tmp_path: Path) -> None:
    project = loaded(tmp_path, f"targets: [cortex-m7+nofp.dp]\n{MODELS}")
    assert {name: target.cpu for name, target in project.targets.items()} == {"cortex-m7-nofp-dp": "cortex-m7+nofp.dp"}


def test_a_model_by_its_path_may_be_beside_one_with_keys(tmp_path: Path) -> None:
    project = loaded(tmp_path, f"{TARGETS}models: {{kws: a.tflite, vww: {{source: b.tflite, optimize: Os}}}}\n")
    assert [(model.source.name, model.optimize) for model in project.models.values()] == [
        ("a.tflite", "O2"),
        ("b.tflite", "Os"),
    ]


def test_patterns_name_every_file_that_they_match(tmp_path: Path) -> None:
    add(tmp_path, "models/vww.tflite", "models/KWS-v2.tflite", "models/.hidden.tflite", "more/deep/ad.onnx", "x.tar")
    project = loaded(tmp_path, f'{TARGETS}models: ["models/*.tflite", "more/**/*.onnx", x.tar]\n')
    assert {name: model.source for name, model in project.models.items()} == {
        "kws_v2": tmp_path / "models/KWS-v2.tflite", "vww": tmp_path / "models/vww.tflite",
        "ad": tmp_path / "more/deep/ad.onnx", "x": tmp_path / "x.tar",
    }  # fmt: skip
    assert project.watched == (tmp_path / "models", tmp_path / "more", tmp_path / "more/deep")
    assert loaded(tmp_path, TARGETS + MODELS).watched == ()


@pytest.mark.parametrize(
    ("core", "board"),
    [
        ("cpu: cortex-m4", "mps2-an386"),
        ("cpu: cortex-m0", "mps2-an385"),
        ("cpu: cortex-m7+nofp.dp", "mps2-an500"),
        ("mcu: stm32f407vg", "mps2-an386"),
    ],
)
def test_qemu_is_the_board_of_the_core(tmp_path: Path, core: str, board: str) -> None:
    project = loaded(tmp_path, f"targets: {{a: {{{core}, board: qemu}}}}\n{MODELS}")
    assert project.targets["a"].board == board


def test_vectors_are_found_by_the_name_of_the_model(tmp_path: Path) -> None:
    text = f"{TARGETS}models: {{kws: kws.tflite, vww: {{source: vww.tflite, vectors: own.npz}}}}\n"
    assert loaded(tmp_path, text).models["kws"].vectors == {}
    add(tmp_path, "tests/kws.npz", "tests/vww.npz")
    project = loaded(tmp_path, text)
    assert project.models["kws"].vectors == {"": tmp_path / "tests/kws.npz"}
    assert project.models["vww"].vectors == {"": tmp_path / "own.npz"}
    assert project.found_vectors == {"kws": tmp_path / "tests/kws.npz"}


@pytest.mark.parametrize(
    ("text", "mistakes"),
    [
        (f"targets: [cortex-m4, cortex-m44]\n{MODELS}", ["2:22: targets[1] [unknown-device]"]),
        (f"targets:\n  - stm32f407\n{MODELS}", ["3:5: targets[0] [unknown-mcu]"]),
        (f"targets: [cortex-m4, cortex-m4]\n{MODELS}", ["2:22: targets[1] [repeated-name]"]),
        (f"targets: [cortex-m4, 4]\n{MODELS}", ["2:22: targets[1] [wrong-type]"]),
        (f"targets: []\n{MODELS}", ["2:10: targets [empty-collection]"]),
        (f"targets: cortex-m4\n{MODELS}", ["2:10: targets [wrong-type]"]),
        (f"targets: {{a: {{cpu: host, board: qemu}}}}\n{MODELS}", ["2:33: targets.a.board [board-of-another-cpu]"]),
        (f"{TARGETS}models: []\n", ["3:9: models [empty-collection]"]),
        (f"{TARGETS}models: [kws.tflite, {{source: x.tflite}}]\n", ["3:22: models[1] [wrong-type]"]),
        (f"{TARGETS}models:\n- kws.tflite\n- none/*.tflite\n", ["5:3: models[1] [no-such-file]"]),
        (f"{TARGETS}models: [kws.tflite, kws.onnx]\n", ["3:22: models[1] [repeated-name]"]),
        (f"{TARGETS}models: [kws.h5]\n", ["3:10: models.kws.source [keras-model-not-converted]"]),
        (f"{TARGETS}models: [*.tflite]\n", ["3:11 [not-yaml]"]),
        (f"{TARGETS}models: {{kws: kws.txt}}\n", ["3:15: models.kws.source [unsupported-model-file]"]),
        (f"{TARGETS}models: {{KWS: kws.tflite}}\n", ["3:10: models.KWS [invalid-name]"]),
        (f"{TARGETS}models: {{kws: 5}}\n", ["3:15: models.kws [wrong-type]"]),
        (f"{TARGETS}models: {{kws: }}\n", ["3:14: models.kws [missing-value]"]),
    ],
)
def test_mistakes_are_at_the_text_that_was_written(tmp_path: Path, text: str, mistakes: list[str]) -> None:
    assert refused(tmp_path, text) == mistakes
