"""``mlfbuild show``."""

from __future__ import annotations

import codecs
import json
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from mlfbuild.cli.options import ARCHIVE, SharedOptions, verb
from mlfbuild.cli.output.printing import copy, has_colour, show_as_it_is, show_json, stream
from mlfbuild.core import UsageError, terminal_text, text_table

if TYPE_CHECKING:
    from mlfbuild.archive.program import CodeFunction, ProgramOperator
    from mlfbuild.library import Content, TensorInfo
    from mlfbuild.usecases import FunctionText, ProgramPart

_PARTS = ("relay", "tir", "graph", "plan")
_MAX_COLOURED = 1024 * 1024  # bytes; colouring them takes a second
_MAX_FUNCTIONS = 4  # of one call
_LEXERS: Mapping[str, str] = {"relay": "rust", "tir": "python", "graph": "json", "plan": "json"}
"""The names of lexers of pygments; there is none for Relay, and that of Rust knows its words and comments."""


@verb("model", "format")
@ARCHIVE
@click.argument("part", type=click.Choice(_PARTS), required=False, metavar="[PART]")
@click.option("--function", metavar="NAME", help="Print the definition of a C function instead.")
def show(options: SharedOptions, archive: Path, part: str | None, function: str | None) -> None:
    """Print the program of ARCHIVE, and the C function of each operator.

    ARCHIVE may be a .tflite or .onnx file: it is compiled for this machine.

    PART is relay (the program before code generation), tir (that of an operator) or graph (JSON of the graph executor);
    the default is all three. plan is the JSON of the kernels that the native compiler considered for each operator.
    If stdout is not a terminal, a single text is printed byte for byte, without the list of operators.
    """
    from mlfbuild.usecases import function_called, program_parts

    if function is not None:
        if part is not None:
            raise UsageError(
                "function-with-part", place="--function", reason=f"does not apply to {part}", hint="omit one of them"
            )
        _show_function(options, archive, function_called(archive, function, options.model))
        return
    parts = program_parts(archive, part, options.model)
    if options.json:
        show_json({"archive": archive, "parts": [_part_json(each) for each in parts]})
    # For ``mlfbuild show A.tar graph > graph.json``: the bytes as they are in the archive.
    elif len(parts) == 1 and not sys.stdout.isatty():
        from mlfbuild.library import chunks

        copy(chunks(parts[0].content))
    else:
        _show_parts(parts)


def _show_function(options: SharedOptions, archive: Path, found: FunctionText) -> None:
    place = found.function
    if options.json:
        text = found.text.decode(errors="replace")
        show_json({"archive": archive, "module": found.module, **vars(place), "text": text})
    elif sys.stdout.isatty():
        show_as_it_is(f"/* {place.file}:{place.line} */")
        _show_text(found.text, "c")
    else:
        copy([found.text, b"\n"])


def _show_parts(parts: Sequence[ProgramPart]) -> None:
    for index, each in enumerate(parts):
        if len(parts) > 1:
            blank = "\n" if index else ""
            show_as_it_is(f"{blank}module {each.module.name}: {each.part}\n")
        _show_text(each.content, _LEXERS[each.part])
        table = _table(each.operators)
        if table:
            show_as_it_is(f"\n{table}")


def _show_text(content: Content, lexer: str) -> None:
    """Print a text to a terminal in colours; a large one without, part by part."""
    from mlfbuild.library import chunks, text_of

    if len(content) <= _MAX_COLOURED:
        text = text_of(content).removesuffix("\n")
        if has_colour(sys.stdout):
            _print_coloured(text, lexer)
        else:
            show_as_it_is(text)
        return
    # A character of several bytes may be divided between two parts.
    decoder = codecs.getincrementaldecoder("utf-8")("replace")
    for part in chunks(content):
        stream(decoder.decode(part))
    show_as_it_is(decoder.decode(b"", final=True))


def _print_coloured(text: str, lexer: str) -> None:
    from rich.console import Console
    from rich.syntax import Syntax

    # `highlight` returns the text alone; printing a Syntax fills each line up to the width of the terminal.
    syntax = Syntax("", lexer, theme="ansi_dark", background_color="default")
    console = Console(file=sys.stdout, force_terminal=True, soft_wrap=True)
    console.print(syntax.highlight(terminal_text(text)), end="")


def _table(operators: Sequence[ProgramOperator]) -> str:
    """Return a table of ``operators``, without columns that are empty in all rows."""
    header = ("operator", "line", "function", "defined in", "inputs -> outputs")
    rows = list(_rows(operators))
    kept = [index for index in range(len(header)) if any(row[index] for row in rows)]
    return text_table([[row[index] for index in kept] for row in rows], header=[header[index] for index in kept])


def _rows(operators: Sequence[ProgramOperator]) -> Iterator[tuple[str, str, str, str, str]]:
    for operator in operators:
        line = "" if operator.line is None else str(operator.line)
        functions = [(each.name, _place(each)) for each in operator.functions[:_MAX_FUNCTIONS]] or [("", "")]
        yield (operator.name, line, *functions[0], _tensors(operator))
        yield from (("", "", name, place, "") for name, place in functions[1:])
        if len(operator.functions) > _MAX_FUNCTIONS:
            yield ("", "", f"... {len(operator.functions) - _MAX_FUNCTIONS} more", "", "")


def _place(function: CodeFunction) -> str:
    if not function.file:
        # Built-in functions of TVM's executor, such as __nop, have no definition in the archive.
        return "" if function.name.startswith("__") else "not defined"
    return function.file if function.line is None else f"{function.file}:{function.line}"


def _tensors(operator: ProgramOperator) -> str:
    if not operator.inputs and not operator.outputs:
        return ""
    inputs, outputs = (
        ", ".join(f"{tensor.dtype}[{','.join(map(str, tensor.shape or ()))}]" for tensor in side)
        for side in (operator.inputs, operator.outputs)
    )
    return f"{inputs} -> {outputs}" if outputs else inputs


def _part_json(part: ProgramPart) -> dict[str, Any]:
    from mlfbuild.library import text_of

    operators = [
        {
            "name": operator.name,
            "line": operator.line,
            "functions": operator.functions,
            "inputs": [_tensor_json(tensor) for tensor in operator.inputs],
            "outputs": [_tensor_json(tensor) for tensor in operator.outputs],
        }
        for operator in part.operators
    ]
    text = text_of(part.content)
    content = {part.part: json.loads(text)} if part.part in {"graph", "plan"} else {"text": text}
    return {"module": part.module.name, "part": part.part, **content, "operators": operators}


def _tensor_json(tensor: TensorInfo) -> dict[str, Any]:
    return {"name": tensor.name, "dtype": tensor.dtype, "shape": tensor.shape}
