"""Plain YAML scalars, accepted only if YAML 1.1 and YAML 1.2 read the same value.

PyYAML follows YAML 1.1, in which ``on`` is a truth value, ``010`` is 8, ``12:30`` is 750 and ``1e-3`` is text; editors
and most other tools follow YAML 1.2 and differ on each of them. A project file must not have two meanings, so such a
scalar is refused, and the hint offers both spellings that are clear: the plain value, and quotes.
"""

from __future__ import annotations

import math
import re
import unicodedata
from typing import Any

import yaml

from mlfbuild.core import Mistake

Scalar = str | int | float | bool | None

_KIND_WORDS = {
    "bool": "true or false",
    "float": "a number",
    "int": "a number",
    "merge": "a merge key",
    "null": "nothing",
    "str": "text",
    "timestamp": "a date",
    "value": "a default key",
    "yaml": "an indicator",
}
# The core schema of YAML 1.2, section 10.3.2.
_CORE = (
    ("null", re.compile(r"~|null|Null|NULL|")),
    ("bool", re.compile(r"true|True|TRUE|false|False|FALSE")),
    ("int", re.compile(r"[-+]?[0-9]+|0o[0-7]+|0x[0-9a-fA-F]+")),
    ("float", re.compile(r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?|[-+]?\.(inf|Inf|INF)|\.(nan|NaN|NAN)")),
)
_LEADING_ZERO = re.compile(r"[-+]?0[0-9]+")
# Python takes quadratic time to convert long decimal numbers; no key needs more digits than 64 bits have.
_LONGEST_NUMBER = 40
# PyYAML's own tables of YAML 1.1, so that this module agrees with what other programs that use PyYAML read.
_resolver: Any = yaml.resolver.Resolver()
_constructor = yaml.constructor.SafeConstructor()


def read_scalar(text: str, *, plain: bool) -> Scalar:
    """Return the value of a scalar; ``plain`` means that it is written without quotes.

    Raises ``Mistake`` if YAML's versions disagree, for numbers out of any sensible range, and for control characters.
    """
    if any(unicodedata.category(character) in {"Cc", "Cs"} for character in text):
        raise Mistake("control-character", reason="text must be one line without control characters")
    # In quotes, every version reads text.
    if not plain:
        return text
    kind = str(_resolver.resolve(yaml.ScalarNode, text, (True, False))).rpartition(":")[2]
    core_kind = next((kind for kind, pattern in _CORE if pattern.fullmatch(text)), "str")
    # Both versions take 010 for a whole number, but for different ones.
    if kind != core_kind or (core_kind == "int" and _LEADING_ZERO.fullmatch(text)):
        raise _two_readings(text, kind, core_kind)
    if core_kind == "null":
        return None
    if core_kind == "bool":
        return text.lower() == "true"
    return _number(text, core_kind) if core_kind != "str" else text


def _number(text: str, kind: str) -> int | float:
    if len(text) > _LONGEST_NUMBER:
        raise Mistake("number-out-of-range", reason=f"a number of {len(text)} characters is not accepted")
    if kind == "int":
        return int(text, 0)
    value = math.nan if text.lower().lstrip("+-") in {".inf", ".nan"} else float(text)
    if not math.isfinite(value):
        raise Mistake("number-out-of-range", reason=f"{text} is not a finite number")
    return value


def _two_readings(text: str, kind: str, core_kind: str) -> Mistake:
    """Return how the versions of YAML read ``text``, and what to write instead."""
    if _LEADING_ZERO.fullmatch(text):
        readings = "octal in YAML 1.1 and decimal in YAML 1.2"
    else:
        readings = f"{_KIND_WORDS[kind]} in YAML 1.1 and {_KIND_WORDS[core_kind]} in YAML 1.2"
    plain = _plain_spelling(text, kind, core_kind)
    return Mistake("ambiguous-scalar", reason=f"{text} is {readings}", hint=f'write {plain}"{text}" for text')


def _plain_spelling(text: str, kind: str, core_kind: str) -> str:
    """Return ``true, or``: the value that was probably meant in a spelling that both versions agree on, or nothing."""
    # A colon makes a time or a sexagesimal number in YAML 1.1: it is unlikely that a number of seconds was meant.
    if len(text) > _LONGEST_NUMBER or ":" in text:
        return ""
    try:
        if kind == "bool":
            value = str(_constructor.construct_yaml_bool(yaml.ScalarNode("", text))).lower()
        elif core_kind == "int" and not text.startswith("0o"):
            value = str(int(text))
        elif core_kind == "int":
            value = str(int(text, 8))
        elif kind == "int":
            value = str(_constructor.construct_yaml_int(yaml.ScalarNode("", text)))
        elif "float" in {kind, core_kind}:
            value = _plain_float(float(text.replace("_", "")))
        else:
            return ""
    except ValueError:
        return ""
    return f"{value}, or "


def _plain_float(value: float) -> str:
    # YAML 1.1 takes 1e-05 for text, because its floats need a dot.
    mantissa, exponent_sign, exponent = repr(value).partition("e")
    return mantissa + ("" if "." in mantissa else ".0") + exponent_sign + exponent
