"""The example network of ``mlfbuild init``: its script, and its description."""

import importlib.util
import io
import subprocess
import sys
import zipfile
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

from mlfbuild.usecases.init.project_network import EXAMPLE
from support.oracle import tflite_micro_cases

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def script() -> ModuleType:
    """scripts/make_tones.py as a module."""
    spec = importlib.util.spec_from_file_location("make_tones", ROOT / "scripts/make_tones.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_files_are_those_that_the_script_makes(script: ModuleType) -> None:
    network = script.model()
    assert EXAMPLE.read_bytes() == network
    with np.load(EXAMPLE.with_suffix(".npz")) as committed, np.load(io.BytesIO(script.vectors(EXAMPLE))) as made:
        assert sorted(committed.files) == sorted(made.files) == ["in0", "out0"]
        assert all((committed[name] == made[name]).all() for name in made.files)


def test_network_distinguishes_four_tones(script: ModuleType) -> None:
    cases = [
        (tone, amplitude * script.wave(periods, phase))
        for tone, periods in enumerate(script.PERIODS)
        for amplitude in (0.2, 0.5, 0.9)
        for phase in np.arange(0, 1, 1 / 16)
    ]
    inputs = [[np.round(sound * 128).astype(np.int8)[np.newaxis]] for _, sound in cases]
    answers = [int(output.argmax()) for (output,) in tflite_micro_cases(EXAMPLE.read_bytes(), inputs)]
    assert answers == [tone for tone, _ in cases]
    assert len(answers) == 4 * 3 * 16


@pytest.mark.sweep
def test_wheel_has_every_template(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "pip", "-q", "wheel", "--no-deps", "-w", str(tmp_path), str(ROOT)]
    subprocess.run(command, check=True)
    (wheel,) = tmp_path.glob("*.whl")
    names = set(zipfile.ZipFile(wheel).namelist())
    templates = {path.relative_to(ROOT).as_posix() for path in EXAMPLE.parents[1].rglob("*") if path.is_file()}
    assert len(templates) > 12
    assert templates <= names
