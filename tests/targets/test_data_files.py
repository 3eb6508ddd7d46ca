"""The tables in TOML files: read with the checks of project files, and with the same keys."""

from pathlib import Path

import pytest

from mlfbuild.core import Mistake, table_of_package
from mlfbuild.project import RunnerKeys, json_schema, load_project, mcu_of
from mlfbuild.runners import gdb_server
from mlfbuild.targets import GDB_SERVERS, MCUS, data_files
from mlfbuild.targets.data_files import DATA, rows
from mlfbuild.targets.part_keys import PartKeys
from mlfbuild.targets.types import Cpu
from support.errors import raises

PARTS = {
    name: values
    for table in ("mcus_st", "mcus_others")
    for name, values in table_of_package(DATA / f"{table}.toml").items()
}


@pytest.mark.parametrize("name", PARTS)
def test_the_keys_of_a_part_are_those_of_timing_in_a_project_file(tmp_path: Path, name: str) -> None:
    """All checks of a project file hold for the part, and the same values describe the same microcontroller."""
    values, wanted = PARTS[name], MCUS[name]
    base = f"mcu: {values['based-on']}" if "based-on" in values else f"cpu: {wanted.cpu}"
    timing = {key: values[key] for key in ("clock", "memories", "caches") if key in values}
    runner = {"gdb": ":3333", "server": "openocd"}
    if "memory" in values:
        runner["memory"] = {key: values["memory"][key] for key in ("ram", "flash") if key in values["memory"]}
    file = tmp_path / "mlfbuild.yml"
    file.write_text(
        f"mlfbuild: 1\ntargets:\n  own:\n    {base}\n    timing: {flow(timing)}\n    runner: {flow(runner)}\n"
        "models: {net: {source: net.tflite}}\n"
    )
    target = load_project(file).targets["own"]
    found = mcu_of(target)
    assert found is not None
    assert (found.clock, found.memories, found.caches) == (wanted.clock, wanted.memories, wanted.caches)
    assert {**found.wait_states} == {**wanted.wait_states}
    assert isinstance(target.runner, RunnerKeys)
    if target.runner.memory is not None and wanted.memory is not None:
        assert (target.runner.memory.ram, target.runner.memory.flash) == (wanted.memory.ram, wanted.memory.flash)


def flow(value: object) -> str:
    """YAML of a value of a TOML file, on one line."""
    if isinstance(value, dict):
        return "{" + ", ".join(f"{key}: {flow(each)}" for key, each in value.items()) + "}"
    return str(value).lower() if isinstance(value, bool) else f'"{value}"' if isinstance(value, str) else str(value)


def test_a_gdb_server_that_project_files_accept_is_one_that_runners_know() -> None:
    server = json_schema()["$defs"]["RunnerKeys"]["properties"]["server"]
    assert server["enum"] == [*GDB_SERVERS]
    for name in server["enum"]:
        assert gdb_server(name, (), "localhost:1", "runner").name == name


@pytest.mark.parametrize("name", GDB_SERVERS)
def test_every_gdb_server_has_a_source(name: str) -> None:
    assert GDB_SERVERS[name].source


@pytest.mark.parametrize("name", [name for name, mcu in MCUS.items() if mcu.memory])
def test_every_memory_map_has_a_source(name: str) -> None:
    memory = MCUS[name].memory
    assert memory is not None and memory.source


@pytest.mark.parametrize(
    ("kind", "text", "code", "place"),
    [
        (PartKeys, 'title = ""\nclok = "1 MHz"', "unknown-key", "clok"),
        (PartKeys, 'clock = "1 MHz"', "missing-key", "title"),
        (PartKeys, 'title = ""\nclock = "fast"', "invalid-quantity", "clock"),
        (PartKeys, 'title = ""\nsources = 1', "wrong-type", "sources"),
        (PartKeys, 'title = ""\nmemories = 1', "wrong-type", "memories"),
        (PartKeys, 'title = ""\nmemories.flash.width = 3', "not-a-power-of-two", "memories.flash.width"),
        (PartKeys, 'title = ""\nmemories.flash.wait-states = {}', "empty-collection", "memories.flash.wait-states"),
        (PartKeys, 'title = ""\nmemories.flash.prefetch = 1', "wrong-type", "memories.flash.prefetch"),
        (PartKeys, 'title = ""\nmemories.1st.size = 1', "invalid-name", "memories"),
        (PartKeys, 'title = ""\nmemory.ram = {origin = -1, size = 1}', "address-out-of-range", "memory.ram.origin"),
        (Cpu, 'title = ""\narchitecture = "x"\nflags = "-O2"', "wrong-type", "flags"),
        (Cpu, 'title = ""\narchitecture = "x"\nflags = [1]', "wrong-type", "flags.0"),
    ],
)
def test_a_mistake_in_a_table_is_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: type, text: str, code: str, place: str
) -> None:
    (tmp_path / "parts.toml").write_text(f"[mine]\n{text}\n")
    monkeypatch.setattr(data_files, "DATA", tmp_path)
    with raises(Mistake, code) as caught:
        list(rows("parts", kind))
    assert "parts.toml: mine: " in caught.value.reason and place in caught.value.reason
