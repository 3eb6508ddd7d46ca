"""Generate the page on the keys of a project file from its JSON Schema."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from mlfbuild.core.keys.units import COUNT_SCHEMA, DURATION_SCHEMA, FREQUENCY_SCHEMA, PERCENT_SCHEMA, SIZE_SCHEMA
from mlfbuild.project import json_schema
from mlfbuild.targets import CPUS, MCUS
from mlfbuild_reference.markdown import code, page, prose

_UNITS = (
    (SIZE_SCHEMA, "size", "`98304`, `96 KiB` or `96k`"),
    (COUNT_SCHEMA, "number", "`3200000`, `3.2 M` or `300k`"),
    (PERCENT_SCHEMA, "percentage", "`2 %`"),
    (FREQUENCY_SCHEMA, "frequency", "`120 MHz` or `120000000`"),
    (DURATION_SCHEMA, "time", "`40 ms`, `1.5 s` or `250 us`"),
)
_DEFAULT = re.compile(r" ?Default: ([^.;]+(?:; [^.]+)?)\.?$")


_ABOUT = (
    "[The project file](../project-file.md) explains the keys, with examples. `mlfbuild schema` prints them as a JSON "
    f"Schema. Write {', '.join(f'a {name} as {examples}' for _, name, examples in _UNITS)}."
)


def project_file_page() -> str:
    """Return the page ``reference/project-file.md``."""
    schema = json_schema()
    titles = {name: table_of["title"] for name, table_of in schema["$defs"].items()}
    tables = [("The file", schema), *_tables(schema, schema, set())]
    sections = [_section(title, of, titles, tables) for title, of in tables]
    return page(
        "Keys of the project file",
        "the declarations in `mlfbuild/project`",
        _ABOUT,
        *sections,
    )


def _tables(schema: Mapping[str, Any], of: Any, seen: set[str]) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Yield each mapping that ``of`` refers to once, in the order of the keys, with its title."""
    if isinstance(of, list):
        for value in of:
            yield from _tables(schema, value, seen)
    if not isinstance(of, dict):
        return
    name = of.get("$ref", "").rpartition("/")[2]
    if name and name not in seen:
        seen.add(name)
        table_of = schema["$defs"][name]
        yield f"`{table_of['title']}`", table_of
        yield from _tables(schema, table_of["properties"], seen)
    for key, value in of.items():
        if key != "$defs":
            yield from _tables(schema, value, seen)


_LONGEST_LIST = 40
"""Values of a key that are listed; a command lists those of longer tables."""
_ELSEWHERE = {
    tuple(CPUS): "[core](../toolchains.md#the-cpus)",
    tuple(MCUS): "[microcontroller](microcontrollers.md)",
}
"""What a key is called whose values another page lists."""


_LEAST_COMMON = 3
"""Keys of another table from which on they are not repeated."""


def _section(
    title: str, of: Mapping[str, Any], titles: Mapping[str, str], tables: Sequence[tuple[str, Mapping[str, Any]]]
) -> str:
    required = of.get("required", ())
    own = of["properties"]
    # A class that extends another one has all of its keys.
    base = next((name for name, other in tables if _extends(own, other["properties"])), "")
    common = dict(tables)[base]["properties"] if base else {}
    lines = [f"- the keys of [{base}](#{_anchor(base.strip('`'))})"] if base else []
    for key, value in ((key, value) for key, value in own.items() if key not in common):
        meaning = value.get("description", "")
        default = _DEFAULT.search(meaning)
        state = "; required" if key in required else f"; default {prose(default[1])}" if default else ""
        lines.append(f"- {code(key)} ({_kind(value, titles)}{state}): {prose(_DEFAULT.sub('', meaning))}")
    return "\n\n".join([f"## {title}", prose(of["description"]), "\n".join(lines)])


def _anchor(title: str) -> str:
    return title.replace(" ", "-")


def _extends(own: Mapping[str, Any], other: Mapping[str, Any]) -> bool:
    same = all(own.get(key) == value for key, value in other.items())
    return same and _LEAST_COMMON <= len(other) < len(own)


def _kind(value: Mapping[str, Any], titles: Mapping[str, str]) -> str:
    """Return a description of the values that this schema accepts."""
    for schema, words, _ in _UNITS:
        if all(value.get(key) == part for key, part in schema.items()):
            return words
    if value.get("format") == "device":
        return "device"
    if "$ref" in value:
        name = titles[value["$ref"].rpartition("/")[2]]
        return f"[`{name}`](#{_anchor(name)})"
    if "enum" in value:
        listed = ", ".join(map(code, value["enum"])) if len(value["enum"]) <= _LONGEST_LIST else "text"
        return _ELSEWHERE.get(tuple(value["enum"]), listed)
    if "const" in value:
        return code(str(value["const"]))
    if "anyOf" in value or "oneOf" in value:
        return " or ".join(
            dict.fromkeys(_kind(choice, titles) for choice in (*value.get("anyOf", ()), *value.get("oneOf", ())))
        )
    if isinstance(value["type"], list):
        return " or ".join(_kind({**value, "type": each}, titles) for each in value["type"])
    if value["type"] == "array":
        return f"list of {_plural(_kind(value.get('items', {'type': 'string'}), titles))}"
    if value["type"] == "object" and "properties" in value:
        return f"{{{', '.join(value['properties'])}}}"
    if value["type"] == "object":
        (inner,) = value.get("patternProperties", {"": value.get("additionalProperties")}).values()
        return f"by name: {_kind(inner, titles)}"
    return _scalar(value)


def _plural(kind: str) -> str:
    return f"{kind}s" if kind in {"path", "device"} else kind


def _scalar(value: Mapping[str, Any]) -> str:
    if value.get("format") == "path" and value["type"] == "string":
        return "path"
    return {"string": "text", "integer": "integer", "number": "number", "boolean": "`true`, `false`"}[value["type"]]
