"""``make new-operator`` leaves two files to write by hand, and a test that fails until they are right."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]
_ROW = '    "Softsign": of_one_tensor(softsign),\n'
_IGNORED = shutil.ignore_patterns("__pycache__", "golden", ".hypothesis")


def test_two_bodies_make_an_operator(tmp_path: Path) -> None:
    """Softsign, which the compiler makes of three operators, becomes one in a copy of the checkout."""
    for name in ("mlfbuild", "scripts", "tests/native", "tests/support"):
        shutil.copytree(ROOT / name, tmp_path / name, ignore=_IGNORED)
    for name in ("pyproject.toml", "tests/conftest.py"):
        shutil.copy(ROOT / name, tmp_path / name)
    rows = tmp_path / "mlfbuild/native/frontends/onnx/operators/activations.py"
    rows.write_text(rows.read_text().replace(_ROW, ""))
    made = _run(tmp_path, "scripts/new_operator.py", "Softsign")
    assert made.returncode == 0, made.stderr
    reference = tmp_path / "mlfbuild/native/graph/ops/arithmetic/softsign.py"
    kernel = tmp_path / "mlfbuild/native/kernels/portable/arithmetic/softsign.h"
    assert all(str(path.relative_to(tmp_path)) in made.stdout for path in (reference, kernel))
    assert _test(tmp_path).returncode == 1
    body = 'raise NotImplementedError("TODO: compute the result in double")'
    reference.write_text(reference.read_text().replace(body, "return value / (1 + np.abs(value))"))
    assert _test(tmp_path).returncode == 1
    kernel.write_text(kernel.read_text().replace("return x; /* TODO */", "return x / (1.0f + (x < 0.0f ? -x : x));"))
    tested = _test(tmp_path)
    assert tested.returncode == 0, tested.stdout
    again = _run(tmp_path, "scripts/new_operator.py", "Softsign")
    assert (again.returncode, "softsign.py" in again.stderr) == (1, True)


def _test(folder: Path) -> subprocess.CompletedProcess[str]:
    return _run(folder, "-m", "pytest", "-q", "-p", "no:cacheprovider", "tests/native/test_softsign.py")


def _run(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "PYTHONPATH": str(folder)}
    return subprocess.run([sys.executable, *arguments], cwd=folder, env=environment, capture_output=True, text=True)
