"""Kill builds at random moments."""

import argparse
import contextlib
import os
import random
import signal
import time
from collections.abc import Iterator
from pathlib import Path

from faults.site import TOOLS, Site, left_in
from faults.tally import Tally

_SIGNALS = (signal.SIGKILL, signal.SIGKILL, signal.SIGTERM, signal.SIGINT, signal.SIGHUP)


def campaign(root: Path, chosen: str, options: argparse.Namespace) -> Iterator[Tally]:
    """Kill each tool ``count`` times; after each kill, the next build must give the bytes of a clean one."""
    for tool in TOOLS:
        if chosen in tool:
            end = time.monotonic() + 60 * options.minutes
            yield _kills(Site(root / f"kill-{tool.split()[0]}", tool), options.count, end)


def _kills(site: Site, count: int, end: float) -> Tally:
    tally, draw = Tally(f"kill {site.tool}"), random.Random(18)
    clean = []
    for version in range(2):
        site.clean()
        site.change(version)
        ended = site.build()
        assert ended.status == 0, ended.output
        clean.append((site.products(), ended.seconds))
    while tally.tried < count and time.monotonic() < end:
        version = draw.randrange(2)
        site.change(version)  # half of the builds have two models to make, the others what the last kill left
        if draw.random() < 0.4:
            site.clean()
        products, seconds = clean[version]
        killed, what = _kill(site, tally, draw, seconds)
        if problem := site.difference(products):
            tally.wrong.append(f"{what}: {problem}")
            site.clean()
        if left := _left_after(killed, 20):
            tally.hung.append(f"{what}: {left}")
    return tally


def _kill(site: Site, tally: Tally, draw: random.Random, seconds: float) -> tuple[int, str]:
    """Disturb a build; return the number of its process, and how it was disturbed."""
    number = draw.choice(_SIGNALS)
    # An orphan of `sh` or CMake goes on building beside the next build, and these programs have no lock.
    group = site.tool.startswith("cmake") or draw.random() < 0.5
    process = site.start()
    moment = draw.uniform(0.02, seconds)
    time.sleep(moment)
    with contextlib.suppress(ProcessLookupError):
        (os.killpg if group else os.kill)(process.pid, number)
    ended = site.ended(process)
    what = f"{number.name} to the {'group' if group else 'process'} after {moment:.2f} s"
    # multiprocessing's own child complains if its parent is killed while it starts
    output = "" if number == signal.SIGKILL else ended.output
    tally.end(what, ended.status, output, ours=site.tool.startswith("mlfbuild"))
    if group or number != signal.SIGKILL:  # else, the next build starts beside what the killed one left
        _left_after(process.pid, 20)
    return process.pid, what


def _left_after(session: int, seconds: float) -> list[str]:
    """Wait until the processes of a session have ended, and return those that have not."""
    deadline = time.monotonic() + seconds
    while (left := left_in(session)) and time.monotonic() < deadline:
        time.sleep(0.05)
    return left
