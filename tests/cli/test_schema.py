"""`mlfbuild schema`: the three schemas are valid."""

from support.command import Folder
from support.schemas import validator


def test_the_schema_of_project_files(folder: Folder) -> None:
    schema = folder.run("schema").json
    validator(schema)
    assert schema == folder.run("schema", "--format", "json").json


def test_the_schemas_of_reports_and_events(folder: Folder) -> None:
    for option in ("--report", "--events"):
        validator(folder.run("schema", option).json)


def test_one_schema_at_a_time(folder: Folder) -> None:
    place = "--report and --events"
    assert folder.refused("schema", "--events", "--report") == (2, "options-exclude-each-other", place)
