"""Print the content of a library for people: a table for each module, with only the largest entries of long lists.

A table has one column of sizes, like ``ls -s`` and ``du``::

    input           490  input_1  int8 [1, 49, 10, 1]
    memory      105,348  workspace
                 53,304  constants
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby
from typing import Any, TypeAlias

from mlfbuild.archive.describe.facts import context_text, describe
from mlfbuild.archive.epoch import UNDATED
from mlfbuild.core import counted, listed, printable, quoted, text_table
from mlfbuild.library import ARCHIVE_FOLDER, FULL_MODEL, OPERATOR, Library, device_name

_WIDTH = 100
_SHOWN = 8
"""Entries of a long list; a list with one more entry is shown in full."""
_DETAILED = 8
"""Largest number of modules that are shown in full; more modules get one line each."""
_LISTED = 24
"""Largest number of such lines."""
_VALUE = 60
"""Largest number of characters of an unknown field's value."""
_ALL = "-v shows all"

_Row: TypeAlias = tuple[str, int | None, str]
"""Label, bytes (``None`` leaves the column empty), and text."""


def describe_text(library: Library, *, verbose: bool = False) -> str:
    """Return ``describe(library)`` as lines for people, the last one without a line end.

    Long lists show their largest entries and the sum of the others, unless ``verbose``.
    """
    facts = describe(library)
    modules = facts["modules"]
    lines = [f"Model Library Format version {facts['version']}, {counted(len(modules), 'module')}; sizes in bytes"]
    if len(modules) > _DETAILED and not verbose:
        lines += ["", *_module_table(modules)]
    else:
        for module in modules:
            lines += ["", _title(module), _table(_rows(module, verbose))]
    if facts["other_files"]:
        lines += ["", "files of no module", _table(_other_files(facts["other_files"], verbose))]
    if facts["unknown_fields"]:
        lines += ["", "metadata of no module", _table(_unknown(facts["unknown_fields"], verbose))]
    return "\n".join(lines)


def interface_text(library: Library) -> str:
    """Return the inputs and outputs of all modules as in ``describe_text``.

    A line has the direction, the size in bytes, the name, the type with the shape, and the quantisation and the name in
    the model if they are known. The last line has no line end.
    """
    rows = (row for module in describe(library)["modules"] for row in _rows(module, verbose=False))
    return _table(row for row in rows if row[0] in {"input", "output"})


def _table(rows: Iterable[_Row]) -> str:
    """Return ``rows`` as a table; a label is printed only if it differs from the one in the row before."""
    last = None
    cells: list[tuple[str, str, str]] = []
    for label, size, text in rows:
        cells.append(("" if label == last else label, "" if size is None else f"{size:,}", text))
        last = label
    return text_table(cells, align="lrl", indent=2, width=_WIDTH)


def _module_table(modules: Sequence[dict[str, Any]]) -> Iterator[str]:
    header = ["module", "executor", "inputs", "outputs", "workspace", "constants", "parameters", "code"]
    yield text_table(map(_module_line, modules[:_LISTED]), header=header, align="llrrrrrr", indent=2)
    if len(modules) > _LISTED:
        yield f"  ... and {len(modules) - _LISTED:,} more"
    yield f"  ({_ALL}; --model NAME shows one module in full)"


def _module_line(module: dict[str, Any]) -> list[str]:
    sizes = [
        sum(entry["workspace_size"] for entry in module["memory"]),
        sum(entry["constants_size"] for entry in module["memory"]),
        _total(module["parameters"]),
        _total(module["files"]) + _total(module["device_code"]),
    ]
    tensors = [f"{len(module[kind])}" for kind in ("inputs", "outputs")]
    return [printable(module["name"]), module["executor"] or module["style"], *tensors, *(f"{s:,}" for s in sizes)]


def _title(module: dict[str, Any]) -> str:
    name = printable(module["name"])
    if module["style"] == OPERATOR:
        return f"module {name}: operator"
    interface = {"c": ", C interface", "packed": ", packed interface"}.get(module["interface"], "")
    style = "" if module["style"] == FULL_MODEL else f"{printable(module['style'])}, "
    return f"module {name}: {style}{module['executor'] or 'no'} executor{interface}"


# The rows of one module ----------------------------------------------------------------------------------------------


def _rows(module: dict[str, Any], verbose: bool) -> Iterator[_Row]:
    yield from _origin(module)
    for kind in ("input", "output"):
        yield from ((kind, tensor["size"], line) for tensor, line in _tensor_lines(module[f"{kind}s"]))
        if not module[f"{kind}s"] and module["style"] != OPERATOR:
            yield kind, None, "unknown"
    yield from (("argument", buffer["size"], line) for buffer, line in _buffer_lines(module["buffers"]))
    yield from (("device", None, f"{printable(name)}, passed by the caller") for name in module["devices"])
    yield from _memory(module)
    yield from (("pool", pool["size"], _pool_line(pool)) for pool in module["pools"])
    yield from _graph(module, verbose)
    yield from _operators(module["operator_functions"], verbose)
    yield from _network(module["network"])
    yield from _trace(module["trace"])
    if module["hook"]:
        yield "hook", None, "called before each operator"
    if module["runtime"]:
        yield "runtime", None, "TVM's runtime in the archive"
    yield from _list("parameters", "array", module["parameters"], _parameter_line, verbose)
    yield from _list("code", "file", module["files"], lambda file: printable(file["path"]), verbose)
    for code in module["device_code"]:
        yield from _list("code", "file", code["files"], lambda file: printable(file["path"]), verbose, _for(code))
    yield from _program(module)
    yield from (("requires", None, _dependency_line(item)) for item in module["external_dependencies"])
    yield from _needs(module["needs"])
    yield from _unknown(module["unknown_fields"], verbose)


def _unknown(fields: Sequence[dict[str, Any]], verbose: bool) -> Iterator[_Row]:
    """Yield the fields of the metadata that the format does not define; long values are cut."""
    shown = fields if verbose or len(fields) <= _SHOWN + 1 else fields[:_SHOWN]
    for field in shown:
        value = json.dumps(field["value"], sort_keys=True)
        cut = value if verbose or len(value) <= _VALUE else f"{value[:_VALUE]}..."
        yield "unknown", None, f"{printable(field['place'])} = {cut}"
    if len(shown) < len(fields):
        yield "unknown", None, f"{len(fields) - len(shown):,} more fields ({_ALL})"


def _needs(needs: Sequence[dict[str, Any]]) -> Iterator[_Row]:
    """Yield requirements that are not in the metadata but follow from the code, and the origin of versions."""
    for need in needs:
        if not need["declared"]:
            name = " ".join(filter(None, (need["name"], need["version"])))
            headers = listed([printable(header) for header in need["headers"]])
            yield "requires", None, f"{name}: not in the metadata, but the code includes {headers}"
        exporter = printable(need["exporter"] or "")
        if need["version"] and exporter:
            yield "requires", None, f"  {exporter} was tested with version {need['version']}"
        elif not need["version"]:
            by = f" ({exporter} exported the code)" if exporter else ""
            yield "requires", None, f"  the version is unknown{by}, set it in the project file"


def _network(network: dict[str, Any] | None) -> Iterator[_Row]:
    if network is not None:
        macs = "" if network["macs"] is None else f", {network['macs']:,} multiply-accumulates per run"
        yield "network", None, f"{counted(network['operators'], 'operator')}{macs}"
        removed = network.get("removed")
        if removed is not None:
            macs = f"{removed['macs']:,} multiply-accumulates"
            yield "removed", None, f"{removed['weights']:,} bytes of weights, {macs}"


def _trace(tensors: Sequence[dict[str, Any]]) -> Iterator[_Row]:
    if tensors:
        yield "traced", _total(tensors), f"{counted(len(tensors), 'tensor')}, reported by traced runs"


def _origin(module: dict[str, Any]) -> Iterator[_Row]:
    several = len(set(module["target_device_types"])) > 1
    for text, device in zip(module["target"], module["target_device_types"], strict=True):
        place = f" (on {device_name(device)})" if several and device is not None else ""
        yield "target", None, printable(text.strip()) + place
    for context in module["contexts"]:
        yield "context", None, context_text(context, printable)
    if module["export_datetime"] not in {None, UNDATED}:
        yield "exported", None, printable(module["export_datetime"])
    if module["model_id"]:
        yield "model", None, f"sha256 {printable(module['model_id'])}"
    for name, value in module["extensions"].items():
        yield "extension", None, f"{name}: {quoted(value) if isinstance(value, str) else str(value).lower()}"
    if module["tflm"]:
        yield "numbers", None, f"as TensorFlow Lite Micro of {module['tflm']}"
    yield from (("note", None, printable(text)) for text in module["notes"])
    for path, found in groupby(module["repeated_declarations"], key=lambda each: each["path"]):
        lines = listed([f"line {each['line']}" for each in found])
        yield "note", None, f"{printable(path)} declares functions with wrong types ({lines}), a bug of TVM:"
        yield "note", None, "mlfbuild compiles a corrected copy; `mlfbuild convert --repair` corrects the archive"


def _tensor_lines(tensors: Sequence[dict[str, Any]]) -> Iterator[tuple[dict[str, Any], str]]:
    table = [[tensor["name"], _type(tensor), _quantisation(tensor), _source(tensor)] for tensor in tensors]
    yield from zip(tensors, text_table(table).split("\n"), strict=False)


def _buffer_lines(buffers: Sequence[dict[str, Any]]) -> Iterator[tuple[dict[str, Any], str]]:
    several = len({buffer["function"] for buffer in buffers}) > 1
    table = [
        [
            buffer["input_binding"] or f"argument {index}",
            _type(buffer),
            f"of {buffer['function']}" if several else "",
        ]
        for index, buffer in enumerate(buffers)
    ]
    yield from zip(buffers, text_table(table).split("\n"), strict=False)


def _type(tensor: dict[str, Any]) -> str:
    shape = ", shape unknown" if tensor["shape"] is None else f" {tensor['shape']}"
    return f"{printable(tensor['dtype'])}{shape}"


def _quantisation(tensor: dict[str, Any]) -> str:
    return "" if tensor["scale"] is None else f"scale {tensor['scale']:.9g}, zero point {tensor['zero_point']}"


def _source(tensor: dict[str, Any]) -> str:
    return f"in the model: {tensor['source_name']}" if tensor.get("source_name") else ""


def _memory(module: dict[str, Any]) -> Iterator[_Row]:
    several = len(module["memory"]) > 1
    for at, entry in enumerate(module["memory"]):
        place = f" on {entry['device_name']}" if several else ""
        yield "memory", entry["workspace_size"], f"workspace{place}"
        # Of the core's workspace, which is first: an NPU plans its own.
        if at == 0:
            for memory in (module["network"] or {}).get("memories", ()):
                yield "memory", memory["size"], f"  in {memory['name']}"
        if module["workspace_bound"] is not None and at == 0:
            yield "memory", module["workspace_bound"], "  peak use, the least that any memory plan needs"
        yield "memory", entry["constants_size"], f"constants{place}"
        yield "memory", entry["io_size"], f"inputs and outputs{place}"
    if module["state_size"]:
        yield "memory", module["state_size"], "state, kept between runs"


def _pool_line(pool: dict[str, Any]) -> str:
    owner = "passed by the caller" if pool["external"] else "defined by the code"
    size = ", size unknown" if pool["size"] is None else ""
    return f"{printable(pool['name'])}, {pool['kind']}, {owner}{size}"


def _graph(module: dict[str, Any], verbose: bool) -> Iterator[_Row]:
    graph = module["graph"]
    if graph is not None:
        nodes, operators = graph["nodes"], graph["operators"]
        kinds = f"{counted(nodes - operators, 'argument')}, {counted(operators, 'operator')}"
        yield "graph", graph["size"], f"{counted(nodes, 'node')}: {kinds}"
        yield "tensors", graph["storage_size"], f"{counted(graph['storage_ids'], 'storage id')} of the graph"
    if module["storage"] and (verbose or graph is None):
        yield "storage", _total(module["storage"]), "storage ids of the metadata"
        for entry in module["storage"]:
            binding = f", {printable(entry['input_binding'])}" if entry["input_binding"] else ""
            yield "storage", entry["size"], f"  id {entry['storage_id']}{binding}"


def _operators(functions: Sequence[dict[str, Any]], verbose: bool) -> Iterator[_Row]:
    if not functions:
        return
    yield "operators", None, f"{counted(len(functions), 'function')}, with the workspace of each:"
    kept, rest = _cut(functions, "workspace_size", verbose)
    yield from (("operators", function["workspace_size"], f"  {printable(function['name'])}") for function in kept)
    if rest:
        most = max(function["workspace_size"] for function in rest)
        yield "operators", most, f"  largest of {len(rest):,} more ({_ALL})"


def _parameter_line(parameter: dict[str, Any]) -> str:
    return f"{printable(parameter['name'])}  {_type(parameter)}"


def _program(module: dict[str, Any]) -> Iterator[_Row]:
    if module["source_text"]:
        yield "text", module["source_text"]["size"], "the program before code generation"
    for entry in module["tir"]:
        yield "text", entry["size"], f"the operator in TIR for {device_name(entry['device'])}"


def _dependency_line(dependency: dict[str, Any]) -> str:
    name = " ".join(printable(dependency[key]) for key in ("short_name", "version_spec") if dependency[key])
    url = printable(dependency["url"])
    if dependency["url_type"] == ARCHIVE_FOLDER:
        where = " of the archive" if dependency["in_archive"] else ", not in this archive"
        return f"{name}: folder {url}{where}{_bundle(dependency['bundle'])}"
    return f"{name}: {printable(dependency['url_type'])} {url}"


def _bundle(bundle: dict[str, Any] | None) -> str:
    if bundle is None:
        return ""
    return f", {counted(bundle['sources'], 'source')}, licence {printable(bundle['license'] or 'unknown')}"


# Lists ---------------------------------------------------------------------------------------------------------------


def _other_files(files: Sequence[dict[str, Any]], verbose: bool) -> Iterator[_Row]:
    for folder, group in groupby(files, key=lambda file: file["path"].rpartition("/")[0].split("/")[0]):
        entries = list(group)
        if folder and not verbose:
            yield "", _total(entries), f"{folder}/, {counted(len(entries), 'file')}"
        else:
            yield from (("", file["size"], file["path"]) for file in entries)


def _for(code: dict[str, Any]) -> str:
    return f" for the device {printable(code['device'])}"


def _list(
    label: str, noun: str, entries: Sequence[dict[str, Any]], line: Any, verbose: bool, more: str = ""
) -> Iterator[_Row]:
    """Yield a row with the sum of ``entries`` that ends with ``more``, and one for each entry or the largest ones."""
    if not entries:
        return
    yield label, _total(entries), counted(len(entries), noun) + more
    kept, rest = _cut(entries, "size", verbose)
    yield from ((label, entry["size"], f"  {line(entry)}") for entry in kept)
    if rest:
        yield label, _total(rest), f"  {len(rest):,} more ({_ALL})"


def _cut(
    entries: Sequence[dict[str, Any]], key: str, verbose: bool
) -> tuple[Sequence[dict[str, Any]], Sequence[dict[str, Any]]]:
    """Return the entries to show and the others: all in their order, or the largest by ``key`` first."""
    # A line about a single entry that is left out would be as long as the entry.
    if verbose or len(entries) <= _SHOWN + 1:
        return entries, ()
    # Sorting keeps the order of equal sizes, so the text is the same in each run.
    ordered = sorted(entries, key=lambda entry: -int(entry[key]))
    return ordered[:_SHOWN], ordered[_SHOWN:]


def _total(entries: Iterable[dict[str, Any]]) -> int:
    return sum(int(entry["size"]) for entry in entries)
