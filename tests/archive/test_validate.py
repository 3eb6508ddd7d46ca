"""Findings of ``validate``: each code in an archive with only that flaw, and none in valid archives."""

import json
from collections import Counter
from datetime import datetime, timezone
from pathlib import Path

import numpy as np
import pytest

from mlfbuild.archive.layout import archive_files
from mlfbuild.archive.load import open_archive
from mlfbuild.archive.merge import merge
from mlfbuild.archive.read import read_files
from mlfbuild.archive.validate import CODES, Report, validate
from mlfbuild.core.errors import InputFileError
from mlfbuild.library import ExternalDependency, MainMemory, StorageEntry
from support.errors import raises
from support.flawed_archives import FLAWS, Flaw
from support.libraries import GRAPH_JSON
from support.old_archives import MODELS, model_archive, operator_archive, sketch_archive
from support.sound_archives import (
    METADATA,
    TINY_SOURCE,
    Files,
    defining,
    described,
    named,
    net,
    net_module,
    operator,
    packed,
    replaced,
    shared_storage,
    tiny,
    tiny_module,
    with_bundle,
    without,
)

NOW = datetime(2024, 1, 1, tzinfo=timezone.utc)


def judged(files: Files) -> Report:
    return validate(files, "a.tar", NOW)


# One archive per code


@pytest.mark.parametrize("flaw", FLAWS, ids=[f"{index}-{flaw.code}" for index, flaw in enumerate(FLAWS)])
def test_each_flaw_has_one_finding(flaw: Flaw) -> None:
    report = judged(flaw.files())
    assert [(finding.code, finding.place) for finding in report.findings] == [(flaw.code, flaw.place)]
    (finding,) = report.findings
    assert finding.severity == CODES[flaw.code].severity and finding.advice == CODES[flaw.code].advice
    assert finding.message and finding.message.isprintable()
    assert report.failed == (finding.severity == "error")


def test_module_names_that_differ_only_in_case() -> None:
    upper = named("Net")
    document = json.loads(upper[METADATA])
    files = {**net(), **upper}
    files[METADATA] = json.dumps(
        {"version": 7, "modules": {**json.loads(net()[METADATA])["modules"], **document["modules"]}}
    ).encode()
    found = {finding.code: finding for finding in judged(files).findings}
    assert found["MLF303"].message == "net and Net are the same name in lower case"
    assert found["MLF302"].place == f"{METADATA}: modules.Net.model_name"


def test_every_code_is_produced_by_a_test() -> None:
    assert {flaw.code for flaw in FLAWS} | {"MLF303"} == set(CODES)


@pytest.mark.parametrize(
    "files",
    [
        tiny,
        net,
        operator,
        shared_storage,
        lambda: tiny("a", "b"),
        lambda: packed(net_module()),
        lambda: with_bundle(tiny_module()),
    ],
    ids=["tiny", "net", "operator", "shared storage", "two", "graph", "bundle"],
)
def test_valid_archives_have_no_findings(files: object) -> None:
    assert callable(files)
    report = judged(files())
    assert report.findings == () and not report.failed


# Messages


@pytest.mark.parametrize(
    ("code", "message"),
    [
        ("MLF401", "storage id 1 has 4 bytes but needs 8"),
        ("MLF407", "is 16, but 0 in the metadata"),
        ("MLF408", "is 140091232, but 4 in the metadata"),
        ("MLF411", "tvmgen_net_add needs 8 bytes, but the module has 0"),
        ("MLF506", "has int32 of 8 bytes, but the graph has float32 of 8 bytes"),
        ("MLF602", "is int32[1, 2], but float32[1, 2] in the graph"),
        ("MLF701", "includes tvmgen_Tiny.h, but the archive has tvmgen_tiny.h"),
        ("MLF703", "modules net, other define it"),
        ("MLF711", "has z, but the metadata has x"),
        ("MLF801", "version_spec is missing, and url_type git needs a branch, a tag or a commit"),
    ],
)
def test_messages_contain_the_values(code: str, message: str) -> None:
    flaw = next(flaw for flaw in FLAWS if flaw.code == code)
    assert [finding.message for finding in judged(flaw.files()).findings] == [message]


def test_hostile_names_stay_on_one_line() -> None:
    files = described(tiny(), "modules.tiny.\n\x1b[31m" + "x" * 10_000, 1)
    (finding,) = judged(files).findings
    assert finding.code == "MLF201" and finding.place.isprintable() and len(finding.place) < 250


# Valid variants


def test_objects_may_have_symbols_of_any_name() -> None:
    files = without(named("my-net"), "codegen/host/src/my-net_lib0.c", "codegen/host/src/my-net_lib1.c")
    codes = {finding.code for finding in judged({**files, "codegen/host/lib/my-net_lib0.o": b"Mach-O"}).findings}
    assert codes == {"MLF712"}


def test_bool_and_uint1_are_the_same_type() -> None:
    text = GRAPH_JSON.replace('"float32", "float32", "float32"', '"float32", "uint1", "float32"')
    storage = (StorageEntry(0, 8, "x"), StorageEntry(1, 2, "p0"), StorageEntry(2, 8))
    files = net(graph_json=text.encode(), params={"p0": np.array([[True, False]])}, storage=storage)
    assert judged(files).findings == ()


def test_known_devices_of_targets_are_valid() -> None:
    files = described(packed(net_module(), version=5), "target", {"99": "c"})
    assert ("MLF211", f"{METADATA}: target") in {(found.code, found.place) for found in judged(files).findings}


# Reports


def test_text_of_a_report() -> None:
    files = replaced(described(tiny(), "modules.tiny.colour", "red"), TINY_SOURCE, "tvmgen_tiny.h", "tvmgen_Tiny.h")
    assert judged(files).text() == "\n".join(
        [
            f"error MLF701: {CODES['MLF701'].meaning}",
            f"  {TINY_SOURCE}: includes tvmgen_Tiny.h, but the archive has tvmgen_tiny.h",
            f"  -> {CODES['MLF701'].advice}",
            "warning MLF201: a key that the format does not have",
            f"  {METADATA}: modules.tiny.colour: is not a key of the format",
            "  -> tools ignore it; facts of your own belong in extensions",
            "a.tar: invalid: 1 error, 1 warning, 0 notes",
        ]
    )


def test_json_of_a_report() -> None:
    report = judged(described(tiny(), "modules.tiny.colour", "red")).to_json()
    assert json.loads(json.dumps(report)) == {
        "archive": "a.tar",
        "valid": True,
        "errors": 0,
        "warnings": 1,
        "notes": 0,
        "findings": [
            {
                "code": "MLF201",
                "severity": "warning",
                "place": f"{METADATA}: modules.tiny.colour",
                "message": "is not a key of the format",
                "advice": "tools ignore it; facts of your own belong in extensions",
                "repairable": False,
            }
        ],
    }


def test_many_findings_of_one_code_are_counted() -> None:
    document = json.loads(tiny()[METADATA])
    document["modules"]["tiny"].update({f"key{number}": 0 for number in range(500)})
    report = judged({**tiny(), METADATA: json.dumps(document).encode()})
    assert report.count("warning") == 101
    assert report.findings[-1].message == "400 more findings like these are left out"
    lines = report.text().splitlines()
    assert len(lines) == 9 and lines[6] == "  ... and 96 more; --format json lists them"


# Unreadable archives


@pytest.mark.parametrize(
    ("files", "code", "place"),
    [
        ({}, "metadata-missing", "a.tar"),
        (described(tiny(), "version", 8), "format-version-unknown", "a.tar: metadata.json: version"),
        (described(tiny(), "modules.tiny.memory", ...), "json-member-missing",
         "a.tar: metadata.json: modules.tiny.memory"),
        (without(tiny(), "parameters/tiny.params"), "archive-file-missing", "a.tar: parameters/tiny.params"),
    ],
)  # fmt: skip
def test_an_archive_that_cannot_be_read_is_refused(files: Files, code: str, place: str) -> None:
    with raises(InputFileError, code, at=place):
        judged(files)


# Archives of every version


@pytest.mark.parametrize(("version", "executor"), MODELS)
def test_old_versions_have_no_errors(version: int, executor: str) -> None:
    report = judged(model_archive(version, executor))
    assert not report.failed, report.text()
    assert ("MLF209" in {finding.code for finding in report.findings}) == (version < 7)
    assert not [finding for finding in report.findings if finding.code in {"MLF107", "MLF201", "MLF202", "MLF203"}]


@pytest.mark.parametrize("version", [1, 2, 3, 4])
def test_old_code_that_was_converted_has_no_errors(version: int) -> None:
    library = read_files(model_archive(version, "aot"), "a.tar")
    assert judged(archive_files(library, 7)).count("error") == 0, "its symbols do not bear the module's name"


def test_garbage_sizes_are_recognised_without_a_version() -> None:
    report = judged(defining({"X_SIZE": 140091232, "Y_SIZE": 140091264}))
    assert [finding.code for finding in report.findings] == ["MLF408", "MLF408"]


@pytest.mark.parametrize("version", [4, 5, 6, 7])
def test_old_operators_have_no_errors(version: int) -> None:
    report = judged(operator_archive(version))
    assert not report.failed, report.text()
    # MLF710: the sample's code is that of the model, which has no function called add.
    assert {finding.code for finding in report.findings} <= {"MLF206", "MLF209", "MLF710"}


def test_storage_ids_of_the_sketch_have_a_place() -> None:
    files = sketch_archive()
    name = next(path for path in files if path.startswith("metadata-"))
    document = json.loads(files[name])
    document["memory"]["3"]["size_bytes"] += 1000
    report = judged({**files, name: json.dumps(document).encode()})
    assert [finding.place for finding in report.findings if finding.code == "MLF402"] == [f"{name}: memory.3"]


def test_the_sketch_of_the_first_rfc_has_no_errors() -> None:
    assert not judged(sketch_archive()).failed


# Archives that TVM wrote. Their runtime/ was removed, so MLF802 is correct.

_AOT = {"MLF206", "MLF802"}
_V5 = {"MLF206", "MLF209"}
FOUND = {
    "add-aotc": _AOT, "add-aotp": _AOT, "add-graph": {"MLF206"}, "byoc-aotp": _AOT | {"MLF413"},
    "conv-aotc": _AOT | {"MLF413"}, "conv-aotp": _AOT | {"MLF413"}, "conv-graph": {"MLF206", "MLF401"},
    "conv-graphlink": {"MLF206", "MLF401"}, "conv-llvm_graph_m4": {"MLF206", "MLF502"},
    "conv-usmp_external": _AOT | {"MLF413"}, "kws_int8-aotc": _AOT | {"MLF413"},
    "kws_int8-cmsisnn_m4": _AOT | {"MLF413", "MLF713"}, "kws_int8-graph": {"MLF206", "MLF401", "MLF502"},
    "many-aotc": _AOT | {"MLF413"}, "many-graph": {"MLF206", "MLF413"}, "multi-aotc": _AOT | {"MLF413"},
    "multi-mixed": _AOT | {"MLF401"}, "operator-add": {"MLF206"}, "v5-add-aotc": _V5, "v5-add-graph": _V5,
    "v5-kws_int8-graph": _V5 | {"MLF401", "MLF502"}, "v5-many-graphlink": _V5 | {"MLF413"},
}  # fmt: skip
"""The expected findings of TVM's archives; none is an error."""


def of_tvm(shared: Path, name: str) -> Report:
    from mlfbuild.archive import tar

    path = shared / "archives" / f"{name}.tar"
    with path.open("rb") as file:
        return validate(tar.members(file, name), name, datetime(2027, 1, 1, tzinfo=timezone.utc))


def test_every_tvm_archive_has_expected_findings(shared: Path) -> None:
    assert {path.stem for path in (shared / "archives").glob("*.tar")} == FOUND.keys()


@pytest.mark.parametrize("name", sorted(FOUND))
def test_archives_of_tvm_have_no_errors(shared: Path, name: str) -> None:
    report = of_tvm(shared, name)
    assert not report.failed, report.text()
    assert {finding.code for finding in report.findings} == FOUND[name]


def test_sizes_of_storage_that_tvm_got_wrong(shared: Path) -> None:
    findings = of_tvm(shared, "kws_int8-graph").findings
    assert Counter(finding.code for finding in findings) == {"MLF206": 1, "MLF401": 19, "MLF502": 3}
    of_conv = [finding for finding in of_tvm(shared, "conv-graph").findings if finding.code == "MLF401"]
    assert [finding.message for finding in of_conv] == ["storage id 4 has 8,192 bytes but needs 32"]


@pytest.mark.parametrize(
    "names", [("add-graph", "kws_int8-graph"), ("add-aotp", "conv-graph"), ("conv-aotc", "kws_int8-cmsisnn_m4")]
)
def test_merged_archives_have_no_errors(shared: Path, names: tuple[str, str]) -> None:
    libraries = [(name, open_archive(shared / "archives" / f"{name}.tar")) for name in names]
    report = validate(archive_files(merge(libraries)), "both.tar", datetime(2027, 1, 1, tzinfo=timezone.utc))
    assert not report.failed, report.text()
    assert not {finding.code for finding in report.findings} & {"MLF703", "MLF706"}


# Documentation


def test_spellings_of_a_dependency_name_are_equivalent() -> None:
    def found(*versions: str) -> set[str]:
        pairs = zip(("cmsis-nn", "CMSIS_NN"), versions, strict=True)
        needs = [ExternalDependency(name, "https://example.org/nn.git", "git", version) for name, version in pairs]
        modules = (tiny_module(f"m{i}", external_dependencies=(item,)) for i, item in enumerate(needs))
        return {each.code for each in validate(packed(*modules), "a.tar").findings}

    assert "MLF803" in found("v4.1.0", "v7.0.0")
    assert "MLF803" not in found("v4.1.0", "v4.1.0")


def test_places_are_those_of_the_document() -> None:
    """Findings about facts that an old version keeps in the key ``mlfbuild``, or has at another place, name it."""
    wrong = ExternalDependency("", "x", "path")
    library = read_files(net(main=(MainMemory(0, 8, 1),), external_dependencies=(wrong,)), "a.tar")
    places = {
        version: {
            finding.code: finding.place.removeprefix(f"{METADATA}: ")
            for finding in judged(archive_files(library, version)).findings
            if finding.code in {"MLF412", "MLF801"}
        }
        for version in (1, 2, 5)
    }
    key = "memory.functions.main[0].io_size_bytes"
    assert places == {
        1: {"MLF412": "mlfbuild.main[0].io_size_bytes", "MLF801": "mlfbuild.external_dependencies[0]"},
        2: {"MLF412": key, "MLF801": "mlfbuild.external_dependencies[0]"},
        5: {"MLF412": key, "MLF801": "external_dependencies[0]"},
    }
