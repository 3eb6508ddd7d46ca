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
    todo = 'raise NotImplementedError("TODO: compute the result in double")'
    bodies = [
        body
        for operator, reference, kernel in zip(_OPERATORS, references, kernels, strict=True)
        for body in ((reference, todo, operator.reference), (kernel, *operator.kernel))
    ]
    _complete(bodies[1:3])  # the kernel of one operator, the reference of another one, and nothing of the third
    assert _passed(checkout) == 0
    _complete(bodies)
    assert _passed(checkout) == len(_OPERATORS)


_REFUSED = {
    "NAME=Softsig": "Softsig", "NAME=Abs": "Abs", "NAME=If": "If", "NAME=StringConcat KIND=ternary": "KIND=ternary",
    "NAME=StringConcat": "KIND", "FROM=tflite CODE=ADDITION": "ADDITION", "FROM=tflite CODE=SHAPE": "SHAPE",
}  # fmt: skip
"""Arguments, and a word of the line that refuses them."""
_RUN_EACH = """
import sys
sys.path.insert(0, "scripts")
import new_operator
for words in sys.argv[1:]:
    sys.argv[1:] = words.split()
    try:
        new_operator.main()
    except SystemExit as end:
        print(end.code)
"""


def test_what_cannot_be_written_is_refused(checkout: Path) -> None:
    before = _sources(checkout)
    refused = _run(checkout, "-c", _RUN_EACH, *_REFUSED)
    lines = refused.stderr.splitlines()
    assert (refused.stdout, len(lines)) == ("2\n" * len(_REFUSED), len(_REFUSED))
    assert [word for word, line in zip(_REFUSED.values(), lines, strict=True) if word not in line] == []
    assert _sources(checkout) == before


def _sources(checkout: Path) -> list[Path]:
    return sorted(path for path in checkout.glob("mlfbuild/native/**/*") if path.suffix in {".py", ".h"})


def _complete(bodies: list[tuple[Path, str, str]]) -> None:
    for path, todo, body in bodies:
        path.write_text(path.read_text().replace(todo, body))


def _passed(folder: Path) -> int:
    """Return how many tests of the new operators pass; all others fail."""
    output = _run(folder, "-m", "pytest", "-q", "-p", "no:cacheprovider", *_TESTS).stdout
    counts = {word: int(count) for count, word in re.findall(r"(\d+) (passed|failed)", output)}
    assert sum(counts.values()) == len(_TESTS), output
    return counts.get("passed", 0)


def _run(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "PYTHONPATH": str(folder)}
    return subprocess.run([sys.executable, *arguments], cwd=folder, env=environment, capture_output=True, text=True)
