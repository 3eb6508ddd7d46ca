"""`mlfbuild init --template DIR|URL`: templates of users, every mistake in them, and what they must not do."""

import json
import os
from collections.abc import Mapping
from pathlib import Path

import pytest

from mlfbuild.usecases.init import rendering
from support import warm
from support.command import Folder
from support.git_remote import Remote, git

MANIFEST = b"""\
mlfbuild-template: 1
description: Firmware that reports over a UART
mlfbuild: "0.1"
board: mps2-an385
variables:
  period: {help: Seconds between two runs, default: "10", pattern: "[1-9][0-9]*"}
  uart: {help: UART of the report, choices: [uart0, uart1]}
omit: [src/main.c]
commands: {run: ./flash.sh}
"""
APP = b"""\
/* {{ project }} runs {{ model }} every {{ period }} s, and reports on {{ uart }}. */
{% for header in headers %}
#include "{{ header }}"
{% endfor %}
int main(void)
{
{% for module in modules %}
    (void){{ module.function }};
{% endfor %}
    return 0;
}
"""
PROJECT = b"""\
mlfbuild: 1
targets: {here: {cpu: {{ cpu }}, board: {{ board }}}}
models: {net: {source: {{ source }}}}
firmware: {app: {sources: [src/app.c]}}
"""
FILES = {
    "mlfbuild-template.yml": MANIFEST,
    "src/app.c.jinja": APP,
    "mlfbuild.yml.jinja": PROJECT,
    "raw/braces.txt": b"{{ kept }}\r\n",
    "flash.sh": b"#!/bin/sh\n",
}


def write_template(folder: Path, files: Mapping[str, bytes]) -> None:
    for name, content in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)


@pytest.fixture
def desk(folder: Folder) -> Folder:
    write_template(folder.root / "t", FILES)
    (folder.root / "t/flash.sh").chmod(0o755)
    (folder.root / "t/.git").mkdir()
    (folder.root / "t/.git/config").touch()
    return folder


def refused(desk: Folder, *words: str) -> list[tuple[str, str]]:
    """Return code and place of each mistake; nothing is written."""
    ended = desk.run("init", "new", "--template", "t", *words, "--format", "json", status=2)
    assert not (desk.root / "new").exists()
    events = [json.loads(line) for line in ended.err.splitlines()]
    problems = [event for event in events if event.get("code")]
    found = problems[-1].get("problems") or problems
    return [(each["code"], each["place"]) for each in found]


def test_a_folder_with_a_template(desk: Folder) -> None:
    ended = desk.run("init", "new", "--template", "t", "--set", "uart=uart1", "--format", "json", status=0)
    new = desk.root / "new"
    files = {path.relative_to(new).as_posix() for path in new.rglob("*") if path.is_file()}
    assert files == {
        ".gitignore", "README.md", "flash.sh", "mlfbuild.schema.json", "mlfbuild.yml", "models/tones.tflite",
        "raw/braces.txt", "src/app.c", "src/sample.h", "tests/tones.npz",
    }  # fmt: skip
    assert "/* new runs tones every 10 s, and reports on uart1. */" in (new / "src/app.c").read_text()
    assert "(void)tvmgen_tones_run;" in (new / "src/app.c").read_text()
    assert "board: mps2-an385" in (new / "mlfbuild.yml").read_text()
    assert (new / "raw/braces.txt").read_bytes() == FILES["raw/braces.txt"]
    assert os.access(new / "flash.sh", os.X_OK)
    assert not os.access(new / "raw/braces.txt", os.X_OK)
    assert ended.json["commands"]["run"] == "./flash.sh"
    assert desk.run("-C", "new", "check").status == 0


def test_existing_files_are_kept(desk: Folder) -> None:
    desk.write("new/flash.sh", b"mine\n")
    ended = desk.run("init", "new", "--template", "t", "--set", "uart=uart1", "--format", "json")
    assert (ended.status, ended.error["code"]) == (6, "project-file-exists")
    assert [path.name for path in (desk.root / "new").iterdir()] == ["flash.sh"]
    assert (desk.root / "new/flash.sh").read_bytes() == b"mine\n"


@pytest.mark.parametrize(
    ("words", "code"),
    [
        ((), "template-variable-missing"),
        (("--set", "uart=uart9"), "template-value-invalid"),
        (("--set", "uart=uart1", "--set", "period=0"), "template-value-invalid"),
        (("--set", "uarts=uart1"), "unknown-template-variable"),
        (("--set", "uart"), "setting-invalid"),
        (("--set", "uart=uart0", "--set", "uart=uart1"), "setting-invalid"),
    ],
)
def test_values_of_variables(desk: Folder, words: tuple[str, ...], code: str) -> None:
    assert [found for found, _ in refused(desk, *words)] == [code]


def test_only_templates_of_users_have_variables(desk: Folder) -> None:
    ended = desk.run("init", "new", "--set", "uart=uart1", "--format", "json")
    assert (ended.status, ended.error["code"]) == (2, "option-needs-another")
    ended = desk.run("init", "--cmake-only", "--set", "uart=uart1", "--format", "json")
    assert (ended.status, ended.error["code"]) == (2, "options-exclude-each-other")


def test_every_mistake_of_the_template_file_at_once(desk: Folder) -> None:
    desk.write("t/mlfbuild-template.yml", b"""\
mlfbuild-template: 1
boerd: x
variables:
  model: {default: a}
  Big: {}
  n: {default: "x", pattern: "[0-9"}
  m: {default: [1]}
omit: [../x, /y]
commands: {fly: x}
""")  # fmt: skip
    desk.write("t/broken.txt.jinja", b"\n{% if x %}")
    assert refused(desk) == [
        ("unknown-key", "t/mlfbuild-template.yml:2:1: boerd"),
        ("variable-name-taken", "t/mlfbuild-template.yml:4:3: variables.model"),
        ("invalid-name", "t/mlfbuild-template.yml:5:3: variables.Big"),
        ("invalid-pattern", "t/mlfbuild-template.yml:6:30: variables.n.pattern"),
        ("wrong-type", "t/mlfbuild-template.yml:7:16: variables.m.default"),
        ("path-leads-out", "t/mlfbuild-template.yml:8:8: omit[0]"),
        ("path-leads-out", "t/mlfbuild-template.yml:8:14: omit[1]"),
        ("unknown-purpose", "t/mlfbuild-template.yml:9:12: commands.fly"),
        ("template-syntax", "t/broken.txt.jinja:2"),
    ]


def test_every_mistake_of_the_files_at_once(desk: Folder) -> None:
    desk.write("t/a.c.jinja", b'\n{{ mdoel }}\n{% include "b" %}')
    desk.write("t/a.c", b"")
    desk.write("t/latin.jinja", b"\xff")
    desk.write("t/sub/.git/hooks/post-commit", b"")
    (desk.root / "t/link").symlink_to("/etc/passwd")
    os.mkfifo(desk.root / "t/pipe")
    desk.write("t/one/B.c", b"")
    desk.write("t/one/b.c", b"")
    assert refused(desk) == [
        ("template-name-twice", "t/a.c.jinja"),
        ("template-unknown-name", "t/a.c.jinja:2"),
        ("template-includes", "t/a.c.jinja:3"),
        ("template-not-utf8", "t/latin.jinja"),
        ("template-not-a-file", "t/link"),
        ("template-name-twice", "t/one/b.c"),
        ("template-not-a-file", "t/pipe"),
        *[("template-name-refused", f"t/sub/.git{rest}") for rest in ("", "/hooks", "/hooks/post-commit")],
    ]


@pytest.mark.parametrize("name", [".jinja", "...jinja", ".git.jinja", "sub/.GIT.jinja"])
def test_a_name_that_is_refused_without_its_suffix(desk: Folder, name: str) -> None:
    desk.write(f"t/{name}", b"gitdir: elsewhere\n")
    assert refused(desk) == [("template-name-refused", f"t/{name}")]


@pytest.mark.parametrize("name", ["src.jinja", "mlfbuild.yml/more"])
def test_a_file_in_the_place_of_a_folder(desk: Folder, name: str) -> None:
    (desk.root / "t/mlfbuild.yml.jinja").unlink(missing_ok=True)
    desk.write(f"t/{name}", b"")
    assert refused(desk, "--set", "uart=uart1") == [("template-name-refused", "t")]


@pytest.mark.parametrize(
    ("text", "line"),
    [
        (b"\n{{ 1 | nope }}", ":2"),
        (b"\n{{ 1 is nope }}", ":2"),
        (b"{% block a %}{% endblock %}{% block a %}{% endblock %}", ":1"),
        (b"{{ " + b"1" * 5000 + b" }}", ""),
    ],
)
def test_a_text_that_no_values_can_complete(desk: Folder, text: bytes, line: str) -> None:
    desk.write("t/odd.txt.jinja", text)
    assert refused(desk) == [("template-syntax", f"t/odd.txt.jinja{line}")]


@pytest.mark.parametrize(
    ("key", "code"),
    [
        (b"mlfbuild-template: 2\n", "template-version"),
        (b'mlfbuild-template: 1\nmlfbuild: "99.1"\n', "template-needs-newer"),
        (b"mlfbuild-template: 1\nmlfbuild: latest\n", "invalid-release"),
        (b"mlfbuild-template: 1\nboard: nucleo\n", "unknown-board"),
        (b"mlfbuild-template: 1\nvariables: {a: {default: x, choices: [y]}}\n", "value-not-a-choice"),
        (b"mlfbuild-template: 1\nomit: [src/mian.c]\n", "omitted-file-unknown"),
        (b"description: none\n", "missing-key"),
    ],
)
def test_a_mistake_in_a_key(desk: Folder, key: bytes, code: str) -> None:
    write_template(desk.root / "u", {"mlfbuild-template.yml": key})
    ended = desk.run("init", "new", "--template", "u", "--format", "json", status=2)
    assert code in ended.err
    assert not (desk.root / "new").exists()


@pytest.mark.parametrize(
    "text",
    [
        b"{{ ''.__class__.__mro__[1].__subclasses__() }}",
        b"{{ modules.__init__.__globals__ }}",
        b"{{ 'x' * 100000000000 }}",
        b"{{ 9 ** 999999 }}",
        b"{% for a in range(100000) %}{% for b in range(100) %}0123456789{% endfor %}{% endfor %}",
        b"{{ range(1000000) | length }}",
        b"{{ modules[7].name }}",
        b"{{ modules[0].nothing }}",
        b"{{ 1 / 0 }}",
        b'{{ "\\ud800" }}',
        b"{% for a in [1] %}" * 25 + b"{% endfor %}" * 25,
        b"{{ cycler.__init__.__globals__.os.popen('touch owned') }}",
    ],
)
def test_a_file_runs_no_code_and_has_a_limit(desk: Folder, text: bytes) -> None:
    desk.write("t/evil.txt.jinja", text)
    assert refused(desk, "--set", "uart=uart1") == [("template-not-rendered", "t/evil.txt.jinja")]
    assert not (desk.root / "owned").exists()


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("t/loops.txt.jinja", b"{% for a in range(90000) %}{% for b in range(90000) %}{% endfor %}{% endfor %}"),
        ("t/wide.txt.jinja", b"{{ period|center(4000000000) }}"),
        ("t/constant.txt.jinja", b"{{ 'x'|center(4000000000) }}"),
    ],
)
def test_a_file_that_takes_too_much_is_stopped(
    desk: Folder, monkeypatch: pytest.MonkeyPatch, name: str, content: bytes
) -> None:
    monkeypatch.setattr(rendering, "SECONDS", 1)
    desk.write(name, content)
    ((code, place),) = refused(desk, "--set", "uart=uart1")
    assert (code, place) == ("template-too-expensive", name)


def test_a_pattern_that_takes_too_long_is_stopped(desk: Folder, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rendering, "SECONDS", 1)
    slow = MANIFEST.replace(b'"[1-9][0-9]*"', b'"(1|11)+x|10"')
    desk.write("t/mlfbuild-template.yml", slow)
    ones = f"period={'1' * 60}"
    assert refused(desk, "--set", "uart=uart1", "--set", ones) == [("template-too-expensive", "--set period")]
    desk.write("t/mlfbuild-template.yml", slow.replace(b'default: "10"', b'default: "' + b"1" * 60 + b'"'))
    assert refused(desk, "--set", "uart=uart1") == [("template-too-expensive", "t/mlfbuild-template.yml")]


def test_a_project_file_of_the_template_is_checked(desk: Folder) -> None:
    desk.write("t/mlfbuild.yml.jinja", PROJECT.replace(b"cpu: {{ cpu }}", b"cpu: cortex-m44"))
    ended = desk.run("init", "new", "--template", "t", "--set", "uart=uart1")
    assert (ended.status, (desk.root / "new").exists()) == (2, False)
    assert ended.err.startswith("t: mlfbuild.yml:2:23: targets.here.cpu: unknown cpu")
    assert ".mlfbuild-init" not in ended.err


@pytest.mark.parametrize(
    ("name", "status", "code"),
    [
        ("nothing/here", 2, "template-without-file"),
        (".", 2, "template-without-file"),
        ("sconns", 2, "unknown-template"),
    ],
)
def test_no_template(desk: Folder, name: str, status: int, code: str) -> None:
    ended = desk.run("init", "new", "--template", name, "--format", "json")
    assert (ended.status, ended.error["code"]) == (status, code)


def test_a_repository_with_a_template(desk: Folder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MLFBUILD_CACHE", str(tmp_path / "cache"))
    (tmp_path / "remote").mkdir()
    remote = Remote(tmp_path / "remote")
    git(remote.folder, "symbolic-ref", "HEAD", "refs/heads/main")
    first = remote.commit(FILES, modes={"flash.sh": "100755"})
    second = remote.commit({**FILES, "new.txt": b"later\n"})
    for address, commit, there in ((remote.url, second, True), (f"{remote.url}@{first}", first, False)):
        ended = desk.run("init", commit, "--template", address, "--set", "uart=uart0", "--format", "json", status=0)
        assert commit in ended.json["notes"][0]
        assert (desk.root / commit / "new.txt").is_file() is there
        assert os.access(desk.root / commit / "flash.sh", os.X_OK) is not there
    ended = desk.run("init", "new", "--template", f"{remote.url}@v9", "--format", "json")
    assert (ended.status, ended.error["code"]) == (2, "git-version-unknown")


def test_addresses_that_are_refused(desk: Folder) -> None:
    ended = desk.run("init", "new", "--template", "ext::sh -c id@v1", "--format", "json")
    assert (ended.status, ended.error["code"]) == (2, "git-address-invalid")
    environment = {**os.environ, "PATH": "/nowhere", "MLFBUILD_CACHE": str(desk.root / "cache")}
    done = warm.run("mlfbuild", "init", "new", "--template", "https://x.invalid/y.git", cwd=desk.root, env=environment)
    assert done.returncode == 3, done.stderr
