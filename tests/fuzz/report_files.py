"""Damage reports that a later build is compared with."""

import copy
import functools
import json
import random
from pathlib import Path
from typing import Any

from fuzz.mutate import Mutator
from fuzz.product_files import assert_printable, put_text, written
from mlfbuild.report import compared_with, read_report, saved_report
from support.report_sketch import chain, model, modelled
from support.reports import budget, image, kws, others, report


@functools.cache
def _report() -> dict[str, Any]:
    stack = {"worst_case": 264, "reason": "", "path": ["mlf_kws_run", "conv"], "frames": [24, 240], "measured": 250}
    unknown = {"worst_case": None, "reason": "it calls itself", "path": ["main"], "frames": [0], "measured": None}
    first = image("app for m4", [kws(budget=budget(flash=9000), stack=stack)], others(), stack=unknown)
    return report(first, image("app for m7", [kws(), model("net", [modelled(chain(3))])], others()))


def report_json(number: int) -> bytes:
    """A report with other numbers, texts, keys or shape."""
    chance, mutator = random.Random(number), Mutator(number)
    if chance.random() < 0.1:
        return mutator.damaged(json.dumps(_report()).encode())
    document = copy.deepcopy(_report())
    for _ in range(chance.choice((1, 1, 2, 5))):
        put_text(chance, document) if chance.random() < 0.6 else mutator.change(document)
    return json.dumps(document).encode(errors="surrogatepass")


def read_report_json(data: bytes, _number: int, folder: Path) -> None:
    path, sound = folder / "old.json", folder / "new.json"
    with written(folder, {"old.json": data, "new.json": json.dumps(_report()).encode()}):
        document, new = saved_report(path, operators=True), saved_report(sound)
        for made in (document, compared_with(new, read_report(path), path), compared_with(document, new.report, sound)):
            for line in made.as_text(verbose=True).splitlines():
                assert_printable(line)
            json.dumps(made.as_json()).encode()
            for suffix in (".html", ".txt"):
                made.write(folder / f"out{suffix}")
                (folder / f"out{suffix}").unlink()
