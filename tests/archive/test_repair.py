"""Repairs: after each, ``validate`` no longer has its finding, and nothing else changes."""

import io
import json
import math
import subprocess
import tarfile
from collections.abc import Callable
from dataclasses import replace
from datetime import datetime, timedelta, timezone
from pathlib import Path

import pytest

from mlfbuild.archive import read_files
from mlfbuild.archive.layout import archive_files
from mlfbuild.archive.load import open_dated_archive, pack_archive
from mlfbuild.archive.repair import Repair, RepairedLibrary, repaired
from mlfbuild.archive.validate import CODES, validate
from mlfbuild.library import Library
from support.flawed_archives import FLAWS, Flaw
from support.old_archives import model_archive
from support.sound_archives import TINY_HEADER, TINY_SOURCE, Files, defining, dependency, net, tiny_module, with_runtime
from support.tvm_archives import TVM_ARCHIVES, tvm_files

NOW = datetime(2024, 1, 1, tzinfo=timezone.utc)
REPAIRABLE = [flaw for flaw in FLAWS if CODES[flaw.code].repairable and flaw.code != "MLF206"]


def repair_of(files: Files) -> RepairedLibrary:
    return repaired(read_files(files, "a.tar"), {})


def findings(library: Library) -> list[str]:
    return [finding.code for finding in validate(archive_files(library), "a.tar", NOW).findings]


@pytest.mark.parametrize("flaw", REPAIRABLE, ids=[f"{index}-{flaw.code}" for index, flaw in enumerate(REPAIRABLE)])
def test_a_repair_removes_the_finding(flaw: Flaw) -> None:
    result = repair_of(flaw.files())
    assert [repair.code for repair in result.repairs] == [flaw.code]
    assert findings(result.library) == []
    (repair,) = result.repairs
    path = flaw.place.rpartition(":")[0].partition(":")[0] or flaw.place
    assert repair.place.startswith(path)
    assert repair.before != repair.after
    assert repaired(result.library, {}).repairs == (), "a repaired library needs no repair"


def test_every_repairable_code_is_repaired_by_a_test() -> None:
    assert {flaw.code for flaw in REPAIRABLE} | {"MLF206"} == {name for name, kind in CODES.items() if kind.repairable}


@pytest.mark.parametrize(
    "flaw", [flaw for flaw in FLAWS if not CODES[flaw.code].repairable], ids=lambda flaw: flaw.code
)
def test_other_flaws_stay(flaw: Flaw) -> None:
    files = flaw.files()
    library = read_files(files, "a.tar")
    result = repaired(library, {})
    assert (result.repairs, result.library) == ((), library)


# Storage


def allocated(library: Library) -> dict[int, int]:
    """Return the bytes of each storage id of the only graph, as TVM's runtimes compute them."""
    module = next(module for module in library.modules if module.graph_json is not None)
    attrs = json.loads(bytes(module.graph_json or b""))["attrs"]
    sizes: dict[int, int] = {}
    for storage, shape, dtype in zip(*(attrs[key][1] for key in ("storage_id", "shape", "dltype")), strict=True):
        bits = int("".join(filter(str.isdigit, dtype)))
        sizes[storage] = max(sizes.get(storage, 0), math.ceil(math.prod(shape) * bits / 8))
    return sizes


@pytest.mark.parametrize("name", [name for name in TVM_ARCHIVES if "graph" in name] + ["multi-mixed"])
def test_storage_of_tvm_archives_is_that_of_the_graph(name: str, shared: Path) -> None:
    library = read_files(tvm_files(shared, name), name)
    result = repaired(library, {})
    (module,) = (module for module in result.library.modules if module.graph_json is not None)
    assert {entry.storage_id: entry.size for entry in module.storage} == allocated(library)
    old = library.module(module.name)
    changed = sum(old.size != new.size for old, new in zip(old.storage, module.storage, strict=True))
    assert sum(repair.code == "MLF401" for repair in result.repairs) == changed
    assert replace(module, storage=old.storage, main=old.main) == old, "the rest is unchanged"


def test_places_are_those_of_the_version_that_was_read() -> None:
    for version, key in ((1, "memory[3]"), (5, "memory.sids[3]"), (7, "modules.add.memory.sids[3]")):
        files = model_archive(version)
        text = files["metadata.json"].decode()
        assert text.count('"storage_id": 3') == 1
        document = json.loads(text)
        module = document["modules"]["add"] if version == 7 else document
        sids = module["memory"] if version == 1 else module["memory"]["sids"]
        sids[3]["size_bytes"] = 2
        result = repair_of({**files, "metadata.json": json.dumps(document).encode()})
        (finding,) = (
            each
            for each in validate({**files, "metadata.json": json.dumps(document).encode()}, "a", NOW).findings
            if each.code == "MLF402"
        )
        assert result.repairs == (Repair("MLF402", f"metadata.json: {key}", "2 bytes", "8 bytes"),)
        assert result.repairs[0].place == finding.place


# Code


def test_the_header_gets_the_sizes_of_the_metadata() -> None:
    files = with_runtime(defining({"X_SIZE": 140091232, "Y_SIZE": 4}, external_dependencies=(dependency("0.11.1"),)))
    sizes = {tensor.name: tensor.size for tensor in (*tiny_module().inputs, *tiny_module().outputs)}
    result = repair_of(files)
    (module,) = result.library.modules
    old, new = files[TINY_HEADER], next(file.data for file in module.codegen if file.path.suffix == ".h")
    changed = [(a, b) for a, b in zip(old.splitlines(), new.splitlines(), strict=True) if a != b]
    assert changed[0] == (b"#define TVMGEN_TINY_X_SIZE 140091232", f"#define TVMGEN_TINY_X_SIZE {sizes['x']}".encode())


def test_a_source_with_two_declarations_compiles_after_the_repair(tool: Callable[[str], str], tmp_path: Path) -> None:
    (flaw,) = (flaw for flaw in FLAWS if flaw.code == "MLF702" and TINY_SOURCE in flaw.place)
    types = (
        "#include <stdint.h>\n#define TVM_DLL\ntypedef int TVMValue;\ntypedef void (*TVMBackendPackedCFunc)(void);\n"
        "typedef struct { const char *names; const TVMBackendPackedCFunc *functions; } TVMFuncRegistry;\n"
        "typedef struct { const TVMFuncRegistry *registry; } TVMModule;\n"
    )
    (tmp_path / "tvm/runtime/crt").mkdir(parents=True)
    (tmp_path / "tvm/runtime/crt/module.h").write_text(types)

    def messages(files: dict[str, bytes]) -> str:
        for path, content in files.items():
            (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
            (tmp_path / path).write_bytes(content)
        command = [tool("gcc"), "-std=c99", "-fsyntax-only", "-I.", "-Icodegen/host/include", TINY_SOURCE]
        return subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False).stderr

    files = flaw.files()
    assert "conflicting types" in messages(files)
    result = repair_of(files)
    assert messages({path: bytes(content) for path, content in archive_files(result.library).items()}) == ""
    (repair,) = result.repairs
    assert repair.place == f"{TINY_SOURCE}:2: tvmgen_tiny_run"


# Dates


DATE = datetime(2023, 3, 10, 12, 0, 0, tzinfo=timezone.utc)
"""When an archive was exported."""


def exported(folder: Path, offset: timedelta, **late: float) -> Path:
    """Write an archive whose exporter's clock is ``offset`` ahead of UTC; ``late`` are seconds by name of member."""
    local = (DATE + offset).strftime("%Y-%m-%d %H:%M:%SZ")
    with tarfile.open(folder / "a.tar", "w") as archive:
        for path, content in {**net(export_datetime=local), "runtime/include/x.h": b"\n"}.items():
            member = tarfile.TarInfo(f"./{path}")
            member.size = len(content)
            name = path.partition("/")[0].removesuffix(".json")
            member.mtime = DATE.timestamp() + late.get(name, 0.7 if name != "runtime" else -1e7)
            archive.addfile(member, io.BytesIO(content))
    return folder / "a.tar"


def date_repairs(path: Path) -> RepairedLibrary:
    return repaired(*open_dated_archive(path))


@pytest.mark.parametrize(
    ("hours", "shown"),
    [(0, "+00:00"), (2, "+02:00"), (-3.5, "-03:30"), (5.75, "+05:45"), (14, "+14:00"), (-12, "-12:00"), (9, "+09:00")],
)
def test_times_of_members_prove_the_time_zone(hours: float, shown: str, tmp_path: Path) -> None:
    result = date_repairs(exported(tmp_path, timedelta(hours=hours)))
    (module,) = result.library.modules
    assert (module.export_datetime, module.export_utc) == ("2023-03-10 12:00:00Z", True)
    (repair,) = result.repairs
    assert (repair.code, repair.place) == ("MLF206", "metadata.json: modules.net.export_datetime")
    assert f"UTC{shown}" in repair.after
    assert result.in_doubt == ()
    again = read_files(archive_files(result.library, 5), "a.tar")
    assert again.modules[0].export_utc
    assert "MLF206" not in findings(again)
    assert repaired(again, {}).in_doubt == ()


@pytest.mark.parametrize(
    ("offset", "late"),
    [
        (timedelta(hours=15), {}),
        (timedelta(hours=-13), {}),
        (timedelta(hours=1, minutes=4), {}),
        (timedelta(hours=1), {"metadata": 130.0}),  # edited by hand
        (timedelta(hours=1), {"metadata": 30.0, "parameters": -40.0}),  # as above, just after the export
        (timedelta(0), {"metadata": -1.3e9}),
    ],
)
def test_a_date_in_doubt_stays(offset: timedelta, late: dict[str, float], tmp_path: Path) -> None:
    path = exported(tmp_path, offset, **late)
    library, times = open_dated_archive(path)
    result = repaired(library, times)
    assert result.repairs == ()
    assert result.library.modules[0].export_datetime == library.modules[0].export_datetime
    assert [date.place for date in result.in_doubt] == ["metadata.json: modules.net.export_datetime"]
    assert "MLF206" in findings(result.library)


def test_archives_of_mlfbuild_prove_nothing(tmp_path: Path) -> None:
    library = read_files(net(export_datetime="2023-02-28 12:00:00Z"), "a.tar")
    (tmp_path / "a.tar").write_bytes(pack_archive(library))
    assert len(date_repairs(tmp_path / "a.tar").in_doubt) == 1


def test_dates_that_no_exporter_wrote_are_not_in_doubt() -> None:
    for text in ("", "yesterday", "1980-01-01 00:00:00Z"):
        assert repaired(Library(read_files(net(export_datetime=text), "a.tar").modules), {}).in_doubt == ()


def test_the_last_date_of_the_calendar() -> None:
    library = read_files(net(export_datetime="9999-12-31 23:59:59Z"), "a.tar")
    end = int(datetime(9999, 12, 31, 23, 59, 59, tzinfo=timezone.utc).timestamp())
    assert repaired(library, {"metadata.json": end + 3600}).repairs == ()
    assert repaired(library, {"metadata.json": 10**30}).repairs == ()
