"""Write the files of a new operator on single elements of float32: run it as ``make new-operator NAME=Softsign``.

NAME is ONNX's name of the operator; TFLite files have the same operator if ``BuiltinOperator`` has ``SOFTSIGN``. Two
files are left to write: the reference (``_real`` in ``graph/ops``) and the body of the kernel (``native/kernels``). The
test, which compares both with ONNX's evaluator, fails until they are right.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path
from string import Template

import generate
import onnx

# The TODOs of the templates are what is left to the author: the test fails until they are done.
_OPERATOR = '''"""$UPPER: see ONNX's $Name."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from mlfbuild.native.graph.bases.unary import OnlyFloat
from mlfbuild.native.graph.tensors import Array


@dataclass(frozen=True)
class $Name(OnlyFloat):
    """TODO: say what it computes."""

    name: ClassVar[str] = "$UPPER"

    def _real(self, value: npt.NDArray[np.float64]) -> Array:
        raise NotImplementedError("TODO: compute the result in double")
'''
_KERNEL = """/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The mlfbuild authors */
/*
 * $Name of float32.
 */
#ifndef MLF_${UPPER}_H_
#define MLF_${UPPER}_H_

#include <stdint.h>

#include "compiler.h"
#include "float_math.h"
#include "unary.h"

/* TODO: say how it is computed, and how exact it is. */
MLF_KERNEL float mlf_float_$lower(float x)
{
    return x; /* TODO */
}

MLF_UNARY(mlf_${lower}_float(MLF_UNARY_PARAMETERS(float)), float, mlf_float_$lower(a))

#endif /* MLF_${UPPER}_H_ */
"""
_TEST = '''"""$Name in numpy and as C equals ONNX's evaluator."""

from __future__ import annotations

import numpy as np

from support.onnx_cases import check


def test_equals_onnx() -> None:
    check({"$Name": ("$Name", {}, {"x": np.linspace(-8, 8, 4001, dtype=np.float32)}, {})})
'''
_ROWS = Path("mlfbuild/native/frontends/onnx/operators/elementwise.py")
_TABLE = "\nOPERATORS: Mapping[str, Converter] = {\n"


def with_row(text: str, name: str) -> str:
    """Return the ONNX converters ``text`` with a row for ``name``, in alphabetical order."""
    before, rows = text.split(_TABLE)
    others = re.finditer(r'^    "(\w+)"', rows, re.MULTILINE)
    at = next((other.start() for other in others if other[1] > name), rows.index("}\n"))
    return f'{before}{_TABLE}{rows[:at]}    "{name}": plain("{name}"),\n{rows[at:]}'


def write(name: str, root: Path) -> list[Path]:
    """Write the files of the operator ``name`` in the checkout ``root``; return the two to complete, and the test.

    Raises ``FileExistsError`` if one of them exists.
    """
    lower = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name).lower()
    words = {"Name": name, "UPPER": lower.upper(), "lower": lower}
    files = {
        root / f"mlfbuild/native/graph/ops/arithmetic/{lower}.py": _OPERATOR,
        root / f"mlfbuild/native/kernels/portable/arithmetic/{lower}.h": _KERNEL,
        root / f"tests/native/test_{lower}.py": _TEST,
    }
    for path, template in files.items():
        with path.open("x", encoding="utf-8") as file:
            file.write(Template(template).substitute(words))
    rows = root / _ROWS
    rows.write_text(with_row(rows.read_text(encoding="utf-8"), name), encoding="utf-8")
    return list(files)


def main() -> None:
    """Write the files and their registration, and print what is left to do."""
    name = sys.argv[1] if len(sys.argv) > 1 else ""
    if not name or not onnx.defs.has(name):
        sys.exit(f'"{name}" is not an operator of ONNX: make new-operator NAME=Softsign')
    try:
        *by_hand, test = write(name, generate.ROOT)
    except FileExistsError as error:
        sys.exit(f"{error.filename} exists already")
    generate.write_operators()
    generate.write_onnx_operators()
    files = [str(path.relative_to(generate.ROOT)) for path in (*by_hand, test)]
    sys.stdout.write("complete {}\ncomplete {}\nthen run pytest {} and make generate\n".format(*files))


if __name__ == "__main__":
    main()
