"""A network may use all kernels at the same time, so no two headers may define one name."""

import re
from collections import defaultdict
from pathlib import Path

import mlfbuild

KERNELS = Path(mlfbuild.__file__).parent / "native/kernels"

DEFINITIONS = (r"^(?:struct|enum) (\w+) \{", r"^MLF_(?:KERNEL|SHARED|NAKED)\b[^\n;(]*?(\w+)\(", r"^#define (\w+)")


def test_every_name_is_defined_in_one_header() -> None:
    headers = defaultdict(set)
    for path in KERNELS.rglob("*.h"):
        headers[path.name].add(str(path))
        for pattern in DEFINITIONS:
            for name in re.findall(pattern, path.read_text(), re.MULTILINE):
                headers[name].add(path.name)
    assert len(headers) > 500
    assert {name: found for name, found in headers.items() if len(found) > 1} == {}
