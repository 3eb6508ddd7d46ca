"""Read the entry file, ``<module>_lib0.c`` of TVM: the function that firmware calls, and pools that the code defines.

Only the text around these definitions is parsed, because a constant pool is as long as the weights.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice

from mlfbuild.archive.interface.signature import Signature, named, small_text, sources
from mlfbuild.c_analysis import Token, in_braces, tokens
from mlfbuild.library import C_TYPES, Module, Pool, element_size, symbol_prefix

_SIZES = {"bool": 1, "half": 2, **{c_type: element_size(dtype) or 0 for dtype, c_type in C_TYPES.items()}}
"""Sizes of C types in bytes."""
# TVM's sections for pools, which linker scripts place (library.cgen.sections).
_POOL = re.compile(r'section\s*\(\s*"\.(bss\.noinit|rodata)\.tvm"')
_NUMBER = re.compile(r"[0-9]{1,18}")
_OUTPUT = re.compile(r"output[0-9]*")
_ANONYMOUS = re.compile(r"arg[0-9]+")
_DESCRIBED = re.compile(r"\.num_(input|output)_tensors\s{0,9}=\s{0,9}([0-9]{1,9})")
# The text is not trusted, so everything that is searched has a limit: a file may be as long as the weights in it.
_MAX_PLACES = 16  # pools, or declarations, definitions and calls of a function
_MAX_LENGTH = 256 * 1024  # characters of one declaration
_MAX_TOKENS = 50_000
_MAX_PARAMETERS = 16 * 1024  # characters
_MAINS = ("__tvm_main__", "run_model")
_HANDLE = re.compile(r"\bargs\)\[\(?([0-9]{1,4})\)?\]\.v_handle")


@dataclass(frozen=True)
class MainFunction:
    """The function that calls the operators; its name ends with ``run_model`` in TVM 0.8, or else ``__tvm_main__``."""

    name: str
    parameters: str
    """The text between the parentheses."""
    body: str


def entry_text(module: Module) -> str:
    """Return the text of the file that defines the entry, or else of the first; empty if there is no C file."""
    entry = _definition(f"{symbol_prefix(module.name)}_run")
    first = None
    for file in sources(module):
        text = small_text(file.content)
        if entry.search(text):
            return text
        first = text if first is None else first
    return first or ""


def main_function(module: Module) -> MainFunction | None:
    """Return the main function of an AOT module; ``None`` if there is no C code of it.

    The body is the text after the opening brace, without the closing one. ``tvmgen_<module>___tvm_main__`` is searched
    first, in the order of the files in the archive.
    """
    names = [f"{symbol_prefix(module.name)}_{suffix}" for suffix in _MAINS]
    for file in sources(module):
        text = small_text(file.content)
        for name in names:
            if name in text and (found := _definition(name).search(text)) is not None:
                # TVM indents the bodies of functions, so the first brace at the beginning of a line ends this one.
                end = text.find("\n}", found.end(), found.end() + _MAX_LENGTH)
                return MainFunction(name, found[1], text[found.end() : end])
    return None


def _definition(function: str) -> re.Pattern[str]:
    return re.compile(rf"\b{re.escape(function)}\s{{0,9}}\(([^();{{}}]{{0,{_MAX_PARAMETERS}}})\)\s{{0,9}}\{{")


# Pools ---------------------------------------------------------------------------------------------------------------


def internal_pools(text: str) -> tuple[Pool, ...]:
    """Return the pools of TVM's unified static memory planner that the code defines, in the file's order.

    Pools that the caller passes are in the header instead (``Header.pools``). The size is ``None`` if the length of a
    workspace is not a number, or a member of a constant pool is not recognised.
    """
    found = [_pool(_behind(text, place), place[1]) for place in islice(_POOL.finditer(text), _MAX_PLACES)]
    return tuple(pool for pool in found if pool is not None)


def _behind(text: str, place: re.Match[str]) -> Iterator[Token]:
    return islice(tokens(text[place.end() : place.end() + _MAX_LENGTH]), _MAX_TOKENS)


def _pool(source: Iterator[Token], section: str) -> Pool | None:
    """Parse the text after ``section("..."``: the length of a workspace, or the members of a struct of constants."""
    words: list[str] = []
    for token in source:
        # The name is the last word before the brace: `static struct foo {` in the section `.rodata.tvm`.
        if token.text == "{" and words[-2:-1] == ["struct"] and section == "rodata":
            return Pool(words[-1], "constant", _struct_size(source), external=False)
        if token.text == "[" and words[-2:-1] == ["uint8_t"] and section != "rodata":
            count = next(source, None)
            size = int(count.text) if count and _NUMBER.fullmatch(count.text) else None
            return Pool(words[-1], "workspace", size, external=False)
        if token.text in {"{", ";", "="}:
            return None
        if token.kind == "identifier":
            words.append(token.text)
    return None


def _struct_size(source: Iterator[Token]) -> int | None:
    """Return the size of a pool's struct up to the end of the last member; ``None`` if a member is not recognised."""
    end = 0
    member: list[str] = []
    for token in source:
        if token.text == "}":
            return end
        if token.text == ";":
            behind = _behind_member(end, member)
            if behind is None:
                return None
            end, member = behind, []
        else:
            member.append(token.text)
    return None


def _behind_member(start: int, words: Sequence[str]) -> int | None:
    """Return the end of a member ``<type> <name>[<count>] __attribute__((aligned(<n>)))`` that follows ``start``."""
    if len(words) < 4 or words[0] not in _SIZES or words[2] != "[" or not _NUMBER.fullmatch(words[3]):
        return None
    # Between `aligned` and its number is only the parenthesis.
    alignment = words[words.index("aligned") + 2] if "aligned" in words[:-2] else "1"
    # An alignment that is not a number is a macro, whose value is not known here.
    if not _NUMBER.fullmatch(alignment) or int(alignment) == 0:
        return None
    # The rule of compilers: a member begins at the next multiple of its alignment.
    return -(-start // int(alignment)) * int(alignment) + int(words[3]) * _SIZES[words[0]]


# The function --------------------------------------------------------------------------------------------------------


def entry_signature(module: Module, text: str) -> Signature | None:
    """Return the signature in the code of the entry function.

    With the C interface the code passes the members of structs by name, and with unpacked operators it declares the
    main function with the names of tensors. Otherwise only the number of arguments is known: the entry reads them, the
    main function does (TVM 0.8), or ``tvm_model_t`` states it (versions 1 to 4).

    ``text`` is that of the entry file (``entry_text``). ``None`` if it shows neither names nor the number of arguments.
    """
    body = _body(text, f"{symbol_prefix(module.name)}_run")
    if body is None:
        # No C code of the entry, so only the description `tvm_model_t` of older versions can say more.
        described = [int(number) for _, number in islice(_DESCRIBED.findall(text), 3)]
        return Signature(None, None, sum(described)) if len(described) == 2 else None
    inputs, outputs = _handed_on(body, "inputs"), _handed_on(body, "outputs")
    if inputs or outputs:
        return Signature(named(inputs), named(outputs))
    count = _packed_arguments(body)
    for suffix in _MAINS:
        names = _parameters(text, f"{symbol_prefix(module.name)}_{suffix}")
        if names:
            return _by_names(names, count)
    # TVM 0.8 reads the arguments in the main function instead of in the entry.
    main = main_function(module) if count is None else None
    count = _counted(_HANDLE.findall(main.body)) if main is not None else count
    return Signature(None, None, count) if count else None


def _counted(numbers: Iterable[str]) -> int | None:
    indices = {int(number) for number in numbers}
    # With a gap, some argument is read in another form, and the number is not certain.
    return len(indices) if indices and indices == set(range(len(indices))) else None


def _body(text: str, function: str) -> Sequence[Token] | None:
    for source in _uses(text, function):
        # Prototypes and calls end with `)` and no brace.
        if _closed(source) is not None and (token := next(source, None)) is not None and token.text == "{":
            return list(in_braces(source))
    return None


def _uses(text: str, function: str) -> Iterator[Iterator[Token]]:
    """Yield the tokens after each ``function(``."""
    found = re.finditer(rf"\b{re.escape(function)}\s*\(", text)
    for place in islice(found, _MAX_PLACES):
        yield _behind(text, place)


def _closed(source: Iterator[Token]) -> Sequence[Token] | None:
    """Return the tokens up to the closing ``)``, or ``None`` if there is none."""
    depth = 1
    found: list[Token] = []
    for token in source:
        depth += (token.text == "(") - (token.text == ")")
        if depth == 0:
            return found
        found.append(token)
    return None


def _handed_on(body: Sequence[Token], struct: str) -> list[str]:
    """Return the different members in ``struct->member``."""
    words = [token.text for token in body]
    triples = zip(words, words[1:], words[2:], strict=False)
    # TVM's entry passes the members one after the other, so the order of use is that of the arguments.
    return list(dict.fromkeys(third for first, arrow, third in triples if (first, arrow) == (struct, "->")))


def _packed_arguments(body: Sequence[Token]) -> int | None:
    """Return the number of arguments read from ``((TVMValue*)args)[<i>]``."""
    words = [token.text for token in body]
    runs = zip(words, words[1:], words[2:], words[3:], strict=False)
    return _counted(
        index
        for name, closing, bracket, index in runs
        if (name, closing, bracket) == ("args", ")", "[") and _NUMBER.fullmatch(index)
    )


def _parameters(text: str, function: str) -> list[str]:
    """Return the names of ``function``'s parameters; empty if they are not names of tensors."""
    source = next(_uses(text, function), None)
    declared = None if source is None else _closed(source)
    # These are the parameters of TVM's packed functions, and not tensors.
    if not declared or any(token.text in {"TVMValue", "resource_handle", "args"} for token in declared):
        return []
    parts: list[str] = [""]
    for token in declared:
        if token.text == ",":
            parts.append("")
        elif token.kind == "identifier":
            # In a declaration the name is the last identifier.
            parts[-1] = token.text
    # `arg0` and so on are TVM's replacements of names that it does not know.
    return [] if any(_ANONYMOUS.fullmatch(name) for name in parts) else parts


def _by_names(names: Sequence[str], count: int | None) -> Signature | None:
    """Split the names into inputs, outputs and pools, using TVM's names of outputs."""
    # TVM passes inputs, then outputs, then pools.
    first = next((index for index, name in enumerate(names) if _OUTPUT.fullmatch(name)), len(names))
    outputs = [name for name in names[first:] if _OUTPUT.fullmatch(name)]
    # A contradiction with the number of arguments that the entry reads means that the names are not those of tensors.
    if not outputs or (count is not None and first + len(outputs) != count):
        return None
    return Signature(named(names[:first]), named(outputs), count)
