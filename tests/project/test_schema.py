"""The JSON Schema and the reader agree, as far as a schema can express a rule."""

from __future__ import annotations

import contextlib
import json
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
import yaml

from mlfbuild.project import json_schema
from support import schemas

if TYPE_CHECKING:
    from jsonschema import Draft202012Validator

FOLDER = Path(__file__).parent


def values(folder: str) -> list[object]:
    """Return name and value of each file in ``folder`` that is valid YAML for an editor."""
    found = []
    for path in sorted((FOLDER / folder).glob("*.yml")):
        with contextlib.suppress(yaml.YAMLError, ValueError, TypeError):
            found.append(pytest.param(path.stem, yaml.safe_load(path.read_bytes()), id=path.stem))
    return found


# Mistakes that no JSON Schema can express: YAML itself, names that do not exist, two values that do not fit.
BEYOND_A_SCHEMA = {
    "ambiguous_numbers", "ambiguous_truth", "board_of_another_cpu",
    "budget_of_instructions_without_board", "budget_of_this_machine", "compiler_for_another_source",
    "dangling_names_in_firmware", "dangling_targets", "duplicate_keys", "duplicate_section",
    "memory_scripts", "merge_key", "model_named_as_parameters", "model_not_built_for_target", "not_finite_numbers",
    "placement_of_a_graph", "runner_of_unknown_command", "section_kinds", "share_workspace_alone",
    "version_is_a_fraction",
}  # fmt: skip


@pytest.fixture(scope="module")
def validator() -> Draft202012Validator:
    return schemas.validator(json_schema())


@pytest.mark.parametrize(("name", "value"), values("valid"))
def test_valid_files_fit_schema(name: str, value: object, validator: Draft202012Validator) -> None:
    assert not list(validator.iter_errors(value)), name


@pytest.mark.parametrize(("name", "value"), values("invalid"))
def test_invalid_files_do_not_fit_schema(name: str, value: object, validator: Draft202012Validator) -> None:
    assert validator.is_valid(value) == (name in BEYOND_A_SCHEMA)


# Readable patterns cannot express addresses without a host, or with a blank in it.
DEPENDENCIES_BEYOND_A_SCHEMA = {"blank", "no-host", "ssh-option", "no-file"}


@pytest.mark.parametrize("file", ["dependencies", "dependency_addresses"])
def test_no_invalid_dependency_fits(file: str, validator: Draft202012Validator) -> None:
    value = yaml.safe_load((FOLDER / f"invalid/{file}.yml").read_bytes())
    found = value.pop("dependencies")
    assert validator.is_valid(value)
    fitting = {name for name, keys in found.items() if validator.is_valid({**value, "dependencies": {name: keys}})}
    assert fitting - {"CMSIS_NN"} == DEPENDENCIES_BEYOND_A_SCHEMA.intersection(found), (
        "CMSIS_NN is only refused because another entry has the same short name"
    )


@pytest.mark.parametrize("key", ["sources", "include-dirs", "compile-options"])
def test_no_invalid_list_item_fits(key: str, validator: Draft202012Validator) -> None:
    value = yaml.safe_load((FOLDER / "invalid/dependency_files.yml").read_bytes())
    parts = value["dependencies"]["cmsis-nn"][key]

    def fits(part: str) -> bool:
        return validator.is_valid({**value, "dependencies": {"x": {"path": "x", key: [part]}}})

    assert [part for part in parts if fits(part)] == {"sources": parts[-1:], "include-dirs": parts[-1:]}.get(
        key, parts[:1]
    )


def test_schema_changes_are_seen_in_review(golden) -> None:
    golden(json.dumps(json_schema(), indent=2) + "\n", "mlfbuild.schema.json")
