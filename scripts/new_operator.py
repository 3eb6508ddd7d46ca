"""Write the files of a new operator of float32: run it as ``make new-operator NAME=Softsign``.

``NAME=Softsign`` is an ONNX operator on single elements, ``NAME=Mod KIND=binary`` one on two tensors that broadcast;
TFLite files have the same operator if ``BuiltinOperator`` has its name. ``FROM=tflite
CODE=LOCAL_RESPONSE_NORMALIZATION`` is a TFLite operator of one tensor, whose options become attributes and arguments of
the kernel.

Two files are left to write: the reference (``_real`` in ``graph/ops``) and the body of the kernel (``native/kernels``).
The test, which compares both with ONNX's evaluator or LiteRT, fails until they are right.
"""

from __future__ import annotations

import importlib
import inspect
import re
import subprocess
import sys
import textwrap
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from string import Template
from typing import NoReturn

import flatbuffers
import generate
import onnx
from tflite.BuiltinOperator import BuiltinOperator

from mlfbuild.native.frontends.onnx.control_flow import CONTROL_FLOW
from mlfbuild.native.frontends.tflite.operators import SUPPORTED

# The TODOs of the templates are what is left to the author: the test fails until they are done.
_UNARY = '''"""$UPPER: see ONNX's $Name."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from mlfbuild.native.graph.bases.unary import OnlyFloat
from mlfbuild.native.graph.tensors import Array


class $Name(OnlyFloat):
    """TODO: say what it computes."""

    name = "$UPPER"

    def _real(self, value: npt.NDArray[np.float64]) -> Array:
        raise NotImplementedError("TODO: compute the result in double")
'''
_BINARY = '''"""$UPPER: see ONNX's $Name."""

from __future__ import annotations

from mlfbuild.native.graph.bases.binary import Binary
from mlfbuild.native.graph.tensors import Array, DType


class $Name(Binary):
    """TODO: say what it computes."""

    name = "$UPPER"
    types = (DType.FLOAT32,)

    def _real(self, x: Array, y: Array) -> Array:
        raise NotImplementedError("TODO: compute the result in double")
'''
_SINGLE = '''"""$UPPER."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from mlfbuild.native.graph.bases import rules
from mlfbuild.native.graph.bases.unary import Single
from mlfbuild.native.graph.tensors import Array, DType, Inputs, Tensor, Values


class $Name(Single):
    """TODO: say what it computes."""

$fields
    name = "$UPPER"
    types = (DType.FLOAT32,)

    def _check(self, source: Tensor, output: Tensor) -> str | None:
        return rules.arithmetic(source, output, types=self.types) or rules.shape(output, source.shape)

    def reference(self, inputs: Inputs, values: Values, outputs: Sequence[Tensor]) -> tuple[Array, ...]:
        return (np.asarray(self._real(values[0].astype(np.float64)), np.float32),)

    def _real(self, value: npt.NDArray[np.float64]) -> Array:
        raise NotImplementedError("TODO: compute the result in double")
'''
_LOWERING = '''"""$UPPER."""

from __future__ import annotations

${imports}from mlfbuild.native.graph import Graph, Node
from mlfbuild.native.graph.ops import $Name
from mlfbuild.native.lowering.call import KernelCall, Parameter
from mlfbuild.native.settings import CodegenSettings


def lower(graph: Graph, node: Node, _settings: CodegenSettings) -> KernelCall:
    """Return the call of ``mlf_${lower}_float``."""
    operator = node.operator
    (source,), (output,) = graph.inputs_of(node), graph.outputs_of(node)
    assert isinstance(operator, $Name)
    depth = (1, *source.shape)[-1]
    arguments = (str(source.elements // depth), str(depth), $arguments"input", "output")
    parameters = (Parameter("const float *", "input", source.name), Parameter("float *", "output", output.name))
    return KernelCall("$lower", "$lower.h", parameters, (f"mlf_${lower}_float({', '.join(arguments)});",))
'''
_KERNEL = """/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The mlfbuild authors */
/*
 * $Name of float32.
 */
#ifndef MLF_${UPPER}_H_
#define MLF_${UPPER}_H_

#include <stdint.h>

$kernel
#endif /* MLF_${UPPER}_H_ */
"""
_UNARY_KERNEL = """#include "compiler.h"
#include "float_math.h"
#include "unary.h"

/* TODO: say how it is computed, and how exact it is. */
MLF_KERNEL float mlf_float_$lower(float x)
{
    return x; /* TODO */
}

MLF_UNARY(mlf_${lower}_float(MLF_UNARY_PARAMETERS(float)), float, mlf_float_$lower(a))
"""
_BINARY_KERNEL = """#include "binary.h"
#include "compiler.h"
#include "float_math.h"

/* TODO: say how it is computed, and how exact it is. */
MLF_KERNEL float mlf_float_$lower(float x, float y)
{
    return x + y; /* TODO */
}

MLF_BINARY(mlf_${lower}_float(MLF_BINARY_PARAMETERS(float, float)), float, float, mlf_float_$lower(a, b))
"""
_SINGLE_KERNEL = """#include "compiler.h"
#include "float_math.h"

/* TODO: say how it is computed, and how exact it is. Rows are along the last dimension and have depth elements. */
$signature
{
    for (int32_t i = 0; i < rows * depth; i++) {
        output[i] = input[i]; /* TODO */
    }
}
"""
_ONNX_TEST = '''"""$Name in numpy and as C equals ONNX's evaluator."""

from __future__ import annotations

import numpy as np

from support.onnx_cases import check


def test_equals_onnx() -> None:
    $inputs
    check({"$Name": ("$Name", {}, inputs, {})})
'''
_TFLITE_TEST = '''"""$UPPER in numpy and as C equals LiteRT."""

from __future__ import annotations

import numpy as np

from mlfbuild.native.frontends.tflite import parse_tflite
from mlfbuild.native.graph.nodes import evaluate
from support.host_c import run_on_host
from support.native import compile_network
from support.oracle import assert_equal, litert_run
from support.tflite_builder import Network


def test_equals_litert() -> None:
    value = np.random.default_rng(0).normal(size=(2, 3, 4, 5)).astype(np.float32)
    network = Network()
    source, output = network.input(value.shape), network.activation(value.shape)
    model = network.build([network.operator("$UPPER", [source], output, $options)])
    graph = parse_tflite(model, "net", "net")
    (wanted,) = litert_run(model, [value])
    assert_equal(evaluate(graph, {graph.inputs[0]: value})[graph.outputs[0]], wanted, "numpy")
    assert_equal(run_on_host(compile_network(graph), [value])[0], wanted, "C")
'''


@dataclass(frozen=True)
class _Kind:
    """The templates of a kind of operator; ``inputs`` is the number of its tensors, ``table`` the file of its row."""

    inputs: int
    operator: str
    kernel: str
    test: str
    table: str
    row: str
    lowering: str = ""


_ONNX_ROWS = "onnx/operators/elementwise.py"
_C_TYPES = {
    int: ("int32_t", "str(operator.{})"),
    float: ("float", "floating(operator.{})"),
    bool: ("int", "str(int(operator.{}))"),
}
"""The type in C of an option, and its literal."""
_KINDS: Mapping[tuple[str, str], _Kind] = {
    ("onnx", "unary"): _Kind(
        1, _UNARY, _UNARY_KERNEL,
        _ONNX_TEST.replace("$inputs", 'inputs = {"x": np.linspace(-8, 8, 4001, dtype=np.float32)}'),
        _ONNX_ROWS, 'plain("$Name")',
    ),
    ("onnx", "binary"): _Kind(
        2, _BINARY, _BINARY_KERNEL,
        _ONNX_TEST.replace(
            "$inputs",
            "rng = np.random.default_rng(0)\n    shapes = {\"a\": (3, 1, 50), \"b\": (4, 1)}\n    "
            "inputs = {name: rng.normal(size=shape).astype(np.float32) for name, shape in shapes.items()}",
        ),
        _ONNX_ROWS, 'of_two("$Name")',
    ),
    ("tflite", "single"): _Kind(
        1, _SINGLE, _SINGLE_KERNEL, _TFLITE_TEST, "tflite/operators/simple.py",
        "TfliteRow(\n        lambda _, *options: ops.$Name(*options),\n        $accessors\n    )", _LOWERING,
    ),
}  # fmt: skip


def _snake(name: str) -> str:
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name).lower()


def _options(name: str) -> dict[str, type]:
    """Return the scalar options of the TFLite operator ``name``: accessor in the generated class -> type."""
    try:
        table = getattr(importlib.import_module(f"tflite.{name}Options"), f"{name}Options")
    except ModuleNotFoundError:
        return {}
    builder = flatbuffers.Builder()
    builder.StartObject(0)
    builder.Finish(builder.EndObject())
    empty = table.GetRootAs(builder.Output())
    own = [key for key, value in vars(table).items() if inspect.isfunction(value) and key != "Init"]
    # Accessors of vectors take an index; others of the same vector begin with its name.
    vectors = tuple(key for key in own if inspect.signature(getattr(empty, key)).parameters)
    # A default, which an empty table has, shows the type.
    scalars = {key: type(getattr(empty, key)()) for key in own if not key.startswith(vectors)}
    return {key: kind for key, kind in scalars.items() if kind in _C_TYPES}


def _words(name: str, lower: str, options: Mapping[str, type]) -> dict[str, str]:
    """Return the text of each word of the templates."""
    fields = {_snake(key): kind for key, kind in options.items()}
    table = [f"{name}Options"] if options else []
    accessors = ", ".join(f'"{key}"' for key in (*table, *options))
    start = f"MLF_KERNEL void mlf_{lower}_float("
    numbers = "".join(f"{_C_TYPES[kind][0]} {key}, " for key, kind in fields.items())
    parameters = f"int32_t rows, int32_t depth, {numbers}const float *input, float *output)"
    return {
        "Name": name,
        "UPPER": lower.upper(),
        "lower": lower,
        "fields": "".join(f"    {key}: {kind.__name__}\n" for key, kind in fields.items()),
        "imports": "from mlfbuild.library.cgen import floating\n" if float in fields.values() else "",
        "arguments": "".join(f"{_C_TYPES[kind][1].format(key)}, " for key, kind in fields.items()),
        "signature": textwrap.fill(f"{start}{parameters}", 120, subsequent_indent=" " * len(start)),
        "options": ", ".join([f'"{kind}"' for kind in table] + [f"{key}=1" for key in options]),
        "accessors": textwrap.fill(f"options=({accessors}),", 112, subsequent_indent=" " * 17),
    }


def with_row(text: str, name: str, row: str) -> str:
    """Return the converters ``text`` with a ``row`` for ``name``, in alphabetical order."""
    before, table, rows = re.split(r"(?<=\n)((?:OPERATORS|ROWS): Mapping\[.*\] = \{\n)", text)
    others = re.finditer(r'^    "(\w+)"', rows, re.MULTILINE)
    at = next((other.start() for other in others if other[1] > name), rows.index("\n}") + 1)
    return f'{before}{table}{rows[:at]}    "{name}": {row},\n{rows[at:]}'


def _mistake(source: str, name: str, inputs: int) -> str | None:
    """Return why ``name`` is no new operator of ``source`` (onnx or tflite) with ``inputs`` tensors, or ``None``."""
    if source == "tflite":
        known = name in vars(BuiltinOperator) and name.isupper()
        supported = known and getattr(BuiltinOperator, name) in SUPPORTED
    else:
        # Those that are only folded or expanded have no kernel, and may get one.
        known, supported = onnx.defs.has(name), name in {*generate.onnx_table(), *CONTROL_FLOW}
    if not known:
        example = "NAME=Softsign" if source == "onnx" else "FROM=tflite CODE=LOCAL_RESPONSE_NORMALIZATION"
        return f'"{name}" is not an operator of {source}: make new-operator {example}'
    if supported or _snake(name).upper() in generate.operator_table():
        return f"{name} exists already"
    if source == "onnx" and onnx.defs.get_schema(name).max_input != inputs:
        return f"{name} of onnx does not have {inputs} input(s): choose another KIND"
    return None


def write(kind: _Kind, row_name: str, words: Mapping[str, str], root: Path) -> list[Path]:
    """Write the files of an operator in the checkout ``root``; return the two to complete, and the test.

    Raises ``FileExistsError``, before it writes anything, if one of them exists.
    """
    native, lower = root / "mlfbuild/native", words["lower"]
    files = {
        native / f"graph/ops/arithmetic/{lower}.py": kind.operator,
        native / f"kernels/portable/arithmetic/{lower}.h": _KERNEL.replace("$kernel", kind.kernel),
        root / f"tests/native/test_{lower}.py": kind.test,
        **({native / f"lowering/arithmetic/{lower}.py": kind.lowering} if kind.lowering else {}),
    }
    for path in files:
        if path.exists():
            raise FileExistsError(None, None, str(path))
    for path, template in files.items():
        path.write_text(Template(template).substitute(words), encoding="utf-8")
    rows = native / "frontends" / kind.table
    row = Template(kind.row).substitute(words)
    rows.write_text(with_row(rows.read_text(encoding="utf-8"), row_name, row), encoding="utf-8")
    # The length of names decides where lines break.
    python = [str(path) for path in files if path.suffix == ".py"]
    subprocess.run([sys.executable, "-m", "ruff", "format", "-q", *python], cwd=root, check=True)
    return list(files)[:3]


def main() -> None:
    """Write the files and their registration, and print what is left to do."""
    given = {key: value for key, _, value in (word.partition("=") for word in sys.argv[1:]) if value}
    source = given.get("FROM", "onnx")
    sort = given.get("KIND", "single" if source == "tflite" else "unary")
    name = given.get("CODE" if source == "tflite" else "NAME", "")
    kind = _KINDS.get((source, sort))
    if kind is None:
        known = ", ".join(f"FROM={source} KIND={sort}" for source, sort in _KINDS)
        _refuse(f"there is no FROM={source} KIND={sort}, only {known}")
    if (mistake := _mistake(source, name, kind.inputs)) is not None:
        _refuse(mistake)
    pascal = name if source == "onnx" else name.title().replace("_", "")
    options = _options(pascal) if source == "tflite" else {}
    lower = name.lower() if source == "tflite" else _snake(name)
    try:
        *by_hand, test = write(kind, name, _words(pascal, lower, options), generate.ROOT)
    except FileExistsError as error:
        _refuse(f"{error.filename} exists already")
    generate.write_operators()
    generate.write_onnx_operators()
    generate.write_faces()
    files = [str(path.relative_to(generate.ROOT)) for path in (*by_hand, test)]
    sys.stdout.write("complete {}\ncomplete {}\nthen run pytest {} and make generate\n".format(*files))


def _refuse(reason: str) -> NoReturn:
    sys.stderr.write(f"{reason}\n")
    sys.exit(2)


if __name__ == "__main__":
    main()
