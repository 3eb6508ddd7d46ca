"""The NPU of a target, an Arm Ethos-U: what a compiler must know of it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Annotated

from mlfbuild.core import Mistake
from mlfbuild.core.keys import EXACT, NOT_EMPTY, Keys, PathText, ProjectPath, Rule, Size, named, one_of
from mlfbuild.library.keys.placement import SECTION

NPU_MACS = {"ethos-u55": (32, 64, 128, 256), "ethos-u65": (256, 512)}
"""The multiply-accumulates in a cycle with which each type is made."""
SRAM_ONLY, SHARED_SRAM, DEDICATED_SRAM = "sram-only", "shared-sram", "dedicated-sram"
MEMORY_MODES = (SRAM_ONLY, SHARED_SRAM, DEDICATED_SRAM)
NPU_DEVICE = "ethos-u"
"""The name of the device of an archive, and of the folder of its files in ``codegen/``."""
_ALL_MACS = sorted({macs for each in NPU_MACS.values() for macs in each})


def _known_macs(value: int) -> Mistake | None:
    if value in _ALL_MACS:
        return None
    hint = f"write {', '.join(map(str, _ALL_MACS[:-1]))} or {_ALL_MACS[-1]}"
    return Mistake("unknown-macs", reason=f"no Ethos-U has {value} multipliers", hint=hint)


@dataclass(frozen=True)
class Npu(Keys):
    """An Arm Ethos-U beside the core: `.tflite` models are compiled for it with Arm's Vela."""

    TITLE = "npu"

    type: Annotated[str, one_of("npu", tuple(NPU_MACS))]
    """The NPU: ethos-u55 or ethos-u65."""
    macs: Annotated[int, EXACT, Rule(_known_macs, {"enum": _ALL_MACS})]
    """Its multiply-accumulates in a cycle: 32, 64, 128 or 256, with ethos-u65 256 or 512."""
    memory_mode: Annotated[str, one_of("memory-mode", MEMORY_MODES)] = SHARED_SRAM
    """Vela's memories for weights and tensors: sram-only, shared-sram or dedicated-sram. Default: shared-sram."""
    system_config: Annotated[str, named("system configuration", r"[A-Za-z0-9_-]+", "letters, digits, _ and -")] = ""
    """Vela's system configuration: clock and memories, for schedule and estimates. Default: one of Arm's."""
    config: ProjectPath | None = None
    """Configuration file of Vela with `system-config`. Default: Arm/vela.ini, which Vela brings."""
    arena_cache_size: Size | None = None
    """Bytes of SRAM that Vela plans with; with dedicated-sram, of the NPU's own memory. Default: Vela's."""
    keep_on_core: Annotated[
        tuple[Annotated[str, named("TFLite operator", "[A-Z][A-Z0-9_]*", "its name, such as SOFTMAX")], ...], NOT_EMPTY
    ] = ()
    """Kinds of operators that stay on the core even if the NPU has them: [SOFTMAX]"""
    fast_section: Annotated[str, SECTION] | None = None
    """With dedicated-sram: section of the NPU's own memory, 16-byte aligned. Default: a section of bss."""
    python: PathText | None = None
    """The Python that has Vela, such as that of a virtual environment. Default: that of mlfbuild."""

    @property
    def accelerator(self) -> str:
        """Vela's name of the NPU: ``ethos-u55-128``."""
        return f"{self.type}-{self.macs}"


def npu_problems(values: Mapping[str, object]) -> Iterator[tuple[str, Mistake]]:
    """Yield the key and the mistake of each value that another key excludes.

    ``values`` are the keys of an NPU as written, which may be of any type: mistakes in single values are those of
    ``Npu``.
    """
    kind, macs = values.get("type"), values.get("macs")
    if kind in NPU_MACS and macs in _ALL_MACS and macs not in NPU_MACS[str(kind)]:
        known = " or ".join(map(str, NPU_MACS[str(kind)]))
        yield "macs", Mistake("npu-macs", reason=f"an {kind} does not have {macs}", hint=f"write {known}")
    if "config" in values and "system-config" not in values:
        reason = "needs system-config, the name of a configuration in the file"
        yield "config", Mistake("npu-config", reason=reason, hint="add system-config, or remove config")
    mode = values.get("memory-mode", SHARED_SRAM)
    # Arm's configurations connect the second port of an Ethos-U55 to flash.
    if mode == DEDICATED_SRAM and kind == "ethos-u55" and "config" not in values:
        reason = "needs a second memory that the NPU can write, which no ethos-u55 of Arm's configurations has"
        hint = "use shared-sram, or describe the memories in a config file"
        yield "memory-mode", Mistake("npu-memory-mode", reason=reason, hint=hint)
    if "fast-section" in values and mode in (SRAM_ONLY, SHARED_SRAM):
        reason = f"with memory-mode {mode}, the NPU has no memory of its own"
        yield "fast-section", Mistake("npu-fast-section", reason=reason, hint="remove it, or use dedicated-sram")
