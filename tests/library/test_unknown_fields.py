"""Fields of the metadata that the format does not define: each stays in its place, or in the key ``mlfbuild``."""

import json
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from mlfbuild.archive import archive_files, convert, read_files
from mlfbuild.archive.layout import moved_fields
from mlfbuild.core.errors import InputFileError
from mlfbuild.library import DeviceContext, Library, UnknownField
from support.errors import raises
from support.libraries import native_module
from support.old_archives import model_archive, operator_archive
from support.random_libraries import NETWORK

Files = dict[str, bytes]


def edited(files: Files, edit: Callable[[Any], object]) -> Library:
    """Return the library of ``files`` after ``edit`` of its metadata."""
    document = json.loads(files["metadata.json"])
    edit(document)
    return read_files({**files, "metadata.json": json.dumps(document).encode()}, "a.tar")


def module_of(document: Any) -> Any:
    return document["modules"]["add"] if "modules" in document else document


def metadata(library: Library, version: int) -> Any:
    return json.loads(bytes(archive_files(library, version)["metadata.json"]))


def add_everywhere(document: Any) -> None:
    """Add a field to every object of a full model for the graph executor."""
    module = module_of(document)
    functions = module["memory"]["functions"]
    module["a/b"] = [1, {"z": None, "y": 0.5}]
    module["memory"]["bank"] = "sram"
    functions["planner"] = "greedy"
    functions["main"][0]["alignment"] = 16
    functions["operator_functions"][0]["cycles"] = 120
    functions["operator_functions"][0]["workspace"][0]["pool"] = "p"
    module["memory"]["sids"][2]["scope"] = "global"
    module["external_dependencies"] = [
        {"short_name": "nn", "url": "x", "url_type": "path", "version_spec": "", "licence": "MIT"}
    ]
    module["mlfbuild"] = {"version": 1, "reviewer": "ada"}


PLACES = (
    "/a~1b", "/memory/bank", "/memory/functions/main/0/alignment", "/memory/functions/operator_functions/0/cycles",
    "/memory/functions/operator_functions/0/workspace/0/pool", "/memory/functions/planner", "/memory/sids/2/scope",
    "/mlfbuild/reviewer",
)  # fmt: skip


@pytest.mark.parametrize("version", range(2, 8))
def test_a_field_of_every_object_is_read(version: int) -> None:
    (module,) = edited(model_archive(version), add_everywhere).modules
    assert tuple(field.place for field in module.unknown) == PLACES
    assert module.unknown[0].value == '[1, {"y": 0.5, "z": null}]'
    assert module.external_dependencies[0].unknown == (UnknownField("/licence", '"MIT"'),)


def test_fields_keep_their_places_in_later_versions() -> None:
    library = edited(model_archive(2), add_everywhere)
    module = module_of(metadata(library, 7))
    expected = json.loads(model_archive(7)["metadata.json"])
    add_everywhere(expected)
    functions = module_of(expected)["memory"]["functions"]
    functions["operator_functions"][0]["function_name"] = "fused_cast_multiply_add"
    assert module["memory"] == module_of(expected)["memory"]
    assert module["external_dependencies"] == module_of(expected)["external_dependencies"]
    assert module["a/b"] == module_of(expected)["a/b"]


def test_fields_without_a_place_are_in_the_key_of_mlfbuild() -> None:
    library = edited(model_archive(7), add_everywhere)
    module = metadata(library, 1)
    kept = module["mlfbuild"]["unknown"]
    assert kept["/memory/functions/main/0/alignment"] == 16
    assert set(kept) == {place for place in PLACES if place.startswith("/memory") and "sids" not in place}
    assert (module["memory"][2]["scope"], module["a/b"][0], module["mlfbuild"]["reviewer"]) == ("global", 1, "ada")
    assert moved_fields(library, 1) == tuple(sorted(kept)) and moved_fields(library, 6) == ()
    assert read_files(archive_files(library, 1), "a.tar") == convert(library, 1)


def test_fields_of_tensors_stay_with_every_device() -> None:
    def add(document: Any) -> None:
        main = module_of(document)["memory"]["functions"]["main"]
        main[0]["inputs"]["a"]["layout"] = "NHWC"
        main.append({**main[0], "device": 12})

    library = edited(model_archive(7), add)
    (module,) = library.modules
    assert module.unknown == (UnknownField("/memory/functions/main/0/inputs/a/layout", '"NHWC"'),)
    mains = module_of(metadata(library, 7))["memory"]["functions"]["main"]
    assert [entry["inputs"]["a"]["layout"] for entry in mains] == ["NHWC", "NHWC"]
    assert moved_fields(library, 6) == ("/memory/functions/main/0/inputs/a/layout",)


def test_other_inputs_of_a_second_device_are_kept() -> None:
    def add(document: Any) -> None:
        main = module_of(document)["memory"]["functions"]["main"]
        main.append({**main[0], "device": 12, "inputs": {"c": {"size": 1, "dtype": "int8"}}})

    (module,) = edited(model_archive(7), add).modules
    assert [field.place for field in module.unknown] == ["/memory/functions/main/1/inputs"]


def test_fields_of_an_operator() -> None:
    def add(document: Any) -> None:
        document["board"] = "mps2"
        document["memory"]["add"][1]["scope"] = "global"

    library = edited(operator_archive(7), add)
    assert [field.place for field in library.modules[0].unknown] == ["/board", "/memory/add/1/scope"]
    for version in range(4, 8):
        document = metadata(library, version)
        assert (document["board"], document["memory"]["add"][1]["scope"]) == ("mps2", "global")
        assert "mlfbuild" not in document


def test_fields_beside_modules() -> None:
    library = edited(model_archive(7), lambda document: document.update(tool={"name": "x"}, mlfbuild=1))
    assert [field.place for field in library.unknown] == ["/mlfbuild", "/tool"]
    assert metadata(library, 7)["tool"] == {"name": "x"}
    older = metadata(library, 5)
    assert "tool" not in older
    assert older["mlfbuild"]["archive"] == {"/tool": {"name": "x"}, "/mlfbuild": 1}
    assert archive_files(read_files(archive_files(library, 5), "a.tar")) == archive_files(library)


def test_another_version_of_the_extension_is_kept_unchanged() -> None:
    newer = {"version": 2, "inputs": "in a shape to come", "depth": [[1]]}
    library = edited(model_archive(5, "aot"), lambda document: document.update(mlfbuild=newer))
    assert [field.place for field in library.modules[0].unknown] == ["/mlfbuild"]
    assert metadata(library, 4)["mlfbuild"] == newer
    kept = module_of(metadata(library, 1))["mlfbuild"]  # version 1 has facts of its own in the key
    assert (kept["version"], kept["unknown"]) == (1, {"/mlfbuild": newer})
    assert archive_files(read_files(archive_files(library, 1), "a.tar")) == archive_files(library)


def test_a_different_model_name_is_kept() -> None:
    library = edited(model_archive(7), lambda document: module_of(document).update(model_name="old"))
    assert library.modules[0].unknown == (UnknownField("/model_name", '"old"'),)
    module = module_of(metadata(library, 7))
    assert (module["model_name"], module["mlfbuild"]["unknown"]) == ("add", {"/model_name": "old"})


def test_fields_inside_the_extension_are_kept() -> None:
    library = Library((replace(native_module(), network=NETWORK),))
    document = json.loads(bytes(archive_files(library)["metadata.json"]))
    key = document["modules"]["tiny"]["mlfbuild"]
    key["network"]["tensors"][0]["colour"] = "red"
    key["inputs"][0]["unit"] = "g"
    files = {**archive_files(library), "metadata.json": json.dumps(document).encode()}
    (module,) = read_files(files, "a.tar").modules
    places = ("/mlfbuild/inputs/0/unit", "/mlfbuild/network/tensors/0/colour")
    assert tuple(field.place for field in module.unknown) == places
    for version in range(1, 8):
        again = read_files(archive_files(Library((module,)), version), "a.tar")
        assert again.modules[0].unknown == module.unknown and again.modules[0].network == module.network


def test_contexts_of_the_first_rfc() -> None:
    context = {
        "device_type": 12, "device_id": 1, "compiler": "ethos-u", "config": {"macs": [128, 256], "a": {}},
        "target": "ethos-u -mcpu=u55", "queue": 3,
    }  # fmt: skip
    library = edited(model_archive(1), lambda document: document.update(contexts=[context]))
    (module,) = library.modules
    config = '{"a": {}, "macs": [128, 256]}'
    assert module.contexts == (DeviceContext("12", 1, "ethos-u", config, "ethos-u -mcpu=u55"),)
    assert module.unknown == (UnknownField("/mlfbuild/contexts/0/queue", "3"),)
    for version in range(1, 8):
        assert module_of(metadata(library, version))["mlfbuild"]["contexts"] == [
            {**{key: value for key, value in context.items() if key != "queue"}, "device_type": "12"}
        ]
        assert read_files(archive_files(library, version), "a.tar").modules[0].contexts == module.contexts


def test_values_of_another_type_in_contexts_are_unknown_fields() -> None:
    context = {"device_type": "cpu", "compiler": ["x"], "target": {"kind": "c"}, "config": None}
    (module,) = edited(model_archive(1), lambda document: document.update(contexts=[context])).modules
    assert module.contexts == (DeviceContext("cpu"),)
    found = {field.place.rpartition("/")[2]: json.loads(field.value) for field in module.unknown}
    assert found == {"compiler": ["x"], "target": {"kind": "c"}, "config": None}


# Untrusted archives


def nested(depth: int) -> Any:
    value: Any = 1
    for _ in range(depth):
        value = [value]
    return value


def refusal(edit: Callable[[Any], object]) -> tuple[str, str]:
    with pytest.raises(InputFileError) as caught:
        edited(model_archive(5), edit)
    return caught.value.code, caught.value.place.removeprefix("a.tar: metadata.json: ")


def test_unknown_fields_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    deep = ("metadata-unknown-too-large", "vendor")
    assert refusal(lambda document: document.update(vendor=nested(33))) == deep
    assert edited(model_archive(5), lambda document: document.update(vendor=nested(32)))
    monkeypatch.setattr("mlfbuild.library.metadata.unknown.MOST", 1000)
    long = {"x" * 400: {"dtype": "int8", "size": 1, "a": 1, "b": 2, "c": 3}}  # each place contains the name
    with raises(InputFileError, "metadata-unknown-too-large"):
        edited(model_archive(7), lambda d: module_of(d)["memory"]["functions"]["main"][0].update(inputs=long))


def test_unknown_fields_of_all_modules_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("mlfbuild.library.metadata.read.MOST", 1000)

    def add(document: Any) -> None:
        module_of(document)["vendor"] = "x" * 600
        document["modules"]["b"] = document["modules"]["add"]

    with raises(InputFileError, "metadata-unknown-too-large", at="a.tar: metadata.json: modules.b"):
        edited({**model_archive(7), "parameters/b.params": model_archive(7)["parameters/add.params"]}, add)


def test_numbers_without_json_text_are_refused() -> None:
    text = model_archive(5)["metadata.json"].replace(b'"version"', b'"vendor": [1e999], "version"')
    with raises(InputFileError, "json-value-invalid", at="a.tar: metadata.json: vendor"):
        read_files({**model_archive(5), "metadata.json": text}, "a.tar")


def test_a_field_in_both_places_must_have_one_value() -> None:
    both = {"version": 1, "unknown": {"/vendor": 1}}
    assert edited(model_archive(5), lambda document: document.update(vendor=1, mlfbuild=both)).modules[0].unknown
    found = refusal(lambda document: document.update(vendor=2, mlfbuild=both))
    assert found == ("metadata-contradiction", "mlfbuild")
