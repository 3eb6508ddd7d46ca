"""Write a model into the text of a project file, of which every other line stays as it is.

ruamel.yaml knows the lines of the sections, and writes the new entry. A section in lines gets further lines at its end,
before the blank lines and comments that lead to the next section::

    models:                               models:
      kws: kws.tflite   # ours              kws: kws.tflite   # ours
                                            vww:
                                              source: vww.tflite
    # the firmware
    firmware: ...                         # the firmware

A section in brackets is one line, which ruamel.yaml writes again.
"""

from __future__ import annotations

import io
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from difflib import SequenceMatcher
from pathlib import Path
from typing import Any

from ruamel.yaml import YAML
from ruamel.yaml.comments import CommentedMap, CommentedSeq
from ruamel.yaml.error import YAMLError

_MODELS = "models"
_COMMENT = re.compile(r"(?:^|\s)(#.*)$", re.MULTILINE)
_IN_ENTRY = 3
"""Keys on the way to a key of a model or target."""
_LONGEST = 1 << 16
"""Characters after which ruamel.yaml may fold a line."""


def is_list(text: str) -> bool:
    """Return whether the models of the project file ``text`` are a list of files."""
    return _is_list(_models(_yaml().load(text)) or None)


def with_only_model(file: Path, source: Path) -> str | None:
    """Return the text of the project file ``file`` with a model ``source``; ``None`` if it has one, or is not YAML."""
    try:
        text = file.read_text(encoding="utf-8")
        if _models(_yaml().load(text)):
            return None
        return with_model(text, "model", {"source": str(source)})
    except (OSError, UnicodeDecodeError, YAMLError):
        return None


def with_model(text: str, name: str, keys: Mapping[str, Any]) -> str | None:
    """Return the project file ``text`` with the model ``name``, which has ``keys``; a list gets its ``source`` alone.

    ``None`` if another line would change. The caller must read the result, because the meaning of lines that are not
    usual, such as the end of a document, is not known here.
    """
    newline = "\r\n" if "\r\n" in text else "\n"
    lines = text.replace("\r\n", "\n").split("\n")
    data = _yaml().load("\n".join(lines))
    models = _models(data)
    in_brackets = models and (models.fa.flow_style() or data.fa.flow_style())
    changed = _in_brackets if in_brackets else _in_lines if models else _first
    found = changed(lines, data, name, keys)
    return None if found is None else newline.join(found)


def with_values(text: str, changes: Mapping[Sequence[str], Any]) -> str | None:
    """Return the project file ``text`` with other values of keys, by the way to each; ``None`` removes a key.

    The result is ``None`` if a comment or another line would change, or if the models are a list. The caller must read
    it, as that of ``with_model``.
    """
    newline = "\r\n" if "\r\n" in text else "\n"
    lines = text.replace("\r\n", "\n").split("\n")
    data = _yaml().load("\n".join(lines))
    models = _models(data)
    if not models or _is_list(models):
        return None
    yaml = _yaml(2 if models.fa.flow_style() else min(models.lc.key(key)[1] for key in models))
    before = _written(yaml, data)
    if len(before) != len(lines) - (not lines[-1]):
        return None
    for way, value in changes.items():
        if not isinstance(data.get(way[0]), CommentedMap):  # targets in a list
            return None
        _set(data, way, value)
    after = _written(yaml, data)
    found: list[str] = []
    for kind, start, end, first, last in SequenceMatcher(None, before, after, autojunk=False).get_opcodes():
        found += lines[start:end] if kind == "equal" else after[first:last]
    found += lines[len(before) :]
    kept = Counter(_COMMENT.findall("\n".join(found))) == Counter(_COMMENT.findall("\n".join(lines)))
    return newline.join(found) if kept else None


def _set(data: Any, way: Sequence[str], value: Any) -> None:
    entry, around = data, []
    for key in way[:-1]:
        inner = entry.get(key)
        if isinstance(inner, str):  # the short form of a model
            inner = entry[key] = _entry({"source": inner}, in_brackets=True)
        elif inner is None:
            if value is None:
                return
            inner = CommentedMap()
            inner.fa.set_flow_style()
            _put(entry, key, inner)
        around.append((entry, key))
        entry = inner
    if value is not None:
        _put(entry, way[-1], value)
        return
    _remove(entry, way[-1])
    # A mapping that is empty now, such as options.
    if not entry and len(way) > _IN_ENTRY:
        _remove(*around[-1])


def _remove(entry: Any, key: str) -> None:
    if key not in entry:
        return
    keys = list(entry)
    before = keys[keys.index(key) - 1]
    tokens = entry.ca.items.get(key)
    del entry[key]
    # Lines that follow the key, such as comments about the next one. A comment beside it is lost, and then refused.
    if tokens and tokens[2] is not None and tokens[2].value.startswith("\n") and before not in (key, *entry.ca.items):
        entry.ca.items[before] = tokens


def _put(entry: Any, key: str, value: Any) -> None:
    last = list(entry)[-1] if entry else ""
    inner = entry.get(last)
    is_block = isinstance(inner, CommentedMap | CommentedSeq) and not inner.fa.flow_style()
    # ruamel.yaml ties the comments and blank lines that follow to the last key, or to the last one in it.
    if key not in entry and not entry.fa.flow_style() and (last in entry.ca.items or is_block):
        entry.insert(len(entry) - 1, key, value)
    else:
        entry[key] = value


def _models(data: Any) -> Any:
    """Return the models of the document ``data``, ``None`` if it is not a mapping or has no such key."""
    return data.get(_MODELS) if isinstance(data, CommentedMap) else None


def _first(lines: Sequence[str], data: Any, name: str, keys: Mapping[str, Any]) -> list[str] | None:
    """Write the first model into a section that has no entry, or into a new section at the end."""
    if not isinstance(data, CommentedMap) or data.fa.flow_style():
        return None
    entry = ["  " + line for line in _written(_yaml(), {name: _entry(keys, in_brackets=False)})]
    if _MODELS not in data:
        above = list(lines[:-1] if not lines[-1] else lines)
        return [*above, "", f"{_MODELS}:", *entry, ""]
    place = data.lc.key(_MODELS)[0]
    empty = re.fullmatch(rf"{_MODELS} *:(?: *(?:\{{ *\}}|\[ *\]|~|null))?( +#.*)? *", lines[place])
    return empty and [*lines[:place], f"{_MODELS}:{empty[1] or ''}", *entry, *lines[place + 1 :]]


def _in_lines(lines: Sequence[str], data: Any, name: str, keys: Mapping[str, Any]) -> list[str]:
    models = data[_MODELS]
    if _is_list(models):
        column = models.lc.item(0)[1] - len("- ")
        entry: Any = [keys["source"]]
    else:
        column = min(models.lc.key(key)[1] for key in models)
        styles = [each.fa.flow_style() for each in models.values() if hasattr(each, "fa")]
        # As the last of the other models that has keys.
        entry = {name: _entry(keys, in_brackets=bool(styles and styles[-1]))}
    below = [data.lc.key(key)[0] for key in data if data.lc.key(key)[0] > data.lc.key(_MODELS)[0]]
    place = min(below, default=len(lines))
    while not lines[place - 1].strip() or _is_comment_before(lines[place - 1], column):
        place -= 1
    new = [" " * column + line for line in _written(_yaml(column), entry)]
    return [*lines[:place], *new, *lines[place:]]


def _is_list(models: Any) -> bool:
    return isinstance(models, list)


def _is_comment_before(line: str, column: int) -> bool:
    bare = line.lstrip()
    return bare.startswith("#") and len(line) - len(bare) < max(column, 1)


def _in_brackets(lines: Sequence[str], data: Any, name: str, keys: Mapping[str, Any]) -> list[str] | None:
    before = _written(_yaml(), data)
    models = data[_MODELS]
    if _is_list(models):
        models.append(keys["source"])
    else:
        models[name] = _entry(keys, in_brackets=True)
    after = _written(_yaml(), data)
    different = [index for index, pair in enumerate(zip(before, after, strict=False)) if pair[0] != pair[1]]
    # Collections of several lines become one line.
    if not len(before) == len(after) == len(lines) - (not lines[-1]) or len(different) != 1:
        return None
    (index,) = different
    return [*lines[:index], after[index], *lines[index + 1 :]]


def _entry(keys: Mapping[str, Any], *, in_brackets: bool) -> CommentedMap:
    entry = CommentedMap()
    for key, value in keys.items():
        entry[key] = value
        if not isinstance(value, str):
            entry[key] = inner = CommentedSeq(value) if isinstance(value, list) else CommentedMap(value)
            inner.fa.set_flow_style()
    if in_brackets:
        entry.fa.set_flow_style()
    return entry


def _yaml(indent: int = 2) -> YAML:
    yaml = YAML()
    yaml.preserve_quotes = True
    yaml.width = _LONGEST
    yaml.indent(mapping=indent or 2)
    return yaml


def _written(yaml: YAML, value: Any) -> list[str]:
    stream = io.StringIO()
    yaml.dump(value, stream)
    return stream.getvalue().splitlines()
