"""What ``inspect`` shows of an archive."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path, PurePosixPath

from mlfbuild.archive import describe, describe_text, open_archive
from mlfbuild.library import ArchiveFile, ExternalDependency, Library
from support.libraries import graph_library, native_library


def rich_library() -> Library:
    crt = ExternalDependency("tvm_standalone_crt", "./runtime", "mlf_path", "0.14.0")
    native = replace(native_library().modules[0], external_dependencies=(crt,))
    runtime = ArchiveFile(PurePosixPath("runtime/CMakeLists.txt"), b"# nothing\n")
    return Library((native, *graph_library().modules), other_files=(runtime,))


def test_text(golden: Callable[[str, str], None]) -> None:
    golden(describe_text(rich_library()) + "\n", "inspect.txt")


def test_json(golden: Callable[[str, str], None]) -> None:
    golden(json.dumps(describe(rich_library()), indent=2) + "\n", "inspect.json")


def test_facts_of_an_archive_of_tvm(shared: Path) -> None:
    facts = describe(open_archive(shared / "archives" / "multi-mixed.tar"))
    assert [(module["name"], module["executor"]) for module in facts["modules"]] == [("mod1", "aot"), ("mod2", "graph")]
    assert facts["modules"][1]["inputs"] == [
        {"name": "data", "dtype": "float32", "size": 12288, "shape": None, "scale": None, "zero_point": None}
    ]
    json.dumps(facts)
