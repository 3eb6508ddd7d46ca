"""Two cold builds of one project at the same time."""

import argparse
import random
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

from faults.site import Site
from faults.tally import Tally

_PAIRS = (("mlfbuild build", "mlfbuild build"), ("scons -j2", "scons -j2"), ("mlfbuild build", "scons -j2"))


def campaign(root: Path, chosen: str, options: argparse.Namespace) -> Iterator[Tally]:
    """Start pairs at moments up to a second apart: both must succeed. Then two bare runs of Ninja, for our trees."""
    draw = random.Random(18)
    for first, second in _PAIRS:
        if chosen in f"{first} {second}":
            site = Site(root / f"pair-{first.split()[0]}-{second.split()[0]}", first)
            tally = Tally(f"two at once, {first} and {second}")
            assert site.build().status == 0, site.output()
            products = site.products()
            for _ in range(options.count // 20):
                site.clean()
                processes = []
                for tool in (first, second):
                    site.tool = tool
                    processes.append(site.start())
                    time.sleep(draw.uniform(0, 1))
                for process in processes:
                    ended = site.ended(process)
                    tally.end("pair", ended.status, ended.output, ours=False)
                    if ended.status:
                        tally.wrong.append(f"one of two failed: {ended.output[-500:]}")
                if site.products() != products:
                    tally.wrong.append("other files")
            yield tally
    if chosen in "ninja":
        yield _ninja(Site(root / "pair-ninja", "cmake --build"), options.count // 20)


def _ninja(site: Site, count: int) -> Tally:
    tally = Tally("two at once, ninja and ninja (trees only)")
    assert site.build().status == 0, site.output()
    trees = site.trees()
    for _ in range(count):
        subprocess.run(["ninja", "-C", "build", "-t", "clean"], cwd=site.root, check=True, capture_output=True)
        pipe = subprocess.PIPE
        pair = [
            subprocess.Popen(["ninja", "-C", "build", "mlf-tree-alpha", "mlf-tree-beta"], cwd=site.root, stdout=pipe)
            for _ in range(2)
        ]
        for process in pair:
            output = process.communicate(timeout=180)[0].decode(errors="replace")
            tally.end("ninja", process.returncode, output, ours=False)
            if process.returncode:
                tally.wrong.append(output[-500:])
        if site.trees() != trees:
            tally.wrong.append("other trees")
    return tally
