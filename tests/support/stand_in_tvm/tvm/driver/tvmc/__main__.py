"""``python -m tvm.driver.tvmc compile ...``."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

import tvm
from tvm.driver.tvmc import arguments, export

VERSION = tuple(int(part) for part in tvm.__version__.split(".")[:2])


def main() -> int:
    verb, *words = sys.argv[1:]
    assert verb == "compile"
    with Path(os.environ["STAND_IN_RUNS"]).open("a") as runs:
        runs.write(json.dumps(words) + "\n")
    try:
        given = arguments.parse(VERSION, words)
    except arguments.TVMCError as error:
        sys.stderr.write(f"Error: {error}\n")
        return 4
    if not Path(str(given["FILE"])).is_file():
        sys.stderr.write(
            f"Error: Input file '{given['FILE']}' doesn't exist, is a broken symbolic link, or a directory"
        )
        return 4
    export.write(given, VERSION)
    return 0


sys.exit(main())
