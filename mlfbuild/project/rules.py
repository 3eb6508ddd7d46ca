"""Rules for texts in a project file: each one a check with a reason, and the same thing as JSON Schema.

Rules annotate the keys in ``keys``: ``cpu: Annotated[str, CPU]``.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from pydantic import GetCoreSchemaHandler, GetJsonSchemaHandler
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import CoreSchema, core_schema

from mlfbuild.project.addresses import ARCHIVE_PATTERN, GIT_PATTERN, archive_problem, git_problem
from mlfbuild.project.names import NAME
from mlfbuild.project.placement import SECTION_NAME
from mlfbuild.project.problems import quoted, unknown
from mlfbuild.project.program import word_problem
from mlfbuild.project.sources import SOURCES, source_suffix
from mlfbuild.targets import BOARDS, CLANG, CPUS, GCC

EXTERNAL_COMPILERS = ("command", "tvm")
"""Those that read any file and leave an archive."""
COMPILERS = ("native", "archive", *EXTERNAL_COMPILERS)
"""Compilers of this version; a test holds them against the compilers' own table."""
EXECUTORS = ("aot", "graph")

# Names that CMake or the generated fragments use for something else.
_RESERVED_MODELS = ("board", "models", "placement")
_RESERVED_FIRMWARE = (
    "all", "clean", "edit_cache", "help", "install", "package", "package_source", "rebuild_cache", "test",
)  # fmt: skip
_NAME = r"[A-Za-z][A-Za-z0-9_-]{0,62}"
_NAME_ADVICE = "a letter, then letters, digits, _ and -, at most 63"


@dataclass(frozen=True, eq=False)
class Rule:
    """Metadata of an annotated ``str``: ``check`` returns the reason to refuse a text, ``None`` where it is fine."""

    check: Callable[[str], str | None]
    schema: Mapping[str, Any] = field(default_factory=dict)

    def _validate(self, value: str) -> str:
        reason = self.check(value)
        if reason:
            raise ValueError(reason)
        return value

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        return core_schema.no_info_after_validator_function(self._validate, handler(source))

    def __get_pydantic_json_schema__(self, schema: CoreSchema, handler: GetJsonSchemaHandler) -> JsonSchemaValue:
        return {**handler(schema), **self.schema}


def _known(what: str, words: Collection[str]) -> Rule:
    return Rule(lambda value: None if value in words else unknown(what, value, words), {"enum": list(words)})


def _named(what: str, pattern: str, advice: str, reserved: Collection[str] = ()) -> Rule:
    def check(value: str) -> str | None:
        if value in reserved:
            return f"the name {quoted(value)} is taken by the build; choose another"
        return None if re.fullmatch(pattern, value) else f"{quoted(value)} cannot name a {what}; use {advice}"

    return Rule(check, {"pattern": f"^{pattern}$"})


def source_problem(value: str) -> str | None:
    """Return why mlfbuild itself cannot read the model file ``value``, by its name; ``None`` where it can."""
    if source_suffix(value) in SOURCES:
        return None
    others = " or ".join(EXTERNAL_COMPILERS)
    return f"{quoted(value)} is not a kind of model file (supported: {', '.join(SOURCES)}; others by compiler {others})"


def _any_case(suffix: str) -> str:
    """Return a pattern for ``suffix`` in upper and lower case, as JSON Schema has no flag for that."""
    return "".join(f"[{char}{char.upper()}]" if char.isalpha() else char.replace(".", r"\.") for char in suffix)


CPU = _known("cpu", CPUS)
CPU = replace(CPU, schema={**CPU.schema, "enumDescriptions": [cpu.title for cpu in CPUS.values()]})
C_COMPILER = _known("C compiler", (GCC, CLANG))
BOARD = _known("board", BOARDS)
COMPILER = _known("compiler", COMPILERS)
EXECUTOR = _known("executor", EXECUTORS)
TARGET_NAME = _named("target", _NAME, _NAME_ADVICE)
FIRMWARE_NAME = _named("firmware", _NAME, _NAME_ADVICE, _RESERVED_FIRMWARE)
MODEL_NAME = _named(
    "model", r"[a-z][a-z0-9_]{0,62}", "a lower-case letter, then a-z, 0-9 and _, at most 63", _RESERVED_MODELS
)
MODULE_NAME = _named("module of an archive", r"[A-Za-z0-9_]+", "letters, digits and _")
OPTION_NAME = _named("compiler option", r"[a-z][a-z0-9-]*", "lower-case letters, digits and -")
SECTION = _named("linker section", SECTION_NAME.pattern, "letters, digits, _ and ., no digit first")
REGION = _named("memory region", r"[A-Za-z_][A-Za-z0-9_]*", "letters, digits and _, no digit first")
PATH = Rule(lambda value: None if value.strip() else "a path must not be empty", {"pattern": r"\S"})
WORD = Rule(word_problem)


def _inside(value: str) -> str | None:
    """Return why ``value`` is no path inside of a library's folder."""
    if not value.strip():
        return "a path must not be empty"
    if "\\" in value:
        return f"{quoted(value)}: write / between folders"
    if value.startswith(("/", "~")) or re.match("[A-Za-z]:", value):
        return f"{quoted(value)} is absolute; write it from the dependency's own folder on"
    if ".." in value.split("/"):
        return f"{quoted(value)} leads out of the dependency's folder; name what lies in it"
    return None


def _subfolder(value: str) -> str | None:
    wildcard = f"{quoted(value)} is a pattern; name the folders one by one" if set(value) & set("*?[") else None
    return _inside(value) or wildcard


def canonical_license(value: str) -> str:
    """Return an SPDX expression as it is usually spelled; raises ``ValueError`` with the reason for any other text."""
    from packaging.licenses import InvalidLicenseExpression, canonicalize_license_expression  # few projects name one

    try:
        return canonicalize_license_expression(value)
    except InvalidLicenseExpression:
        reason = f"{quoted(value)} is no SPDX expression, as Apache-2.0 or MIT; others are written LicenseRef-NAME"
        raise ValueError(reason) from None


def _version(value: str) -> str | None:
    if re.match("[<>=!~^]", value) or set(value) & set("*, "):
        return f"{quoted(value)} is a range; state the one version that it is"
    fits = re.fullmatch(_VERSION, value) and not re.search(_NO_REF, value)
    return None if fits else f"{quoted(value)} is no version; write it as a tag, a branch or a commit is called"


def _compile_option(value: str) -> str | None:
    if not value.strip():
        return "an option must not be empty"
    odd = next((character for character in value if character in _STEERING or character.isspace()), None)
    return odd and f"{quoted(value)} holds {quoted(odd)}, which build systems read as their own; write one without it"


_VERSION = r"[A-Za-z0-9_][A-Za-z0-9_.+/@#-]{0,199}"
_NO_REF = r"\.\.|//|/\.|[./]$|\.lock$"  # git-check-ref-format(1)
_STEERING = "$;\"'\\`#<>&|*?(){}[]!^"
_INSIDE = r"^(?![/~]|[A-Za-z]:)(?!(.*/)?\.\.(/|$))[^\\]*[^\\\s][^\\]*$"
DEPENDENCY_NAME = _named("dependency", NAME, "a letter or digit, then letters, digits, ., _ and -, at most 63")
GIT_ADDRESS = Rule(git_problem, {"pattern": GIT_PATTERN})
ARCHIVE_ADDRESS = Rule(archive_problem, {"pattern": ARCHIVE_PATTERN})
PACKAGE = _named("package", r"[A-Za-z0-9_][A-Za-z0-9_.+-]*", "what find_package takes: letters, digits, _, ., + and -")
CMAKE_TARGET = _named(
    "library of CMake", r"[A-Za-z0-9_][A-Za-z0-9_.+-]*(::[A-Za-z0-9_.+-]+)*", "what target_link_libraries takes"
)
SHA256 = Rule(
    lambda value: None if re.fullmatch("[0-9A-Fa-f]{64}", value) else f"{quoted(value)} is not 64 hexadecimal digits",
    {"pattern": "^[0-9A-Fa-f]{64}$"},
)
VERSION = Rule(_version, {"pattern": f"^(?!.*({_NO_REF})){_VERSION}$"})
PATTERN = Rule(_inside, {"pattern": _INSIDE})
SUBFOLDER = Rule(_subfolder, {"pattern": _INSIDE.replace(r"\\", r"\\*?[")})
COMPILE_OPTION = Rule(_compile_option, {"pattern": "^[^" + re.escape(_STEERING) + r"\s]+$"})


def _only_for(compilers: Collection[str], key: str, **otherwise: Any) -> dict[str, Any]:
    """Return a JSON Schema that refuses ``key``, and demands ``otherwise``, with any other compiler."""
    chosen = {"properties": {"compiler": {"enum": list(compilers)}}, "required": ["compiler"]}
    return {"if": chosen, "else": {"not": {"required": [key]}, **otherwise}}


COMPILER_SCHEMAS = (
    {**_only_for(["command"], "command"), "then": {"required": ["command"]}},
    _only_for(["tvm"], "python"),
    _only_for(
        EXTERNAL_COMPILERS,
        "inputs",
        properties={"source": {"pattern": f"({'|'.join(_any_case(suffix) for suffix in SOURCES)})$"}},
    ),
)
"""What the keys of a model demand of each other, as far as JSON Schema says it; ``references`` has the words."""
