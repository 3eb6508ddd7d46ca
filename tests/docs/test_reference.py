"""The pages of docs/reference/ are up to date and complete."""

import re
import sys
from pathlib import Path

import pytest
from tflite.BuiltinOperator import BuiltinOperator

REPOSITORY = Path(__file__).parents[2]
sys.path.insert(0, str(REPOSITORY / "docs/_ext"))

from mlfbuild_reference import PAGES  # noqa: E402
from mlfbuild_reference.lists import LISTS  # noqa: E402

from mlfbuild.cli.app import VERBS, verb_called  # noqa: E402
from mlfbuild.core.errors import INTERRUPTED_EXIT_CODE, MlfError  # noqa: E402
from mlfbuild.native.graph.ops import OPERATORS, operator_class  # noqa: E402 - after the path of the first
from mlfbuild.native.lowering.dispatch import lowering_module  # noqa: E402 - after the path of the first
from mlfbuild.project import json_schema  # noqa: E402

REFERENCE = REPOSITORY / "docs/reference"


@pytest.fixture(scope="module")
def pages() -> dict[str, str]:
    return {name: make() for name, make in PAGES.items()}


@pytest.mark.parametrize("name", PAGES)
def test_the_page_is_up_to_date(pages: dict[str, str], name: str) -> None:
    current = (REFERENCE / name).read_text(encoding="utf-8")
    assert current == pages[name], f"docs/reference/{name} is outdated; run `make generate`"


@pytest.mark.parametrize("name", LISTS)
def test_the_lists_are_up_to_date(name: str) -> None:
    page = (REPOSITORY / "docs" / name).read_text(encoding="utf-8")
    assert page == LISTS[name](page), f"docs/{name} is outdated; run `make generate`"


def test_the_folder_contains_only_generated_pages() -> None:
    assert {path.name for path in REFERENCE.iterdir()} == set(PAGES)


def test_every_operator_of_the_graph_is_lowered() -> None:
    kinds = {name: operator_class(name) for name in OPERATORS}
    assert [name for name, kind in kinds.items() if kind is None or lowering_module(kind) is None] == []


def test_the_coverage_is_that_of_the_schema() -> None:
    page = (REPOSITORY / "docs/operators.md").read_text(encoding="utf-8")
    before, coverage = page.split("## Unsupported operators\n")
    coverage = coverage.split("\n## ")[0]
    marks = {"CUSTOM", "DELEGATE", "PLACEHOLDER_FOR_GREATER_OP_CODES"}
    builtin = {name for name in vars(BuiltinOperator) if name.isupper()} - marks
    builtin = {name for name in builtin if not name.startswith("STABLEHLO_")}
    rows = "".join(line for line in before.splitlines() if line.startswith("|"))
    supported = set(re.findall(r"`(\w+)`", rows)) & builtin
    table = "".join(line for line in coverage.splitlines() if line.startswith("|"))
    assert sorted(re.findall(r"`(\w+)`", table)) == sorted(builtin - supported)
    assert f"has {len(builtin)} built-in operators" in coverage
    assert f"{len(supported)} of them are supported" in coverage


def test_every_key_has_a_type_and_a_meaning(pages: dict[str, str]) -> None:
    schema = json_schema()
    keys = [key for part in (schema, *schema["$defs"].values()) for key in part["properties"]]
    page = pages["project-file.md"]
    rows = re.findall(r"^- `([\w-]+)` \((\S.*?)\): (\S.*)$", page, re.MULTILINE)
    # The keys of a class that another one extends are listed once.
    tables = {each["title"]: each["properties"] for each in schema["$defs"].values()}
    extended = [
        key for base in re.findall(r"^- the keys of \[`([\w-]+)`\]", page, re.MULTILINE) for key in tables[base]
    ]
    assert sorted([*(row[0] for row in rows), *extended]) == sorted(keys)


def test_every_verb_and_option_is_listed(pages: dict[str, str]) -> None:
    text = pages["command-line.md"]
    for name in VERBS:
        verb = verb_called(name)
        section = text.split(f"### `{name}`\n", 1)[1].split("\n### ", 1)[0]
        for parameter in verb.params:
            if parameter.opts[0] in {"-C", "-v", "-q", "--format"}:  # of every verb
                continue
            argument = parameter.param_type_name == "argument"
            spelled = (parameter.metavar or parameter.name.upper()).strip("[].") if argument else parameter.opts[0]
            assert re.search(rf"[ `\[]{re.escape(spelled)}\b", section), f"{name}: {spelled}"
        assert verb.help, name


def test_every_option_has_a_help_text() -> None:
    silent = [
        f"{name} {parameter.opts[0]}"
        for name in VERBS
        for parameter in verb_called(name).params
        if parameter.param_type_name == "option" and not parameter.help
    ]
    assert silent == []


def test_every_exit_code_is_listed(pages: dict[str, str]) -> None:
    errors = {(error.exit_code, error.__name__) for error in MlfError.__subclasses__()}
    codes = re.findall(r"^- (\d+): (.*)$", pages["command-line.md"], re.MULTILINE)
    assert {(int(code), name.strip("`")) for code, names in codes for name in names.split(", ")} == errors
    explained = (REPOSITORY / "docs/troubleshooting.md").read_text(encoding="utf-8").partition("## Exit codes\n")[2]
    listed = re.findall(r"^\| (\d+) \| .", explained.partition("\n## ")[0], re.MULTILINE)
    assert {int(code) for code in listed} == {code for code, _ in errors} | {0, INTERRUPTED_EXIT_CODE}


def test_every_public_cmake_function_is_listed() -> None:
    page = (REPOSITORY / "docs/cmake.md").read_text(encoding="utf-8")
    defined = {
        name
        for folder in ("cmake", "mlfbuild/runtime")
        for path in (REPOSITORY / folder).rglob("*.cmake")
        if path.parent.name != "toolchains"
        for name in re.findall(r"^(?:function|macro)\((mlf\w+)", path.read_text(), re.MULTILINE)
    }
    assert defined >= {"mlfbuild_models", "mlfbuild_tree", "mlf_params_binary"}
    assert {name for name in defined if f"{name}(" not in page} == set()


def test_files_that_the_page_on_architecture_names_exist() -> None:
    text = (REPOSITORY / "docs/architecture.md").read_text(encoding="utf-8")
    named = set(re.findall(r"`([a-z_]+(?:/[a-z0-9_]+)*(?:/|\.py|\.h))`", text))
    assert len(named) > 40
    assert [name for name in named if not any((REPOSITORY / top / name).exists() for top in ("mlfbuild", "."))] == [
        "build/mlf/m4/digits/"
    ]
