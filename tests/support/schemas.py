"""JSON Schema validators of the tests."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from jsonschema import Draft202012Validator


def validator(schema: Any) -> Draft202012Validator:
    """Return a validator of ``schema``, which is itself valid."""
    # The import builds the grammars of 39 formats, for two seconds, and each test process collects all test files.
    from jsonschema import Draft202012Validator

    Draft202012Validator.check_schema(schema)
    return Draft202012Validator(schema)
