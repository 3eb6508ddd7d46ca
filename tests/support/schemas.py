"""JSON Schema validators of the tests."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from jsonschema import Draft202012Validator


def validator(schema: Any) -> Draft202012Validator:
    """Return a validator of ``schema``, which is itself valid."""
    from jsonschema import Draft202012Validator

    Draft202012Validator.check_schema(schema)
    return Draft202012Validator(schema)


def cyclonedx_mistake(text: str) -> object:
    """Return what CycloneDX 1.6 says against a document, ``None`` if it is valid.

    The format of references is checked by the rule of URIs, which is stricter than that of IRIs: see the extra ``test``
    of pyproject.toml.
    """
    from cyclonedx.schema import SchemaVersion
    from cyclonedx.validation.json import JsonStrictValidator
    from jsonschema.validators import Draft7Validator

    formats = Draft7Validator.FORMAT_CHECKER
    assert {"uri-reference", "date-time"} <= formats.checkers.keys()
    formats.checkers["iri-reference"] = formats.checkers["uri-reference"]
    return JsonStrictValidator(SchemaVersion.V1_6).validate_str(text)
