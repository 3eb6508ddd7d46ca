"""Write the short forms of a document in full, so that every check and reader sees one form.

    targets: [cortex-m4]           ->  targets: {cortex-m4: {cpu: cortex-m4}}
    models: {kws: kws.tflite}      ->  models: {kws: {source: kws.tflite}}
    models: [models/*.tflite]      ->  models: {kws: {source: models/kws.tflite}, ...}
    board: qemu                    ->  board: mps2-an386, which runs code for the target's cpu

What is written in full has the position of the text that it comes from. ``specification`` declares which forms a key
has: ``validate`` reports mistakes in their types, so only lists of texts are rewritten here.

A pattern in ``models`` depends on the files that exist. Builds read the project file each time; CMake and `mlfbuild
watch` observe the folders that ``write_in_full`` returns.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from mlfbuild import targets
from mlfbuild.core import Mistake, folders_of_pattern, in_quotes, is_pattern, matching_files
from mlfbuild.project.document import Document
from mlfbuild.project.problems import KeyPath
from mlfbuild.project.rules import QEMU, device_problem
from mlfbuild.project.sources import model_name


def write_in_full(document: Document, root: Path) -> tuple[Path, ...]:
    """Replace the lists and texts of ``targets`` and ``models``; add mistakes in them to the problems of ``document``.

    Returns the folders below ``root``, the folder of the project file, in which a new file can be another model.
    """
    sections: Any = document.data if isinstance(document.data, dict) else {}
    if devices := _texts(sections.get("targets")):
        sections["targets"] = dict(_targets(document, devices))
    models = sections.get("models")
    if sources := _texts(models):
        sections["models"] = dict(_models(document, sources, root))
    elif isinstance(models, dict):
        for name, source in models.items():
            if isinstance(source, str):
                document.values["models", name, "source"] = document.value_position(("models", name))
                models[name] = {"source": source}
    patterns = (source for source in sources if is_pattern(source, root))
    return tuple(dict.fromkeys(folder for pattern in patterns for folder in folders_of_pattern(pattern, root)))


def select_board(entry: dict[str, Any]) -> None:
    """Replace ``board: qemu`` of a target by the board that QEMU emulates for its ``cpu``, if there is one.

    ``entry`` is a target as plain values, and is changed. If QEMU emulates no board for the core, it stays, and
    ``check_references`` reports it.
    """
    cpu = targets.CPUS.get(str(entry.get("cpu"))) if entry.get("board") == QEMU else None
    board = targets.emulated_board(cpu) if cpu else None
    if board is not None:
        entry["board"] = board.name


def _texts(value: object) -> list[str]:
    return value if isinstance(value, list) and all(isinstance(each, str) for each in value) else []


def _targets(document: Document, names: Sequence[str]) -> Iterator[tuple[str, dict[str, Any]]]:
    seen: set[str] = set()
    for index, name in enumerate(names):
        # The name of a target is that of a folder, and part of names in CMake.
        target = re.sub(r"[^A-Za-z0-9_-]", "-", name)
        mistake = device_problem(name)
        if mistake is None and target in seen:
            mistake = Mistake("repeated-name", reason=f"{in_quotes(name)} is in the list twice", hint="remove one")
        if mistake is not None:
            document.refuse(("targets", index), mistake)
            continue
        seen.add(target)
        keys = dict(targets.keys_of_device(name) or {})
        _place(document, ("targets", index), ("targets", target), keys)
        yield target, keys


def _models(document: Document, sources: Sequence[str], root: Path) -> Iterator[tuple[str, dict[str, Any]]]:
    first: dict[str, str] = {}
    for index, source in enumerate(sources):
        files = [source]
        if is_pattern(source, root):
            files = sorted(_as_written(path, root) for path in matching_files(source, root))
        if not files:
            hint = "correct it, or add a model file"
            mistake = Mistake("no-such-file", reason=f"{in_quotes(source)} matches no file", hint=hint)
            document.refuse(("models", index), mistake)
        for file in files:
            name = model_name(file)
            if first.setdefault(name, file) != file:
                reason = f"{in_quotes(first[name])} and {in_quotes(file)} are both named {name}"
                hint = f"name them: `models: {{{name}: {first[name]}}}`"
                mistake = Mistake("repeated-name", reason=reason, hint=hint)
                document.refuse(("models", index), mistake)
            else:
                keys = {"source": file}
                _place(document, ("models", index), ("models", name), keys)
                yield name, keys


def _as_written(path: Path, root: Path) -> str:
    return (path.relative_to(root) if path.is_relative_to(root) else path).as_posix()


def _place(document: Document, written: KeyPath, path: KeyPath, keys: dict[str, Any]) -> None:
    """Give the entry at ``path`` with ``keys`` the position of the item ``written``."""
    position = document.value_position(written)
    document.keys[path] = position
    for place in (path, *((*path, key) for key in keys)):
        document.values[place] = position
