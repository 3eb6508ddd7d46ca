r"""The base of the classes that declare the keys of a project file.

A key is declared once, as a field of a frozen dataclass::

    @dataclass(frozen=True)
    class Budget(Keys):
        \"\"\"Upper limits; a build that exceeds one fails.\"\"\"

        TITLE = "budget"

        flash: Size | None = None
        \"\"\"Bytes of flash: 96 KiB\"\"\"

The field's name, with hyphens, is the key; its type, with the checks in it, decides which values are accepted; its
default makes it optional; the text below it describes it in the JSON Schema and on the reference page.

This one declaration has four views, and none of them repeats it:

- the reader of project files: pydantic takes the types, makes instances, and reports every mistake with its line
- the reader of mlfbuild's own tables, ``plain.read_keys``, which ends at the first mistake and needs no pydantic,
  because importing pydantic takes longer than reading all tables
- the JSON Schema that editors use: pydantic writes it, and ``__get_pydantic_json_schema__`` adds the class's summary
  and the text below each field
- the reference page, which ``make generate`` writes from the schema

The checks are data for the same reason. A type such as ``Size`` is ``Annotated[int, Convert(...), ...]``, and each
check knows how it refuses a value and how a schema expresses it (``checks``, ``units``).

The rules:

1. Values in instances are in base units: bytes, Hz, nanoseconds. ``flash: 96 KiB`` is ``98304``.
2. Any other key is refused, with the nearest known one as a suggestion.
3. Fields with ``DERIVED`` are not keys: the reader fills them in, from the name of the entry, the folder of the project
   or the defaults of other keys. They are absent from all views, and ``fields`` does not return them.
4. Rules between keys are keywords of JSON Schema in ``SCHEMA``, for editors. The reader of the section checks them in
   code, because JSON Schema has no words for messages.
5. A field with ``OTHERS`` collects keys with free names: ``{flash: 96 KiB, dtcm: 64 KiB}``. A check between keys says
   which names exist.
6. The text below a field is read from the source of the class. A class that is made at run time has no text.

For example, ``{"flash": "96 KiB"}`` gives ``Budget(flash=98304)``, ``{"flsh": 1}`` the mistake ``unknown key "flsh"
(did you mean "flash"?)``, and the schema of ``flash`` has the description ``Bytes of flash: 96 KiB``.

Nothing here applies a key: a room that declares one also uses its value, and ``tests/project/test_every_key.py`` lists
for each key what uses it.
"""

from __future__ import annotations

import ast
import dataclasses
import inspect
from collections.abc import Mapping
from itertools import pairwise
from typing import TYPE_CHECKING, Any, ClassVar

if TYPE_CHECKING:
    from pydantic import GetCoreSchemaHandler, GetJsonSchemaHandler
    from pydantic.json_schema import JsonSchemaValue
    from pydantic_core import CoreSchema

DERIVED: Mapping[str, Any] = {"derived": True}
"""Metadata of a field that is not a key."""
OTHERS: Mapping[str, Any] = {"others": True}
"""Metadata of a field, a mapping of names to values, that gets the keys with names which the class does not declare."""
OTHERS_MARK = "[others]"
"""The key under which pydantic gets these, and their mark in the paths of its findings."""


def spelled(name: str) -> str:
    """Return the key of a field: in kebab case.

    For example, ``fetch_cache`` is the key ``fetch-cache``.
    """
    return name.replace("_", "-")


class Keys:
    """A mapping with a fixed set of keys; any other key is refused."""

    TITLE: ClassVar[str]
    """The name of the mapping on the reference page."""
    SCHEMA: ClassVar[Mapping[str, Any]] = {}
    """Rules between the keys, as keywords of JSON Schema."""

    __pydantic_config__: ClassVar[Any] = {"extra": "forbid", "alias_generator": spelled}

    @classmethod
    def fields(cls) -> dict[str, dataclasses.Field[Any]]:
        """Return the fields that are keys, by key.

        They are in the order of declaration, base classes first, which is also that of the reference page.
        """
        fields = dataclasses.fields(cls)  # type: ignore[arg-type]  # every subclass is a dataclass
        return {spelled(field.name): field for field in fields if field.metadata not in (DERIVED, OTHERS)}

    @classmethod
    def _others(cls) -> str:
        """Return the name of the field with ``OTHERS``, empty without one."""
        fields = dataclasses.fields(cls)  # type: ignore[arg-type]  # every subclass is a dataclass
        return next((field.name for field in fields if field.metadata == OTHERS), "")

    @classmethod
    def __get_pydantic_core_schema__(cls, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        # pydantic would take fields with DERIVED for keys as well; they are removed from the arguments that it accepts,
        # and the reader sets them afterwards.
        schema = handler(source)
        whole: Any = handler.resolve_ref_schema(schema)
        arguments = whole["schema"]
        names, others = {field.name for field in cls.fields().values()}, cls._others()
        arguments["fields"] = [field for field in arguments["fields"] if field["name"] in {*names, others}]
        if not others:
            return schema
        for field in arguments["fields"]:
            if field["name"] == others:
                field["validation_alias"] = field["serialization_alias"] = OTHERS_MARK
        from pydantic_core import core_schema

        # Inside the class, so that its JSON Schema stays one definition.
        whole["schema"] = core_schema.no_info_before_validator_function(cls._with_others, arguments)
        return schema

    @classmethod
    def _with_others(cls, value: Any) -> Any:
        """Return a mapping as written with the keys that the class does not declare in one under ``OTHERS_MARK``."""
        if not isinstance(value, dict):
            return value
        known = cls.fields()
        others = {key: each for key, each in value.items() if key not in known}
        return {**{key: each for key, each in value.items() if key in known}, OTHERS_MARK: others}

    @classmethod
    def __get_pydantic_json_schema__(cls, schema: CoreSchema, handler: GetJsonSchemaHandler) -> JsonSchemaValue:
        # A class that occurs twice is a `$ref` into the definitions; the properties are in what it refers to.
        reference = handler(schema)
        found = handler.resolve_ref_schema(reference)
        summary = (inspect.getdoc(cls) or "").partition("\n\n")[0]
        if OTHERS_MARK in found["properties"]:
            free = found["properties"].pop(OTHERS_MARK)
            ((pattern, kind),) = free["patternProperties"].items()
            found.update(additionalProperties=kind, propertyNames={"pattern": pattern})
        found.update(title=cls.TITLE, description=summary, **cls.SCHEMA)
        for name, text in _texts_below_fields(cls).items():
            if spelled(name) in found["properties"]:
                found["properties"][spelled(name)]["description"] = text
        return reference


def _texts_below_fields(cls: type) -> dict[str, str]:
    """Return the text below each field in the source of ``cls`` and of its bases, on one line."""
    # Python drops a text below a field when it compiles the class, so only the source still has it.
    statements = []
    for kind in (each for each in cls.__mro__ if issubclass(each, Keys)):
        (definition,) = ast.parse(inspect.getsource(kind)).body
        assert isinstance(definition, ast.ClassDef)
        statements += definition.body
    found = {}
    for field, text in pairwise(statements):
        if isinstance(field, ast.AnnAssign) and isinstance(field.target, ast.Name) and isinstance(text, ast.Expr):
            assert isinstance(text.value, ast.Constant)
            found[field.target.id] = " ".join(str(text.value.value).split())
    return found
