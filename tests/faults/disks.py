"""Builds on a disk that becomes full, at each of its writes: a small tmpfs (needs root), and a limit for files."""

import argparse
import contextlib
import os
import resource
import signal
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

from faults.site import TOOLS, Site
from faults.tally import Tally


def campaign(root: Path, chosen: str, options: argparse.Namespace) -> Iterator[Tally]:
    """Build with less space than needed; with more space, the build must be completed.

    ``mlfbuild build`` gets ``count`` sizes, about each page of its files, so that a disk is full at each of its writes.
    SCons and CMake get a tenth of them.
    """
    for tool in TOOLS:
        if chosen not in tool:
            continue
        steps = max(3, options.count // (1 if tool.startswith("mlfbuild") else 10))
        site = Site(root / f"disk-{tool.split()[0]}", tool)
        if os.geteuid() == 0:
            yield _small_disks(site, steps)
        yield _small_files(site, steps)


@contextlib.contextmanager
def disk(folder: Path, kilobytes: int) -> Iterator[Callable[[str], None]]:
    """Mount a disk at ``folder``; the function mounts it again with other options."""
    folder.mkdir(exist_ok=True)
    subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={kilobytes}k", "none", folder], check=True)
    try:
        yield lambda options: subprocess.run(["mount", "-o", f"remount,{options}", folder], check=True) and None
    finally:
        subprocess.run(["umount", "-l", folder], check=True)


def _used(folder: Path) -> int:
    """Return the bytes of the files in a folder, in pages."""
    return sum(-(-path.lstat().st_size // 4096) * 4096 for path in folder.rglob("*") if path.is_file())


def _small_disks(site: Site, steps: int) -> Tally:
    tally = Tally(f"full disk, {site.tool}")
    site.clean()
    assert site.build().status == 0, site.output()
    products, used = site.products(), _used(site.root / "build") // 1024
    for size in sorted({max(4, used * step // steps // 4 * 4) for step in range(steps)}):
        site.clean()
        with disk(site.root / "build", size) as remount:
            ended = site.build()
            tally.end(f"{size} of {used} KiB", ended.status, ended.output, ours=site.tool.startswith("mlfbuild"))
            remount("size=1g")
            if problem := site.difference(products):
                tally.wrong.append(f"{size} of {used} KiB: {problem}")
    return tally


def _small_files(site: Site, steps: int) -> Tally:
    tally = Tally(f"files that cannot grow, {site.tool}")
    site.clean()
    assert site.build().status == 0, site.output()
    products = site.products()
    largest = max(map(len, products.values()))
    for step in range(steps):
        site.clean()
        size = 1 + largest * step // steps  # the last ones stop the link and the archives

        def limit(size: int = size) -> None:
            signal.signal(signal.SIGXFSZ, signal.SIG_IGN)  # programs get an error, as on a full disk
            resource.setrlimit(resource.RLIMIT_FSIZE, (size, size))

        ended = site.build(limit)
        tally.end(f"{size} of {largest} bytes", ended.status, ended.output, ours=site.tool.startswith("mlfbuild"))
        if problem := site.difference(products):
            tally.wrong.append(f"{size} of {largest} bytes: {problem}")
    return tally
