"""Make the quantised files of a build if they are not up to date; see ``quantize_step``."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TYPE_CHECKING

from mlfbuild.core import package_fingerprint, write_atomic
from mlfbuild.datasets import data_digest
from mlfbuild.jobs.actions import QUANTIZED, Action, ActionRecord, flat, hash_of, record_action, recorded_action
from mlfbuild.jobs.locks import step_locked
from mlfbuild.jobs.quantize_step import QuantizeStep
from mlfbuild.native import Choices, SourceFiles
from mlfbuild.quantization import engine_versions

if TYPE_CHECKING:
    from mlfbuild.cache import ResultCache

_OUTPUT = "quantized"
"""The name of the file in the cache."""
_LOCKED_APART = ("model ", "mlfbuild")
"""Beginnings of the names of inputs that a lock file has by themselves."""
_UNKNOWN = "to be quantised"
"""The digest of a quantised file that is out of date."""


def quantize_action(step: QuantizeStep) -> Action:
    """Return the action that makes the quantised file; raises ``InputFileError`` for what it cannot read.

    Versions of the engine's packages are inputs, and are known without importing them.
    """
    inputs = {
        f"model {step.source.name}": SourceFiles(step.source).read().identity,
        "calibration": data_digest(step.keys.calibration),
        **dict(flat(step.settings())),
        "engine": engine_versions(step.source),
    }
    return Action("quantize", {**inputs, "mlfbuild": package_fingerprint()})


def quantize_inputs_hash(step: QuantizeStep) -> str:
    """Return one hash of what decides the quantised file besides the network and mlfbuild, for lock files.

    Raises as ``quantize_action``.
    """
    inputs = {name: value for name, value in quantize_action(step).inputs.items() if not name.startswith(_LOCKED_APART)}
    return Action("quantize", inputs).key


def quantize_record(step: QuantizeStep) -> ActionRecord | None:
    """Return how the quantised file was made last; ``None`` if mlfbuild did not make it."""
    return recorded_action(step.record)


def is_quantized(step: QuantizeStep) -> bool:
    """Return whether the quantised file exists, is unchanged, and is up to date; raises as ``quantize_action``."""
    return bool(_current_digest(step, quantize_action(step)))


def quantized_digest(step: QuantizeStep) -> str:
    """Return the SHA-256 of the quantised file, or ``to be quantised`` if it is missing, edited or out of date."""
    return _current_digest(step, quantize_action(step)) or _UNKNOWN


def _current_digest(step: QuantizeStep, action: Action) -> str:
    record = quantize_record(step)
    # The record first: a file that is out of date need not be hashed.
    current = record is not None and record.key == action.key and record.sha256 == hash_of(step.made)
    return record.sha256 if record is not None and current else ""


def make_quantized(step: QuantizeStep, notify: Callable[[str], None] = lambda _: None) -> ActionRecord | None:
    """Make the quantised file unless it is current; return how, ``None`` if there was nothing to do.

    Another process may be making it for another target: this one then waits, and finds it current. ``notify`` gets a
    line for each remark on the result, and if the cache fails. Raises as ``quantize`` and ``quantize_action``.
    """
    with step_locked(step.lock, lambda _: None):
        action = quantize_action(step)
        if _current_digest(step, action):
            return None
        return _restored(step, action, notify) or _quantized(step, action, notify)


def _restored(step: QuantizeStep, action: Action, notify: Callable[[str], None]) -> ActionRecord | None:
    cache = _cache_of(step, notify)
    found = None if cache is None else cache.fetch(action.key)
    if found is None or {*found.outputs} != {_OUTPUT}:
        return None
    write_atomic(step.made, found.outputs[_OUTPUT])
    return record_action(step.record, action, step.made, found.where, found.seconds)


def _cache_of(step: QuantizeStep, notify: Callable[[str], None]) -> ResultCache | None:
    if step.cache is None:
        return None
    from mlfbuild.cache import shared_cache  # builds with nothing to do need none

    return shared_cache(step.cache, notify)


def _quantized(step: QuantizeStep, action: Action, notify: Callable[[str], None]) -> ActionRecord:
    from mlfbuild.quantization import quantize  # imports numpy

    begin = time.monotonic()
    result = quantize(step.source, step.keys, step.made, Choices(step.dims), step.names)
    for text in (result.summary, *result.notes):
        notify(f"{step.model}: {text}")
    seconds = round(time.monotonic() - begin, 3)
    # An input that was edited in the meantime is not the one in the key.
    cache = _cache_of(step, notify)
    if cache is not None and quantize_action(step).key == action.key:
        cache.store(action.key, {_OUTPUT: step.made.read_bytes()}, seconds=seconds)
    return record_action(step.record, action, step.made, QUANTIZED, seconds)
