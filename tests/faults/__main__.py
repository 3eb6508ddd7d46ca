"""Run campaigns: `python -m faults [--count 200] [--minutes 60] [kills disks ...]`.

The exit status is 1 if one of them failed. `kills:scons` runs the part of a campaign that is about SCons.
"""

import argparse
import importlib
import math
import sys
import tempfile
import time
from pathlib import Path

CAMPAIGNS = ("kills", "disks", "surroundings", "pairs", "servers", "caches")


def main() -> int:
    parser = argparse.ArgumentParser(prog="faults")
    parser.add_argument("names", nargs="*", default=CAMPAIGNS)
    parser.add_argument("--count", type=int, default=200, help="kills of each tool")
    parser.add_argument("--minutes", type=float, default=math.inf, help="time to kill each tool")
    options = parser.parse_args()
    passed = True
    for name in options.names:
        module, _, chosen = name.partition(":")
        with tempfile.TemporaryDirectory(prefix="mlfbuild-faults-") as folder:
            began = time.monotonic()
            for tally in importlib.import_module(f"faults.{module}").campaign(Path(folder), chosen, options):
                print(f"{tally.text()}\n  {time.monotonic() - began:.0f} s", flush=True)
                passed &= tally.passed
                began = time.monotonic()
    return 0 if passed else 1


if __name__ == "__main__":
    sys.exit(main())
