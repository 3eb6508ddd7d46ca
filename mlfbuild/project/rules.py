"""Rules for texts in a project file that no other module of this folder owns: names, choices, files of dependencies."""

from __future__ import annotations

import re
from collections.abc import Collection
from difflib import get_close_matches
from typing import Any

from mlfbuild import targets
from mlfbuild.core import Mistake, in_quotes, listed, unknown
from mlfbuild.core.keys import Rule, named, not_blank, one_of
from mlfbuild.library import NAME
from mlfbuild.library.keys import FACT_NAME, fact_name_problem, fact_problem
from mlfbuild.project.levels import LEVELS
from mlfbuild.project.program import EXTERNAL_COMPILERS
from mlfbuild.project.sources import SOURCES
from mlfbuild.targets import BOARDS, CLANG, CPUS, GCC

COMPILERS = ("native", "archive", *EXTERNAL_COMPILERS)
"""Compilers of this version; a test compares them with the compilers' own table."""
EXECUTORS = ("aot", "graph")

# Names that CMake or the generated fragments use for something else.
_RESERVED_MODELS = ("board", "models", "placement")
_RESERVED_FIRMWARE = (
    "all", "clean", "edit_cache", "help", "install", "package", "package_source", "rebuild_cache", "test",
)  # fmt: skip
_NAME = r"[A-Za-z][A-Za-z0-9_-]{0,62}"
_NAME_ADVICE = "a letter, then letters, digits, _ and -, at most 63"


def _cpu(value: str) -> Mistake | None:
    """Return why ``value`` is not a core; a microcontroller belongs under another key."""
    if value in CPUS:
        return None
    mistake = unknown("cpu", value, CPUS)
    return Mistake(mistake.code, reason=mistake.reason, hint=_other_key(value))


def _other_key(value: str) -> str:
    """Return the hint that ``value`` belongs under another key, empty if no key knows it."""
    is_mcu = value in targets.MCUS or targets.part_called(value) is not None
    key = "mcu" if is_mcu else "board" if targets.development_board(value) else ""
    return f"write {key}: {value}" if key else ""


def _mcu(value: str) -> Mistake | None:
    """Return why ``value`` is not a known microcontroller; one with a similar name may have another core."""
    # Files and packs are read, and their mistakes reported, before any key is checked.
    if value in targets.MCUS or targets.part_called(value) or targets.described_in(value):
        return None
    sizes = _several_parts(value)
    if sizes is not None:
        return sizes
    return Mistake(
        "unknown-mcu",
        reason=f"unknown mcu {in_quotes(value)}",
        hint=_other_key(value)
        or "`mlfbuild boards` lists the known ones; for another, write cpu, and its memories under timing and "
        "runner, or describe it in a file: mcu: mychip.toml",
    )


def _several_parts(value: str) -> Mistake | None:
    """Return the mistake about ``value`` if it is the beginning of the names of parts."""
    parts = targets.parts_beginning(value)
    if not parts:
        return None
    # The sizes are those of the flash, or of the RAM of parts without flash.
    sizes = [f"{part.name} ({(part.memory.flash or part.memory.ram).size >> 10} KiB)" for part in parts]
    reason = f"{in_quotes(value)} stands for {len(parts)} parts with other memories"
    return Mistake("unknown-mcu", reason=reason, hint=f"choose one of {listed(sizes)}; ? stands for any letter")


def device_problem(value: str) -> Mistake | None:
    """Return why ``value`` cannot be a target of the short form: it names no core, board or microcontroller.

    ``value`` is an item of a list of targets, or an option of ``init``. The mistake has the nearest names, or for the
    beginning of several names the parts with their memories.
    """
    if targets.keys_of_device(value) is not None:
        return None
    close = [*get_close_matches(value.lower(), CPUS, n=1), *targets.close_boards(value)]
    hint = f"did you mean {listed(close)}? " if close else ""
    return _several_parts(value) or Mistake(
        "unknown-device",
        reason=f"{in_quotes(value)} is no known cpu, mcu or board",
        hint=f"{hint}`mlfbuild boards` lists them",
    )


CPU = Rule(_cpu, {"enum": list(CPUS), "enumDescriptions": [cpu.title for cpu in CPUS.values()]})
C_COMPILER = one_of("C compiler", (GCC, CLANG))


def _board(value: str) -> Mistake | None:
    """Return why ``value`` is not a known board, nor ``qemu``."""
    if value in {QEMU, *BOARDS} or targets.development_board(value):
        return None
    close = targets.close_boards(value)
    hint = f"did you mean {listed(close)}? " if close else ""
    hint += "`mlfbuild boards` lists the known ones; for another, omit board and write mcu or cpu"
    return Mistake("unknown-board", reason=f"unknown board {in_quotes(value)}", hint=_other_key(value) or hint)


QEMU = "qemu"
"""The ``board`` of a target that selects the emulated board for its CPU."""


def _mcu_schemas() -> list[dict[str, Any]]:
    titles = [mcu.title for mcu in targets.MCUS.values()]
    return [
        {"type": "string", "enum": list(targets.MCUS), "enumDescriptions": titles},
        {"type": "string", "pattern": r"^[A-Za-z][A-Za-z0-9?-]+$|\.toml$"},
    ]


_IN_A_PACK = {
    "type": "object",
    "properties": {"pack": {"type": "string"}, "device": {"type": "string"}},
    "required": ["pack", "device"],
    "additionalProperties": False,
}
MCU = Rule(_mcu, lambda: {"anyOf": [*_mcu_schemas(), _IN_A_PACK], "type": ["string", "object"]})


def _board_schemas(*first: str) -> list[dict[str, Any]]:
    return [
        {"type": "string", "enum": [*first, *BOARDS]},
        {"type": "string", "enum": list(targets.all_boards())},
    ]


BOARD = one_of("board", BOARDS)
TARGET_BOARD = Rule(_board, lambda: {"anyOf": _board_schemas(QEMU)})
DEVICE = Rule(
    device_problem, lambda: {"format": "device", "anyOf": [{"enum": [*CPUS]}, *_board_schemas(), *_mcu_schemas()]}
)
COMPILER = one_of("compiler", COMPILERS)
EXECUTOR = one_of("executor", EXECUTORS)
LEVEL = one_of("optimisation level", LEVELS)
TARGET_NAME = named("target", _NAME, _NAME_ADVICE)
FIRMWARE_NAME = named("firmware", _NAME, _NAME_ADVICE, _RESERVED_FIRMWARE)
MODEL_NAME = named(
    "model", r"[a-z][a-z0-9_]{0,62}", "a lower-case letter, then a-z, 0-9 and _, at most 63", _RESERVED_MODELS
)
MODULE_NAME = named("module of an archive", r"[A-Za-z0-9_]+", "letters, digits and _")
OPTION_NAME = named("compiler option", r"[a-z][a-z0-9-]*", "lower-case letters, digits and -")
DEVICE_NAME = named(
    "device",
    r"[A-Za-z0-9][A-Za-z0-9_.-]{0,62}",
    "a letter or digit, then letters, digits, ., _ and -, at most 63",
    ("host",),
)
FACT = Rule(fact_problem)
EXTENSION_NAME = Rule(fact_name_problem, {"pattern": f"^{FACT_NAME}$"})
REGION = named("memory region", r"[A-Za-z_][A-Za-z0-9_]*", "letters, digits and _, no digit first")


def canonical_license(value: str) -> str:
    """Return an SPDX expression in its canonical spelling; raises ``Mistake`` for any other text.

    ``apache-2.0 or mit`` becomes ``Apache-2.0 OR MIT``. Licences that SPDX does not list are accepted as
    ``LicenseRef-NAME``.
    """
    from packaging.licenses import InvalidLicenseExpression, canonicalize_license_expression  # few projects name one

    try:
        return canonicalize_license_expression(value)
    except InvalidLicenseExpression:
        raise Mistake(
            "invalid-license",
            reason=f"{in_quotes(value)} is not an SPDX expression such as Apache-2.0 or MIT",
            hint="write LicenseRef-NAME for any other licence",
        ) from None


# Files and options of dependencies -----------------------------------------------------------------------------------


def _inside(value: str) -> Mistake | None:
    """Return why ``value`` is not a path inside a dependency's folder."""
    blank = not_blank("a path")(value)
    if blank is not None:
        return blank
    if "\\" in value:
        return Mistake("backslash-in-path", reason=f"{in_quotes(value)} contains a backslash", hint="write / instead")
    if value.startswith(("/", "~")) or re.match("[A-Za-z]:", value):
        hint = "write it relative to the dependency's folder"
        return Mistake("absolute-path", reason=f"{in_quotes(value)} is absolute", hint=hint)
    if ".." in value.split("/"):
        hint = "name a path inside that folder"
        return Mistake("path-outside-folder", reason=f"{in_quotes(value)} leaves the dependency's folder", hint=hint)
    return None


def _subfolder(value: str) -> Mistake | None:
    if set(value) & set("*?["):
        return Mistake("pattern-for-folder", reason=f"{in_quotes(value)} is a pattern", hint="name each folder")
    return _inside(value)


def _version(value: str) -> Mistake | None:
    if re.match("[<>=!~^]", value) or set(value) & set("*, "):
        return Mistake("version-is-range", reason=f"{in_quotes(value)} is a range", hint="write one version")
    if re.fullmatch(_VERSION, value) and not re.search(_NO_REF, value):
        return None
    reason = f"{in_quotes(value)} is not a version"
    return Mistake("invalid-version", reason=reason, hint="write the name of a tag, a branch or a commit")


def _sha256(value: str) -> Mistake | None:
    if re.fullmatch("[0-9A-Fa-f]{64}", value):
        return None
    return Mistake("invalid-hash", reason=f"{in_quotes(value)} is not a SHA-256 of 64 hexadecimal digits")


def _compile_option(value: str) -> Mistake | None:
    if not value.strip():
        return Mistake("empty-text", reason="an option must not be empty")
    odd = next((character for character in value if character in _SPECIAL or character.isspace()), None)
    if odd is None:
        return None
    reason = f"{in_quotes(value)} contains {in_quotes(odd)}, which has a special meaning to build systems"
    return Mistake("special-character-in-option", reason=reason, hint="write the option without it")


def _compiler_word(value: str) -> Mistake | None:
    mistake = _compile_option(value)
    if mistake is None:
        return None
    hint = "write a name, and put the folder of the program into PATH"
    return Mistake(mistake.code, reason=mistake.reason, hint=hint)


def _project_version(value: str) -> Mistake | None:
    if re.fullmatch(_SEMVER, value):
        return None
    reason = f"{in_quotes(value)} is not a version of three numbers"
    return Mistake("invalid-project-version", reason=reason, hint="write it as 1.4.0 or 1.4.0-rc.1 (semver.org)")


_NUMBER = r"(0|[1-9][0-9]{0,8})"
_LABEL = r"(0|[1-9][0-9]*|[0-9]*[A-Za-z-][0-9A-Za-z-]*)"
_SEMVER = rf"{_NUMBER}(\.{_NUMBER}){{2}}(-{_LABEL}(\.{_LABEL})*)?(\+[0-9A-Za-z-]+(\.[0-9A-Za-z-]+)*)?"
_VERSION = r"[A-Za-z0-9_][A-Za-z0-9_.+/@#-]{0,199}"
_NO_REF = r"\.\.|//|/\.|[./]$|\.lock$"  # git-check-ref-format(1)
_SPECIAL = "$;\"'\\`#<>&|*?(){}[]!^"
_INSIDE = r"^(?![/~]|[A-Za-z]:)(?!(.*/)?\.\.(/|$))[^\\]*[^\\\s][^\\]*$"
DEPENDENCY_NAME = named("dependency", NAME, "a letter or digit, then letters, digits, ., _ and -, at most 63")
PACKAGE = named("package", r"[A-Za-z0-9_][A-Za-z0-9_.+-]*", "a name for find_package: letters, digits, _, ., + and -")
CMAKE_TARGET = named(
    "library of CMake", r"[A-Za-z0-9_][A-Za-z0-9_.+-]*(::[A-Za-z0-9_.+-]+)*", "a name for target_link_libraries"
)
SHA256 = Rule(_sha256, {"pattern": "^[0-9A-Fa-f]{64}$"})
PROJECT_VERSION = Rule(_project_version, {"pattern": f"^{_SEMVER}$"})
VERSION = Rule(_version, {"pattern": f"^(?!.*({_NO_REF})){_VERSION}$"})
PATTERN = Rule(_inside, {"pattern": _INSIDE})
SUBFOLDER = Rule(_subfolder, {"pattern": _INSIDE.replace(r"\\", r"\\*?[")})
COMPILE_OPTION = Rule(_compile_option, {"pattern": "^[^" + re.escape(_SPECIAL) + r"\s]+$"})
COMPILER_WORD = Rule(_compiler_word, COMPILE_OPTION.schema)


# Keys of a model that need each other --------------------------------------------------------------------------------


def _any_case(suffix: str) -> str:
    """Return a pattern for ``suffix`` in upper and lower case; JSON Schema has no flag for that."""
    return "".join(f"[{char}{char.upper()}]" if char.isalpha() else char.replace(".", r"\.") for char in suffix)


def _only_for(compilers: Collection[str], key: str, **otherwise: Any) -> dict[str, Any]:
    """Return a JSON Schema that refuses ``key``, and demands ``otherwise``, with any other compiler."""
    chosen = {"properties": {"compiler": {"enum": list(compilers)}}, "required": ["compiler"]}
    return {"if": chosen, "else": {"not": {"required": [key]}, **otherwise}}


CHOICES = ("dims", "constants", "state", "signature")
"""Keys of a model that only mlfbuild's own compiler accepts, because it reads the file."""
COMPILER_SCHEMAS = (
    {
        # All but native, which is the first.
        "if": {"properties": {"compiler": {"enum": list(COMPILERS[1:])}}, "required": ["compiler"]},
        "then": {"not": {"anyOf": [{"required": [key]} for key in ("interface", *CHOICES)]}},
    },
    {**_only_for(["command"], "command"), "then": {"required": ["command"]}},
    _only_for(["tvm"], "python"),
    _only_for(
        EXTERNAL_COMPILERS,
        "inputs",
        properties={"source": {"pattern": f"({'|'.join(_any_case(suffix) for suffix in SOURCES)})$"}},
    ),
)
"""JSON Schemas for the keys of a model that need a certain compiler; ``references`` reports such mistakes."""
