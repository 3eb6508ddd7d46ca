"""Builds CMSIS-NN, or what stands in for it, as a static library for this machine or for a processor."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from mlfbuild.targets import CPUS
from support.host_c import Linked, run

_HOST_FLAGS = ("-O1", "-g", "-w", "-fsanitize=address")
"""What reads beside its buffers is found, though not what overflows: the library counts on two's complement."""


def build_for_host(checkout: Path, folder: Path) -> Linked:
    """Build the library at ``checkout`` for this machine, with its plain C."""
    return _built(checkout, folder, ["gcc", *_HOST_FLAGS], "ar")


def build_for_cpu(checkout: Path, folder: Path, cpu: str, tool: Callable[[str], str]) -> Linked:
    """Build the library at ``checkout`` for ``cpu``, as firmware would."""
    flags = ["-Ofast", "-ffunction-sections", "-fdata-sections", "-w"]
    return _built(checkout, folder, [tool("arm-none-eabi-gcc"), *CPUS[cpu].flags, *flags], tool("arm-none-eabi-ar"))


def _built(checkout: Path, folder: Path, compiler: list[str], archiver: str) -> Linked:
    folder.mkdir(parents=True, exist_ok=True)
    headers, archive = checkout / "Include", folder / "libcmsis-nn.a"
    sources = sorted((checkout / "Source").rglob("*.c"))
    objects = [folder / f"{source.stem}.o" for source in sources]
    with ThreadPoolExecutor(2) as pool:
        jobs = zip(sources, objects, strict=True)
        list(pool.map(lambda job: run([*compiler, "-I", headers, "-c", job[0], "-o", job[1]]), jobs))
    run([archiver, "rcs", archive, *objects])
    return Linked(headers, archive)
