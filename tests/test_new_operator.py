"""``make new-operator`` leaves two files to write by hand, and a test that fails until they are right."""

import os
import re
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
_IGNORED = shutil.ignore_patterns("__pycache__", "golden", ".hypothesis")
_REMOVED = {"activations.py": '    "Softsign": of_one_tensor(softsign),\n', "elementwise.py": '    "Mod": _modulo,\n'}
"""Rows of ONNX operators that the compiler makes of others: their operators are new in the copy."""


@dataclass(frozen=True)
class _Operator:
    arguments: tuple[str, ...]
    stem: str
    reference: str
    kernel: tuple[str, str]
    """A line of the template, and what replaces it."""


_OPERATORS = (
    _Operator(
        ("NAME=Softsign",), "softsign", "return value / (1 + np.abs(value))",
        ("return x; /* TODO */", "return x / (1.0f + (x < 0.0f ? -x : x));"),
    ),
    _Operator(
        ("NAME=Mod", "KIND=binary"), "mod", "return x - y * (x / y // 1)",
        (
            "return x + y; /* TODO */",
            "const float cut = (float)(int32_t)(x / y);\n    return x - y * (cut > x / y ? cut - 1.0f : cut);",
        ),
    ),
    _Operator(
        ("FROM=tflite", "CODE=LOCAL_RESPONSE_NORMALIZATION"), "local_response_normalization",
        "depth, r = value.shape[-1], self.radius\n"
        "        near = [(value[..., max(i - r, 0) : i + r] ** 2).sum(-1) for i in range(depth)]\n"
        "        return value * (self.bias + self.alpha * np.stack(near, -1)) ** -self.beta",
        (
            "output[i] = input[i]; /* TODO */",
            (
                "float sum = 0.0f;\n"
                "        for (int32_t j = i - radius; j < i + radius; j++) {\n"
                "            sum += j >= 0 && j / depth == i / depth ? input[j] * input[j] : 0.0f;\n"
                "        }\n"
                "        output[i] = input[i] * mlf_float_exp(-beta * mlf_float_log(bias + alpha * sum));"
            ),
        ),
    ),
)  # fmt: skip
_TESTS = [f"tests/native/test_{operator.stem}.py" for operator in _OPERATORS]


@pytest.fixture(scope="module")
def checkout(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a copy of the checkout in which the operators are new."""
    folder = tmp_path_factory.mktemp("checkout")
    for name in ("mlfbuild", "scripts", "tests/native", "tests/support"):
        shutil.copytree(ROOT / name, folder / name, ignore=_IGNORED)
    for name in ("pyproject.toml", "tests/conftest.py"):
        shutil.copy(ROOT / name, folder / name)
    for name, row in _REMOVED.items():
        rows = folder / "mlfbuild/native/frontends/onnx/operators" / name
        rows.write_text(rows.read_text().replace(row, ""))
    return folder


def test_two_bodies_make_an_operator(checkout: Path) -> None:
    """Operators of all kinds, whose tests fail until the reference and the kernel of each are right."""
    native = checkout / "mlfbuild/native"
    references = [native / f"graph/ops/arithmetic/{operator.stem}.py" for operator in _OPERATORS]
    kernels = [native / f"kernels/portable/arithmetic/{operator.stem}.h" for operator in _OPERATORS]
    for operator, *written in zip(_OPERATORS, references, kernels, strict=True):
        made = _run(checkout, "scripts/new_operator.py", *operator.arguments)
        assert made.returncode == 0, made.stderr
        assert all(str(path.relative_to(checkout)) in made.stdout for path in written)
    folders = [f"mlfbuild/native/{name}" for name in ("graph/ops", "lowering", "frontends/tflite")]
    checked = _run(checkout, "-m", "ruff", "check", *folders, *_TESTS)
    assert checked.returncode == 0, checked.stdout
    assert _passed(checkout) == 0
    for operator, reference in zip(_OPERATORS, references, strict=True):
        todo = 'raise NotImplementedError("TODO: compute the result in double")'
        reference.write_text(reference.read_text().replace(todo, operator.reference))
    assert _passed(checkout) == 0
    for operator, kernel in zip(_OPERATORS, kernels, strict=True):
        kernel.write_text(kernel.read_text().replace(*operator.kernel))
    assert _passed(checkout) == len(_OPERATORS)


@pytest.mark.parametrize(
    ("arguments", "word"),
    [
        (["NAME=Softsig"], "Softsig"),
        (["NAME=Abs"], "Abs"),
        (["NAME=If"], "If"),
        (["NAME=StringConcat", "KIND=ternary"], "KIND=ternary"),
        (["NAME=StringConcat"], "KIND"),
        (["FROM=tflite", "CODE=ADDITION"], "ADDITION"),
        (["FROM=tflite", "CODE=SHAPE"], "SHAPE"),
    ],
)
def test_what_cannot_be_written_is_refused(checkout: Path, arguments: list[str], word: str) -> None:
    before = sorted(checkout.glob("mlfbuild/native/**/*.[hp]*"))
    refused = _run(checkout, "scripts/new_operator.py", *arguments)
    assert (refused.returncode, refused.stdout, refused.stderr.count("\n")) == (2, "", 1)
    assert word in refused.stderr
    assert sorted(checkout.glob("mlfbuild/native/**/*.[hp]*")) == before


def _passed(folder: Path) -> int:
    """Return how many tests of the new operators pass; all others fail."""
    output = _run(folder, "-m", "pytest", "-q", "-p", "no:cacheprovider", *_TESTS).stdout
    counts = {word: int(count) for count, word in re.findall(r"(\d+) (passed|failed)", output)}
    assert sum(counts.values()) == len(_TESTS), output
    return counts.get("passed", 0)


def _run(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "PYTHONPATH": str(folder)}
    return subprocess.run([sys.executable, *arguments], cwd=folder, env=environment, capture_output=True, text=True)
