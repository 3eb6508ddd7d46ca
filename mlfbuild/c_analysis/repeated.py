"""Functions that TVM declares a second time with other parameters, so that the file does not compile.

With ``system-lib``, ``<module>_lib0.c`` begins with a registry, which declares each function as a packed one. The entry
after it declares or defines those that it calls with the parameters that they really have. The types differ

- in TVM 0.8 for ``tvmgen_<module>_run_model``, because the registry omits ``resource_handle``;
- since TVM 0.9, with unpacked operators or the C interface, for ``tvmgen_<module>___tvm_main__``;
- since TVM 0.12, with these, also for ``tvmgen_<module>_run``.

The declaration of the registry is superfluous, but the registry needs one of the name. So the real one must take its
place, rather than nothing: ``without_repeated_declarations`` puts it there and moves no other line.

Source: ``CreateFuncRegistry`` and ``Generate...Entrypoint...`` in TVM's ``source_module.cc``, 0.8 to 0.18.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from itertools import islice, pairwise

from mlfbuild.c_analysis.c_file import parameter_types

_REGISTRY = "_tvm_func_array["
# All repetitions are bounded, so that the time stays linear in texts that almost match. The first words are those
# that TVM prints: `TVM_DLL int32_t name(...)`, with or without the macro.
_DECLARED = re.compile(
    r"^(?P<head>(?:TVM_DLL[ \t]{1,9})?int32_t[ \t]{1,9})(?P<name>[A-Za-z_]\w*)[ \t]{0,9}"
    r"\((?P<parameters>[^(){};#/\"']{0,65536})\)\s{0,9}(?P<end>[;{])[ \t]{0,9}(?:\r?\n)?",
    re.MULTILINE | re.ASCII,
)
_WORD = re.compile(r"\w+|[^\s\w]")
# Registries have one function for each fused operator: some hundred in the largest networks.
_MAX_FUNCTIONS = 10_000


@dataclass(frozen=True)
class RepeatedDeclaration:
    """A superfluous declaration of a function: ``text[start:end]``, including its line end."""

    name: str
    start: int
    end: int
    line: int
    """From 1."""
    replacement: str
    """The real declaration, with as many line ends as the superfluous one, which must be put in its place."""
    superfluous: tuple[str, ...]
    """The types of its parameters."""
    real: tuple[str, ...]
    """The types of the parameters that the function has."""


def repeated_declarations(text: str) -> tuple[RepeatedDeclaration, ...]:
    """Return the declarations of the registry in the C file ``text`` that contradict the real ones, in its order.

    A file without a registry has none. Takes any text, and time that is linear in its length.
    """
    # Without a registry there is nothing before it, and the result is empty.
    registry = max(text.find(_REGISTRY), 0)
    before = list(islice(_DECLARED.finditer(text, 0, registry), _MAX_FUNCTIONS))
    wanted = {found["name"] for found in before}
    # A definition is the truth. Without one, the function is in another file, and the entry's own declaration has its
    # real parameters.
    real: dict[str, re.Match[str]] = {}  # a definition, or else the last declaration
    for found in _DECLARED.finditer(text, registry) if wanted else ():
        if found["name"] in wanted and (found["name"] not in real or real[found["name"]]["end"] == ";"):
            real[found["name"]] = found
    repeated: list[RepeatedDeclaration] = []
    line, at = 1, 0
    for found in before:
        line, at = line + text.count("\n", at, found.start()), found.start()
        other = real.get(found["name"])
        if other is not None and found["end"] == ";" and _types(found) != _types(other):
            repeated.append(_repeated(found, other, line))
    return tuple(repeated)


def without_repeated_declarations(text: str) -> str:
    """Return ``text`` with each superfluous declaration replaced by the real one; every other line keeps its number.

    A text without superfluous declarations is returned as it is. The result compiles if only these declarations
    kept it from compiling.
    """
    parts, at = [], 0
    for each in repeated_declarations(text):
        parts += [text[at : each.start], each.replacement]
        at = each.end
    return "".join([*parts, text[at:]]) if parts else text


def _repeated(wrong: re.Match[str], real: re.Match[str], line: int) -> RepeatedDeclaration:
    # The line count must not change: debug information, coverage and messages of compilers refer to lines.
    words = _words(real)
    structs = dict.fromkeys(tag for word, tag in pairwise(words) if word == "struct" and tag.isidentifier())
    before = "".join(f"struct {tag}; " for tag in structs)  # otherwise their scope would be the parameter list
    declared = f"{before}{real['head']}{real['name']}({' '.join(words)});"
    replacement = declared + ("\n" * wrong[0].count("\n") or " ")
    return RepeatedDeclaration(real["name"], *wrong.span(), line, replacement, _types(wrong), _types(real))


def _types(found: re.Match[str]) -> tuple[str, ...]:
    return parameter_types([*_words(found), ")"])


def _words(found: re.Match[str]) -> list[str]:
    return _WORD.findall(found["parameters"])
