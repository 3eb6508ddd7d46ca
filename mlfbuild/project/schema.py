"""The JSON Schema of the project file, generated from the declarations of the keys."""

from __future__ import annotations

import functools
from typing import Any

from pydantic import TypeAdapter
from pydantic.json_schema import GenerateJsonSchema, JsonSchemaValue
from pydantic_core import core_schema

from mlfbuild.project.specification import Project
from mlfbuild.project.workspace import INCLUDE, Workspace


class _SchemaGenerator(GenerateJsonSchema):
    """Leaves out null, which a project file never holds, and titles, which would repeat the keys."""

    def field_title_should_be_set(self, schema: object) -> bool:  # noqa: ARG002  # pydantic's signature
        return False

    def nullable_schema(self, schema: core_schema.NullableSchema) -> JsonSchemaValue:
        return self.generate_inner(schema["schema"])

    def default_schema(self, schema: core_schema.WithDefaultSchema) -> JsonSchemaValue:
        if isinstance(schema.get("default"), bool):
            # Editors insert and show switches by their default.
            return super().default_schema(schema)
        return self.generate_inner(schema["schema"])  # other defaults are in the words of the description

    def dict_schema(self, schema: core_schema.DictSchema) -> JsonSchemaValue:
        # Names of entries are restricted by patterns, and a name that matches none must not pass.
        return {**super().dict_schema(schema), "additionalProperties": False}


@functools.cache
def json_schema() -> dict[str, Any]:
    """Return the JSON Schema (draft 2020-12) of the project file, for editors and other tools.

    The dictionary is shared by all callers and must not be changed.
    """
    schema, workspace = (
        TypeAdapter(kind).json_schema(by_alias=True, schema_generator=_SchemaGenerator) for kind in (Project, Workspace)
    )
    # A workspace has its own two keys and none of a project.
    both = [key for key in schema["required"] if key in workspace["required"]]
    own = [key for key in schema["required"] if key not in both]
    schema["properties"][INCLUDE] = workspace["properties"][INCLUDE]
    schema["required"] = both
    schema["oneOf"] = [
        {"required": own, "not": {"required": [INCLUDE]}},
        {"required": [INCLUDE], "maxProperties": len(workspace["required"])},
    ]
    return {"$schema": GenerateJsonSchema.schema_dialect, **schema, "title": "mlfbuild.yml"}
