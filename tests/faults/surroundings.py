"""Builds in read-only folders, without tools that were there before, and after jumps of the clock."""

import argparse
import contextlib
import os
import random
import shutil
import struct
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

from faults.site import TOOLS, Site
from faults.tally import Tally

_FOLDERS = ("build", "build/mlf", "build/mlf/pc", "build/mlf/pc/alpha", "build/pc", "build/pc/app", ".")
_MISSING = {"cc": (0, 1, 2, 3, 5, 7), "cmake": (0, 1), "ninja": (0, 1, 2), "ar": (0, 1)}
"""Tools, and the numbers of calls after which they are gone."""
_SHIM = """\
#!/bin/sh
if [ -e "$MLF_FAULT.{name}" ]; then
  read -r left < "$MLF_FAULT.{name}"
  [ "$left" -gt 0 ] || {{ echo "{name}: not found" >&2; exit 127; }}
  echo $((left - 1)) > "$MLF_FAULT.{name}"
fi
exec {path} "$@"
"""


def campaign(root: Path, chosen: str, options: argparse.Namespace) -> Iterator[Tally]:
    """Disturb a build, then build undisturbed: the files must be those of a clean build."""
    for tool in TOOLS:
        if chosen not in tool:
            continue
        short = tool.split()[0]
        if os.geteuid() == 0:
            yield _read_only(Site(root / f"read-only-{short}", tool))
        yield _missing(Site(root / f"missing-{short}", tool), root / f"bin-{short}")
        if short != "cmake":  # Ninja and Make compare times, and know no content
            yield _clocks(Site(root / f"clock-{short}", tool), options.count // 20)


@contextlib.contextmanager
def _mounted_read_only(folder: Path) -> Iterator[None]:
    subprocess.run(["mount", "--bind", folder, folder], check=True)
    try:
        subprocess.run(["mount", "-o", "remount,bind,ro", folder], check=True)
        yield
    finally:
        subprocess.run(["umount", "-l", folder], check=True)


def _read_only(site: Site) -> Tally:
    tally, ours = Tally(f"read-only folder, {site.tool}"), site.tool.startswith("mlfbuild")
    clean = []
    for version in range(2):
        site.clean()
        site.change(version)
        assert site.build().status == 0, site.output()
        clean.append(site.products())
    version = 1
    for folder in _FOLDERS:
        if (site.root / folder).is_dir():
            version = 1 - version
            site.change(version)
            with _mounted_read_only(site.root / folder), (site.root.parent / "output").open("w") as output:
                command = subprocess.run(TOOLS[site.tool], cwd=site.root, stdout=output, stderr=output, timeout=180)
            tally.end(folder, command.returncode, (site.root.parent / "output").read_text(), ours=ours)
            if problem := site.difference(clean[version]):
                tally.wrong.append(f"{folder}: {problem}")
    return tally


def _missing(site: Site, tools: Path) -> Tally:
    tally, ours = Tally(f"tools that disappear, {site.tool}"), site.tool.startswith("mlfbuild")
    tools.mkdir()
    for name in _MISSING:
        (tools / name).write_text(_SHIM.format(name=name, path=shutil.which(name)))
        (tools / name).chmod(0o755)
    before = os.environ["PATH"]
    os.environ.update(PATH=f"{tools}:{before}", CC=str(tools / "cc"), MLF_FAULT=str(site.root / "fault"))
    try:
        assert site.build().status == 0, site.output()
        products = site.products()
        for name, counts in _MISSING.items():
            for count in counts:
                site.clean()
                fault = site.root / f"fault.{name}"
                fault.write_text(f"{count}\n")
                ended = site.build()
                tally.end(f"{name} after {count} calls", ended.status, ended.output, ours=ours)
                fault.unlink()
                if problem := site.difference(products):
                    tally.wrong.append(f"{name} after {count} calls: {problem}")
    finally:
        os.environ["PATH"] = before
        del os.environ["CC"], os.environ["MLF_FAULT"]
    return tally


def _clocks(site: Site, count: int) -> Tally:
    """Build at a time far from now, then change a model: the files of the build are older or newer than they can be."""
    tally, draw = Tally(f"clock jumps, {site.tool}"), random.Random(18)
    clean = []
    for version in range(2):
        site.clean()
        site.change(version)
        assert site.build().status == 0, site.output()
        clean.append(site.products())
    for _ in range(count):
        version = draw.randrange(2)
        seconds = draw.choice((-1, 1)) * draw.choice((3, 3600, 10**8))
        for path in [*site.root.rglob("*")]:
            if path.name in {".ninja_log", ".ninja_deps"}:
                path.write_bytes((_later_log if path.name == ".ninja_log" else _later_deps)(path.read_bytes(), seconds))
            if path.is_file() and not path.is_symlink():
                status = path.stat()
                later = seconds * 10**9  # to the nanosecond, as Ninja compares
                os.utime(path, ns=(status.st_atime_ns + later, status.st_mtime_ns + later))
        site.change(version)
        moment = time.time() + draw.choice((-(10**8), 0, 10**8))
        for path in (site.root / "models").iterdir():
            os.utime(path, (moment, moment))
        ended = site.build()
        tally.end(f"{seconds} s", ended.status, ended.output, ours=site.tool.startswith("mlfbuild"))
        if ended.status != 0 or site.products() != clean[version]:
            tally.wrong.append(f"{seconds} s, models at {moment:.0f}: {ended.output[-500:]}")
    return tally


def _later_log(data: bytes, seconds: int) -> bytes:
    """Return Ninja's log of builds with other times: start, end, time of the newest input, output, hash."""
    lines = [line.split("\t") for line in data.decode().splitlines()]
    for fields in lines:
        if len(fields) == 5 and fields[2] != "0":
            fields[2] = str(int(fields[2]) + seconds * 10**9)
    return "".join("\t".join(fields) + "\n" for fields in lines).encode()


def _later_deps(data: bytes, seconds: int) -> bytes:
    """Return Ninja's log of headers with other times.

    A text and a version, then records. The highest bit of a record's size marks those of outputs: number of the output,
    time, numbers of the headers.
    """
    at = data.index(b"\n") + 5
    changed = bytearray(data)
    while at + 4 <= len(data):
        (size,) = struct.unpack_from("<I", data, at)
        if size & 0x80000000:
            (moment,) = struct.unpack_from("<Q", data, at + 8)
            struct.pack_into("<Q", changed, at + 8, moment + seconds * 10**9)
        at += 4 + (size & 0x7FFFFFFF)
    return bytes(changed)
