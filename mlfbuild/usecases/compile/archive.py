"""A compiled model as a Python value, for scripts and notebooks.

    archive = compiled_archive(Path("kws.tflite"), "cortex-m4")
    archive.run({"input_1": spectrogram})                # outputs by name, as numpy arrays
    archive.compare("kws_v2.tflite")                     # a table of the differences
    archive.save("kws.tar")

What is printed and what a notebook shows fits one screen: small tables, as text in Python and as HTML in notebooks.
``archive.library`` has everything.
"""

from __future__ import annotations

import html
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from mlfbuild.archive import write_archive
from mlfbuild.archive.compare import compare
from mlfbuild.compilers import exported_cpu
from mlfbuild.core import counted, printable, shown, text_table
from mlfbuild.jobs import compiled_library, open_beside
from mlfbuild.library import Library, Module, OptionValue, TracedTensor
from mlfbuild.usecases.compile.file import file_job
from mlfbuild.verify import Traced, first_difference, float_tolerance, pair_ports, pair_traced
from mlfbuild.verify.host import Model, load_library

_ROWS = 20
"""Rows that a representation shows; with its title and a last line, it fits a screen of 24 lines."""
_LONGEST = 80
"""Characters of a text that a representation shows."""
_LONGEST_OF_MANY = 40
"""The same for a cell of a table with many columns."""


class Table(list[dict[str, Any]]):
    """Rows with the same keys, in the same order; ``pandas.DataFrame(table)`` has a column for each key.

    As a list, it is false if it has no rows.
    """

    def __init__(self, title: str, rows: Iterable[dict[str, Any]] = ()) -> None:
        super().__init__(rows)
        self.title = title

    def __repr__(self) -> str:
        numbers = ("r" if all(_is_number(value) for value in column) else "l" for column in self._columns())
        return as_text(self.title, self._cells(), list(self[0]) if self else (), "".join(numbers))

    def _repr_html_(self) -> str:
        return as_html(self.title, self._cells(), list(self[0]) if self else ())

    def _columns(self) -> Iterator[list[Any]]:
        return ([row[key] for row in self] for key in (self[0] if self else ()))

    def _cells(self) -> list[list[str]]:
        return [[shown(_cell(value), _LONGEST_OF_MANY) for value in row.values()] for row in self]


def _cell(value: object) -> str:
    if value is None:
        return ""
    # Before numbers: a bool is an ``int`` in Python.
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return f"{value:.6g}"
    return f"{value:,}" if isinstance(value, int) else str(value)


def _is_number(value: object) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def as_text(title: str, rows: Sequence[Sequence[str]], header: Sequence[str] = (), align: str = "") -> str:
    """Return a title and the first ``rows`` as lines; ``align`` is that of ``text_table``."""
    cells = [[shown(cell, _LONGEST) for cell in row] for row in rows[:_ROWS]]
    lines = [printable(title), text_table(cells, header=header, align=align, indent=2), _rest(rows)]
    return "\n".join(filter(None, lines))


def as_html(title: str, rows: Sequence[Sequence[str]], header: Sequence[str] = ()) -> str:
    """Return a title and the first ``rows`` as an HTML table; all texts are escaped."""
    head = f"<thead>{_html_row(header, 'th')}</thead>" if header and rows else ""
    body = "".join(_html_row([shown(cell, _LONGEST) for cell in row], "td") for row in rows[:_ROWS])
    rest = f"<p>{_rest(rows).strip()}</p>" if _rest(rows) else ""
    caption = f"<caption>{html.escape(printable(title))}</caption>"
    return f"<table>{caption}{head}<tbody>{body}</tbody></table>{rest}"


def _html_row(cells: Sequence[str], tag: str) -> str:
    return f"<tr>{''.join(f'<{tag}>{html.escape(cell)}</{tag}>' for cell in cells)}</tr>"


def _rest(rows: Sequence[Sequence[str]]) -> str:
    return f"  and {len(rows) - _ROWS:,} more" if len(rows) > _ROWS else ""


_Inputs = Mapping[str, npt.ArrayLike] | npt.ArrayLike
_Path = str | os.PathLike[str]
_Array = npt.NDArray[Any]


def compiled_archive(
    source: Path, cpu: str, *, name: str = "", executor: str = "", options: Mapping[str, OptionValue] | None = None
) -> Archive:
    """Compile the file ``source``, a model or an archive, for ``cpu``; raises as ``compile_file``.

    ``cpu`` is a name of ``mlfbuild boards``, or ``host``. An empty ``name`` or ``executor`` is derived from the file,
    as in ``file_job``. Nothing is written.
    """
    job = file_job(source, source.with_suffix(".tar"), cpu, name=name, executor=executor, options=options)
    return Archive(compiled_library(job))


class Archive:
    """A compiled model in memory: the content of a Model Library Format archive."""

    def __init__(self, library: Library) -> None:
        self.library = library
        """All content of the archive: modules, files, memory, parameters."""
        self._loaded: dict[str | None, Model] = {}

    def save(self, path: _Path, version: int | None = None) -> None:
        """Write the archive to the file ``path``; see ``mlfbuild.write_archive``.

        ``version`` is 1 to 7, by default the latest. Raises ``UsageError`` for content that the version cannot hold,
        and ``StorageError``.
        """
        write_archive(self.library, Path(path), version)

    def load(self, model: str | None = None, *, isolated: bool = False, timeout: float = 60.0) -> Model:
        """Return a network of the archive, compiled for this machine; see ``mlfbuild.load``.

        ``model`` may be omitted if there is one network. With ``isolated``, the code runs in another process, in which
        a case may take ``timeout`` seconds. The caller closes the network.
        """
        return load_library(self.library, "archive", model, isolated=isolated, timeout=timeout)

    def run(self, inputs: _Inputs, model: str | None = None, *, quantize: bool = False) -> dict[str, _Array]:
        """Run the network ``model`` on this machine and return its outputs by name, with ``quantize`` as real numbers.

        ``inputs`` are arrays by name, or the array of the only input; ``model`` may be omitted if there is one. Each
        call begins with the initial state; ``load`` returns a network that keeps its state. Raises as ``load`` and
        ``Model.run``.
        """
        network = self._network(model)
        return network.run(_by_name(inputs, network), quantize=quantize)

    def compare(self, other: Archive | _Path, inputs: _Inputs | None = None, model: str | None = None) -> Table:
        """Return a table of the differences between this archive and ``other``, an archive, its file or a model file.

        Without ``inputs``, each row is a difference of the contents: interface, memory, operators, weights, code. The
        table is empty if both mean the same. With ``inputs``, the network ``model`` of both runs on this machine, and
        each row is a tensor: operators that both expose (option ``trace``), then the outputs. Raises as ``run``,
        ``mlfbuild.open_archive`` and ``pair_ports``.
        """
        if not isinstance(other, Archive):
            other = Archive(open_beside(Path(other), self.library, trace=inputs is not None))
        if inputs is not None:
            return _compared_runs(self._network(model), other._network(model), inputs)
        found = compare(self.library, other.library)
        rows = [{**asdict(one), "module": one.module or ""} for one in found.differences]
        return Table(counted(len(rows), "difference"), rows)

    def _network(self, model: str | None) -> Model:
        # The code is compiled for this machine once, not for each run in a notebook.
        network = self._loaded.get(model)
        if network is None:
            network = self._loaded[model] = self.load(model)
        # ``run`` promises the initial state in each call.
        network.reset()
        return network

    @property
    def _title(self) -> str:
        cpu = exported_cpu(self.library)
        return f"Archive of {counted(len(self.library.modules), 'model')}{cpu and f' for {cpu}'}; sizes in bytes"

    def __repr__(self) -> str:
        return as_text(self._title, self._rows(), align="lrl")

    def _repr_html_(self) -> str:
        return as_html(self._title, self._rows())

    def _rows(self) -> list[tuple[str, str, str]]:
        return [row for module in self.library.modules for row in _module_rows(module)]


def _module_rows(module: Module) -> Iterator[tuple[str, str, str]]:
    network = module.network
    macs = f", {network.macs:,} multiply-accumulates" if network and network.macs is not None else ""
    operators = f", {counted(len(network.operators), 'operator')}{macs}" if network else ""
    yield module.name, "", f"{module.executor or 'single operator'}{operators}"
    for kind, tensors in (("input", module.inputs), ("output", module.outputs)):
        yield from ((kind, f"{tensor.size:,}", str(tensor)) for tensor in tensors)
    if module.main:
        yield "constants", f"{sum(each.constants_size for each in module.main):,}", "weights and tables, in flash"
        yield "workspace", f"{sum(each.workspace_size for each in module.main):,}", "memory of a run, in RAM"
    if module.state_size:
        yield "state", f"{module.state_size:,}", "kept between runs, in RAM"


# Runs ----------------------------------------------------------------------------------------------------------------


def _by_name(inputs: _Inputs, network: Model) -> Mapping[str, npt.ArrayLike]:
    if isinstance(inputs, Mapping):
        return inputs
    if len(network.inputs) != 1:
        names = ", ".join(repr(tensor.name) for tensor in network.inputs)
        raise ValueError(f"{network.name}: has several inputs; pass a dictionary of {names}")
    return {network.inputs[0].name: inputs}


def _compared_runs(first: Model, second: Model, inputs: _Inputs) -> Table:
    named = _by_name(inputs, first)
    sources = pair_ports("input", first.inputs, second.inputs)
    results = pair_ports("output", first.outputs, second.outputs)
    pairs = pair_traced(Traced(first.name, first.traced), Traced(second.name, second.traced))
    outputs, tensors = _ran(first, named, traced=bool(pairs))
    same = {second.inputs[pair.second].name: named[first.inputs[pair.first].name] for pair in sources}
    other_outputs, other_tensors = _ran(second, same, traced=bool(pairs))
    tolerance = float_tolerance(max(first.layers, second.layers))
    rows = [
        _row(first.traced[pair.first], tensors[pair.first], other_tensors[pair.second], tolerance) for pair in pairs
    ]
    rows += [
        _row(
            TracedTensor(first.outputs[pair.first], "", ""),
            outputs[pair.first],
            other_outputs[pair.second],
            tolerance,
            first.bound(pair.first),
        )
        for pair in results
    ]
    wrong = sum(not row["equal"] for row in rows)
    return Table(f"{counted(len(rows), 'tensor')} compared: {wrong or 'none'} differ", rows)


def _ran(network: Model, inputs: Mapping[str, npt.ArrayLike], *, traced: bool) -> tuple[list[_Array], list[_Array]]:
    outputs, tensors = network.run_traced(inputs) if traced else (network.run(inputs), {})
    return list(outputs.values()), list(tensors.values())


def _row(traced: TracedTensor, first: _Array, second: _Array, tolerance: float, bound: float = 0.0) -> dict[str, Any]:
    """Return what a table has about the values of a tensor in two networks."""
    first, second = first.reshape(-1), second.reshape(-1)
    found = first_difference(first, second, tolerance, bound)
    # Infinite minus infinite is not a number, about which numpy would warn; ``first_difference`` compares such values
    # itself.
    with np.errstate(invalid="ignore"):
        far = np.abs(first.astype(np.float64) - second.astype(np.float64))
    return {
        "tensor": traced.tensor.name,
        "operator": traced.operator or "output",
        "dtype": traced.tensor.dtype,
        "elements": first.size,
        "different": found.count if found else 0,
        "largest difference": float(np.max(far, initial=0.0)),
        "equal": found is None,
    }
