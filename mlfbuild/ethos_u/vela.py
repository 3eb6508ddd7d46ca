"""Run Arm's Vela, in a process of its own, and read what it wrote."""

from __future__ import annotations

import csv
import functools
import os
import re
import sys
import tempfile
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from mlfbuild.core import (
    EXTRAS,
    LOOK,
    InputFileError,
    Mistake,
    ProcessFailedError,
    ToolNotFoundError,
    UsageError,
    installed_version,
    require_extra,
    run,
    unknown,
)
from mlfbuild.library import NpuEstimate, NpuLayer
from mlfbuild.library.keys import DEDICATED_SRAM, SHARED_SRAM, SRAM_ONLY, Npu

_PACKAGE = "ethos-u-vela"
_EXTRA = "ethos-u"
_ASK = f"from importlib.metadata import version; print(version({_PACKAGE!r}))"
# Fixed, so that what iterates over a set of names does so in the same order in each run.
_ENVIRONMENT = {"PYTHONHASHSEED": "0", "PYTHONUTF8": "1"}
_NAME = "network"
_MODES = {SRAM_ONLY: "Sram_Only", SHARED_SRAM: "Shared_Sram", DEDICATED_SRAM: "Dedicated_Sram"}
_CONFIG = "Arm/vela.ini"
# Of Arm's configurations, those that have the memories of the mode.
_SYSTEMS = {
    ("ethos-u55", SRAM_ONLY): "Ethos_U55_High_End_Embedded",
    ("ethos-u55", SHARED_SRAM): "Ethos_U55_High_End_Embedded",
    ("ethos-u65", SRAM_ONLY): "Ethos_U65_Embedded",
    ("ethos-u65", SHARED_SRAM): "Ethos_U65_Embedded",
    ("ethos-u65", DEDICATED_SRAM): "Ethos_U65_High_End",
}
_REASON = re.compile(
    r"^Warning \(supported operators\) operator: (?P<kind>\S+), ofm: '(?P<output>.*)'\nReason: (?P<reason>[^\n]*)\n"
    r"(?P<rule>[^\n]*)",
    re.MULTILINE,
)
_WRONG_OPTION = re.compile(r"^ethosu\.vela\.errors\.C\w+OptionError: '?Error: (?P<reason>[^\n]*?)'?$", re.MULTILINE)
_KIB = 1024


@dataclass(frozen=True)
class VelaResult:
    """The result of Vela for a network."""

    model: bytes
    """The network as a ``.tflite`` file with operators ``ethos-u``."""
    version: str
    system_config: str
    estimate: NpuEstimate
    reasons: Mapping[str, str]
    """Why operators stay on the core, by the name of their first output, in Vela's words."""


def system_config_of(npu: Npu) -> str:
    """Return Vela's system configuration for ``npu``, which may be one of Arm's."""
    return npu.system_config or _SYSTEMS[npu.type, npu.memory_mode]


@functools.cache
def vela_version(python: str | None) -> str:
    """Return the version of Vela that ``python`` has, by default this one; it is asked once.

    Raises ``ToolNotFoundError`` with the command that installs it.
    """
    if python is None:
        version = installed_version(_PACKAGE)
        if not version:
            require_extra(_EXTRA, "npu", "compiling for an Ethos-U")
        return version
    try:
        return run([python, "-c", _ASK]).strip().splitlines()[-1]
    except (ProcessFailedError, IndexError):
        (requirement,) = EXTRAS[_EXTRA].values()
        raise ToolNotFoundError(
            "extra-not-installed",
            place=f"npu.python: {python}",
            reason="does not have Vela, which compiling for an Ethos-U requires",
            hint=f"{python} -m pip install '{requirement}'",
        ) from None


def unknown_operators(npu: Npu) -> Iterator[tuple[int, Mistake]]:
    """Yield the index and the mistake of each name in ``keep-on-core`` that no operator of TFLite has.

    Vela 5.2 accepts exactly the names of TFLite's schema, so that they are known without running it.
    """
    if not npu.keep_on_core:
        return
    from tflite.BuiltinOperator import BuiltinOperator  # takes half a second, and few projects name operators

    known = [name for name, code in vars(BuiltinOperator).items() if isinstance(code, int)]
    for index, name in enumerate(npu.keep_on_core):
        if name not in known:
            yield index, unknown("TFLite operator", name, known)


def compile_with_vela(data: bytes, npu: Npu, place: Path, tensors: Collection[str] = ()) -> VelaResult:
    """Compile the TFLite file ``data``, which messages call ``place``, for ``npu``.

    ``tensors`` are the names in the file, to which estimates are assigned. The same file, keys and version of Vela give
    the same result. Raises ``ToolNotFoundError`` without Vela, ``UsageError`` for a configuration or an operator that
    it lacks, ``ProcessFailedError`` with its output if it fails, and ``InputFileError`` if it does not write what is
    expected.
    """
    for index, mistake in unknown_operators(npu):
        raise mistake.error(f"npu.keep-on-core[{index}]")
    version = vela_version(npu.python)
    with tempfile.TemporaryDirectory(prefix="mlfbuild-vela-") as name:
        folder = Path(name)
        source = folder / f"{_NAME}.tflite"
        source.write_bytes(data)
        command = [npu.python or sys.executable, "-m", "ethosu.vela", source.name, *_arguments(npu)]
        try:
            printed = run(command, cwd=folder, env={**os.environ, **_ENVIRONMENT})
        except ProcessFailedError as error:
            _refuse_keys(error.output)
            reason = f"Vela {version} failed to compile it for {npu.accelerator}"
            raise ProcessFailedError("vela-failed", error.output, place=place, reason=reason, hint=LOOK) from None
        made = folder / "out" / f"{_NAME}_vela.tflite"
        if not made.is_file():
            reason = f"Vela {version} did not compile it for {npu.accelerator}"
            raise ProcessFailedError("vela-failed", printed, place=place, reason=reason, hint=LOOK)
        estimate = _estimate(folder / "out", place, tensors)
        return VelaResult(made.read_bytes(), version, system_config_of(npu), estimate, dict(_reasons(printed)))


def _refuse_keys(printed: str) -> None:
    """Raise ``UsageError`` if ``printed``, the output of Vela, says that its configuration is wrong."""
    found = _WRONG_OPTION.search(printed)
    if found is not None:
        reason = f"Vela refuses a key: {found['reason']}"
        raise UsageError("npu-refused-by-vela", place="npu", reason=reason, hint="correct system-config or config")


def _arguments(npu: Npu) -> Iterator[str]:
    yield from ("--accelerator-config", npu.accelerator)
    yield from ("--memory-mode", _MODES[npu.memory_mode])
    yield from ("--system-config", system_config_of(npu))
    yield from ("--config", _CONFIG if npu.config is None else str(npu.config.absolute()))
    yield from ("--output-dir", "out")
    # Writes the estimate of each layer; which one the driver runs does not change.
    yield "--verbose-performance"
    # The form of the payload that all releases of the driver read.
    yield from ("--cop-format", "COP1")
    if npu.arena_cache_size is not None:
        yield from ("--arena-cache-size", str(npu.arena_cache_size))
    if npu.keep_on_core:
        yield from ("--ignore-ops", ",".join(npu.keep_on_core))


def _reasons(printed: str) -> Iterator[tuple[str, str]]:
    for found in _REASON.finditer(printed):
        parts = (found["reason"].strip().rstrip("."), found["rule"].strip().rstrip("."))
        yield found["output"], "; ".join(filter(None, parts))


def _estimate(folder: Path, place: Path, tensors: Collection[str]) -> NpuEstimate:
    """Return the estimate in the tables that Vela wrote to ``folder``."""
    try:
        (summary,) = folder.glob(f"{_NAME}_summary_*.csv")
        (row,) = _rows(summary)
        return NpuEstimate(
            cycles=_number(row["cycles_total"]),
            clock=_number(row["core_clock"]),
            macs=_number(row["nn_macs"]),
            sram=_number(row["sram_memory_used"], _KIB),
            dram=_number(row["dram_memory_used"], _KIB),
            flash=_number(row["on_chip_flash_memory_used"], _KIB) + _number(row["off_chip_flash_memory_used"], _KIB),
            layers=tuple(_layers(folder / f"{_NAME}_per-layer.csv", tensors)),
        )
    except (ValueError, KeyError, OSError) as error:
        raise InputFileError(
            "vela-summary-unknown",
            place=place,
            reason=f"the tables of this release of Vela are not as expected: {error}",
            hint="install another release of ethos-u-vela",
        ) from None


def _rows(path: Path) -> list[dict[str, str]]:
    with path.open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def _number(text: str, scale: int = 1) -> int:
    return round(float(text or 0) * scale)


def _layers(path: Path, tensors: Collection[str]) -> Iterator[NpuLayer]:
    """Yield the operators of the network with the sums of the NPU's operations that each became.

    An operator such as SOFTMAX becomes many operations, of which only the last has the name of a tensor of the file.
    """
    cycles = macs = 0
    made: dict[tuple[str, str], NpuLayer] = {}
    for row in _rows(path):
        if row["Target"] != "NPU":
            continue
        key = row["Original Operator"], row["Name"]
        cycles += _number(row["Op Cycles"])
        macs += _number(row["MAC Count"])
        if key in made or key[1] in tensors or not tensors:
            old = made.get(key, NpuLayer(key[1], key[0], 0, 0))
            made[key] = NpuLayer(old.name, old.operator, old.cycles + cycles, old.macs + macs)
            cycles = macs = 0
    yield from made.values()
    if cycles or macs:
        yield NpuLayer("", "other", cycles, macs)
