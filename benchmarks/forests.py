"""Measure random forests of scikit-learn on an emulated Cortex-M4: mlfbuild, emlearn and onnx2c.

    pip install scikit-learn skl2onnx emlearn onnx        # in an environment with mlfbuild's requirements
    python benchmarks/forests.py [--onnx2c PROGRAM] [--update]

Trains 10 trees of depth 8 per data set, and 30 for the digits, generates C in every way, builds it with GCC at -O2, and
counts the mean instructions of a row of features. ``--update`` writes the table of benchmarks/evidence.md. Without
``--onnx2c``, the figures of onnx2c are those in benchmarks/results/forests.json.
"""

from __future__ import annotations

import argparse
import copy
import json
import re
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import onnx

sys.path[:0] = [str(Path(__file__).parent), str(Path(__file__).parents[1])]

from counting.firmware import (  # noqa: E402
    REPOSITORY,
    Subject,
    build,
    checked_run,
    count_instructions,
    flash_of,
    found_in,
    run,
)
from counting.report import put_into_pages, table  # noqa: E402

from mlfbuild.library import CompileRequest  # noqa: E402
from mlfbuild.native import NATIVE  # noqa: E402
from mlfbuild.targets import CPUS  # noqa: E402

RESULTS = REPOSITORY / "benchmarks/results/forests.json"
ROWS = 40
CPU = "cortex-m4"
FORESTS = (("iris", 10), ("wine", 10), ("digits", 10), ("digits", 30))
"""Data sets of scikit-learn, and numbers of trees."""


@dataclass(frozen=True)
class Forest:
    """A trained forest and the rows that are measured."""

    name: str
    estimator: Any
    rows: Any
    labels: Any
    """The predictions of scikit-learn."""
    model: Path
    """The file that skl2onnx wrote."""


@dataclass(frozen=True)
class Result:
    """Memory and instructions of one implementation; sizes in bytes."""

    forest: str
    code: str
    instructions: int
    flash: int
    ram: int
    stack: int
    equal: int
    """Rows with the label that scikit-learn predicts."""


@dataclass(frozen=True)
class Generated:
    """C of a forest, and how the firmware calls it."""

    call: str
    """The body of ``forest_run``."""
    headers: tuple[str, ...]
    feature: str = "float"
    scales: npt.NDArray[np.float32] | None = None
    """A feature of ``int16_t`` is the number divided by this one, rounded; ``None`` if it is only made an integer."""
    sources: tuple[Path, ...] = ()
    include_dirs: tuple[Path, ...] = ()
    declarations: str = ""
    ram: int = 0


def forests(folder: Path) -> Iterator[Forest]:
    """Train the forests, and write their ONNX files to ``folder``."""
    from skl2onnx import to_onnx
    from sklearn import datasets
    from sklearn.ensemble import RandomForestClassifier

    for name, trees in FORESTS:
        data = getattr(datasets, f"load_{name}")()
        values = data.data.astype(np.float32)
        estimator = RandomForestClassifier(trees, max_depth=8, random_state=0).fit(values, data.target)
        rows = values[:: len(values) // ROWS][:ROWS]
        path = folder / f"{name}{trees}.onnx"
        made = to_onnx(estimator, values[:1], options={"zipmap": False}, target_opset={"": 18, "ai.onnx.ml": 3})
        made.graph.input[0].type.tensor_type.shape.dim[0].dim_value = 1
        path.write_bytes(made.SerializeToString())
        yield Forest(f"{name}, {trees} trees", estimator, rows, estimator.predict(rows), path)


def with_integers(model: Path, scales: npt.NDArray[np.float32]) -> Path:
    """Write and return the file of ``model`` with features of int16, which it multiplies by ``scales``."""
    made = onnx.load(model)
    (port,) = made.graph.input
    port.type.tensor_type.elem_type = onnx.TensorProto.INT16
    for node in made.graph.node:
        node.input[:] = ["real" if name == port.name else name for name in node.input]
    made.graph.initializer.append(onnx.numpy_helper.from_array(scales, "scales"))
    made.graph.node.insert(0, onnx.helper.make_node("Cast", [port.name], ["cast"], to=onnx.TensorProto.FLOAT))
    made.graph.node.insert(1, onnx.helper.make_node("Mul", ["cast", "scales"], ["real"]))
    path = model.with_name(f"{model.stem}_int16.onnx")
    path.write_bytes(made.SerializeToString())
    return path


def scales_of(forest: Forest) -> npt.NDArray[np.float32]:
    """Return a scale per feature with which its numbers become int16."""
    # Powers of two, so that integers are as fine as int16 permits, and those of the digits exact.
    scales: npt.NDArray[np.float32] = np.exp2(np.ceil(np.log2(np.abs(forest.rows).max(axis=0).clip(1) / 32767)))
    return scales.astype(np.float32)


def of_mlfbuild(trees: str, feature: str) -> Callable[[Forest, Path], Generated]:
    """Return the generator that compiles the ONNX file with the option ``trees``, for features of a C type."""

    def generate(forest: Forest, folder: Path) -> Generated:
        if feature == "float":
            return compiled(forest.model, trees, folder)
        scales = scales_of(forest)
        made = compiled(with_integers(forest.model, scales), trees, folder)
        return replace(made, feature=feature, scales=scales)

    return generate


def compiled(model: Path, trees: str, folder: Path) -> Generated:
    """Compile the ONNX file ``model``, with the option ``trees``."""
    library = NATIVE.compile(CompileRequest("forest", model, CPUS[CPU], options={"trees": trees}))
    (module,) = library.modules
    for file in module.codegen:
        path = folder / file.path
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(file.data)
    size = module.main[0].workspace_size
    return Generated(
        "struct tvmgen_forest_inputs in = {(void *)(uintptr_t)row}; int64_t label;\n"
        "struct tvmgen_forest_outputs out = {&label, scores};\n"
        "mlf_forest_run(&in, &out, workspace); return (int32_t)label;",
        ("tvmgen_forest.h",),
        sources=tuple(sorted((folder / "host/src").glob("*.c"))),
        include_dirs=(folder / "host/include",),
        declarations=f"static uint8_t workspace[{size}] __attribute__((aligned(16)));",
        ram=size,
    )


def of_onnx2c(program: Path) -> Callable[[Forest, Path], Generated]:
    """Return the generator that runs onnx2c."""

    def generate(forest: Forest, folder: Path) -> Generated:
        folder.mkdir(parents=True)
        text = subprocess.run([program, forest.model], capture_output=True, text=True, check=True).stdout
        (folder / "forest.c").write_text(text)
        width, classes = forest.rows.shape[1], len(forest.estimator.classes_)
        return Generated(
            f"int64_t label[1]; entry((const float (*)[{width}])row, label, (float (*)[{classes}])scores);"
            " return (int32_t)label[0];",
            (),
            sources=(folder / "forest.c",),
            declarations=re.search(r"^void entry\([^)]*\)", text, re.MULTILINE)[0] + ";",  # type: ignore[index]
        )

    return generate


def of_emlearn(method: str, dtype: str, *, scaled: bool = False) -> Callable[[Forest, Path], Generated]:
    """Return the generator that runs emlearn; the trees vote for labels, as it does by default.

    If ``scaled``, features have the scales that mlfbuild gets, which emlearn leaves to the training.
    """

    def generate(forest: Forest, folder: Path) -> Generated:
        import emlearn

        folder.mkdir(parents=True)
        scales = scales_of(forest) if scaled else None
        estimator = copy.deepcopy(forest.estimator)
        for tree in (each.tree_ for each in estimator.estimators_ if scales is not None):
            tree.threshold[:] /= scales[tree.feature]  # leaves have neither, and are not compared
        emlearn.convert(estimator, method=method, dtype=dtype).save(file=str(folder / "forest.h"), name="forest")
        return Generated(
            f"(void)scores; return (int32_t)forest_predict(row, {forest.rows.shape[1]});",
            ("forest.h",),
            feature=dtype,
            scales=scales,
            include_dirs=(folder, Path(emlearn.includedir)),
        )

    return generate


def measured(forest: Forest, code: str, generated: Generated, folder: Path) -> Result:
    """Build, run and count ``generated``, which is in ``folder``."""
    whole = generated.feature != "float"
    scaled = forest.rows if generated.scales is None else np.rint(forest.rows / generated.scales)
    rows = scaled.astype(np.int16) if whole else forest.rows
    number = "{}" if whole else "{:.9e}f"
    lines = [
        "#include <stdint.h>",
        *(f'#include "{header}"' for header in generated.headers),
        f"#define FEATURE {generated.feature}",
        f"enum {{ ROWS = {len(rows)}, WIDTH = {rows.shape[1]}, CLASSES = {len(forest.estimator.classes_)} }};",
        "static const FEATURE rows[ROWS][WIDTH] = {",
        *(f"{{{', '.join(map(number.format, row))}}}," for row in rows.tolist()),
        "};",
        f"static const int32_t expected[ROWS] = {{{', '.join(map(str, forest.labels))}}};",
        "#ifndef BASELINE",
        generated.declarations,
        "static int32_t forest_run(const FEATURE *row, float *scores)",
        f"{{ {generated.call} }}",
        "#endif",
    ]
    (folder / "forest_data.h").write_text("\n".join(lines) + "\n")
    harness = REPOSITORY / "benchmarks/firmware/forest.c"
    subject = Subject("forest", generated.sources, (folder, *generated.include_dirs), "", 0, harness=harness)
    elf, alone = build(subject, CPU, folder, ("-w",))
    instructions = int(found_in(r"region 0 insns (\d+)", count_instructions(elf, CPU))) - int(
        found_in(r"region 0 insns (\d+)", count_instructions(alone, CPU))
    )
    used = checked_run(elf, CPU, code)
    printed = run(["qemu-system-arm", "-M", "mps2-an386", "-nographic", "-monitor", "none", "-serial", "none",
                   "-semihosting-config", "enable=on,target=native", "-kernel", elf])  # fmt: skip
    return Result(
        forest.name,
        code,
        round(instructions / len(rows)),
        flash_of(elf) - flash_of(alone),
        generated.ram,
        int(used["stack"]),
        int(found_in(r"equal (\d+)", printed)),
    )


def results(onnx2c: Path | None) -> list[Result]:
    """Measure every forest in every way."""
    ways: dict[str, Callable[[Forest, Path], Generated]] = {
        "mlfbuild, tables": of_mlfbuild("tables", "float"),
        "mlfbuild, code": of_mlfbuild("code", "float"),
        "mlfbuild, tables, int16": of_mlfbuild("tables", "int16_t"),
        "mlfbuild, code, int16": of_mlfbuild("code", "int16_t"),
        **({"onnx2c": of_onnx2c(onnx2c)} if onnx2c else {}),
        "emlearn inline, float": of_emlearn("inline", "float"),
        "emlearn inline, int16": of_emlearn("inline", "int16_t"),
        "emlearn inline, int16, scaled": of_emlearn("inline", "int16_t", scaled=True),
        "emlearn loadable, int16": of_emlearn("loadable", "int16_t"),
    }
    found = []
    with tempfile.TemporaryDirectory() as temporary:
        for forest in forests(Path(temporary)):
            for number, (code, generate) in enumerate(ways.items()):
                folder = Path(temporary, f"{forest.model.stem}{number}")
                found.append(measured(forest, code, generate(forest, folder), folder))
                print(found[-1], flush=True)
    kept = json.loads(RESULTS.read_text()) if RESULTS.exists() else []
    return found + ([] if onnx2c else [Result(**row) for row in kept if row["code"] == "onnx2c"])


def block(found: list[Result]) -> str:
    """Return the table of the page, and a sentence about labels."""
    cells = {(row.code, row.forest): row for row in found}
    codes, names = (list(dict.fromkeys(each)) for each in zip(*cells, strict=True))
    rows = [
        (code, *(f"{row.instructions:,} / {row.flash:,} / {row.ram + row.stack}" if row else ""
                 for row in (cells.get((code, name)) for name in names)))
        for code in codes
    ]  # fmt: skip
    equal = {code: [str(row.equal) for row in found if row.code == code] for code in codes}
    wrong = "; ".join(f"{', '.join(each)} by {code}" for code, each in equal.items() if {*each} != {str(ROWS)})
    text = f"Labels equal to scikit-learn's, of {ROWS}: {wrong}; all by the others."
    return f"{table(('instructions / flash / RAM', *names), rows, range(1, len(names) + 1))}\n{text}\n"


def main() -> None:
    """Measure, and print or write the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--onnx2c", type=Path, help="program, built from its sources")
    parser.add_argument(
        "--update", action="store_true", help="write the results and the table of benchmarks/evidence.md"
    )
    options = parser.parse_args()
    found = results(options.onnx2c)
    print(block(found))
    if options.update:
        RESULTS.write_text(json.dumps([asdict(row) for row in found], indent=1) + "\n")
        put_into_pages({"forests": block(found)})


if __name__ == "__main__":
    main()
