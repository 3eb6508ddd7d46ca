"""``compiler: command``: the archive that a program writes, and programs that fail."""

import os
import re
import signal
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import TypeVar

import pytest

from mlfbuild.archive import pack_archive, write_archive
from mlfbuild.archive.tar import pack
from mlfbuild.archive.validate import CODES
from mlfbuild.compilers import compiler_called
from mlfbuild.core.errors import InputFileError, MlfError, ProcessFailedError, ToolNotFoundError, UsageError
from mlfbuild.library import CompileRequest, CompilerProgram, Library
from mlfbuild.library.keys import Placement
from mlfbuild.targets import CPUS
from support.command import INTERRUPTED
from support.errors import raises
from support.exporters import runs, write_exporter
from support.flawed_archives import FLAWS, Flaw
from support.libraries import graph_library, native_library
from support.processes import is_running, wait_for

COMMAND = compiler_called("command")
PYTHON = sys.executable

E = TypeVar("E", bound=MlfError)


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A project's folder with spaces in its name, an exporter and a model that it exports."""
    root = tmp_path / "my project"
    write_exporter(root)
    write_archive(native_library("tiny"), root / "models" / "tiny.h5")
    return root


def request(root: Path, *command: str, source: str = "models/tiny.h5", cpu: str = "cortex-m4") -> CompileRequest:
    words = command or (PYTHON, "tools/export.py", "{source}", "--cpu={cpu}", "--name", "{name}", "-o", "{output}")
    return CompileRequest("kws", root / source, CPUS[cpu], program=CompilerProgram(root, words))


def script(root: Path, code: str) -> CompileRequest:
    """Return a request for a command that runs Python ``code``; ``sys.argv[1]`` is the archive to write."""
    (root / "export.py").write_text(f"import os, sys\n{code}\n")
    return request(root, PYTHON, "export.py", "{output}")


def failure(root: Path, request: CompileRequest, kind: type[E]) -> E:
    """Return the error of compiling ``request``, which leaves no temporary folder and has no absolute path."""
    before = set(Path(os.environ["TMPDIR"]).iterdir())
    with pytest.raises(kind) as caught:
        COMMAND.compile(request)
    assert set(Path(os.environ["TMPDIR"]).iterdir()) == before
    assert "Traceback" not in str(caught.value)
    caught.value.place = caught.value.place.replace(PYTHON, "python").replace(str(root), "<root>")
    return caught.value


@pytest.fixture(autouse=True)
def _temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "tmp"
    folder.mkdir()
    monkeypatch.setenv("TMPDIR", str(folder))
    monkeypatch.setattr("tempfile.tempdir", None)


# What it makes -------------------------------------------------------------------------------------------------------


def test_library_is_that_of_the_archive(root: Path) -> None:
    assert COMMAND.compile(request(root)) == native_library("tiny")
    assert runs(root) == ["kws cortex-m4 models/tiny.h5"]
    assert not list(Path(os.environ["TMPDIR"]).iterdir())


def test_runs_that_differ_in_dates_order_and_owners_give_one_archive(root: Path) -> None:
    first, second = (pack_archive(COMMAND.compile(request(root))) for _ in range(2))
    assert first == second
    assert len(runs(root)) == 2
    assert b"2026-01" not in first


def test_requirements_are_recorded(root: Path, shared: Path) -> None:
    archive = shared / "archives/kws_int8-cmsisnn_m4.tar"
    (module,) = COMMAND.compile(request(root, "cp", str(archive), "{output}")).modules
    assert [(item.short_name, item.url_type, item.version_spec) for item in module.external_dependencies] == [
        ("tvm_standalone_crt", "mlf_path", "0.14.0"), ("cmsis-nn", "git", "v4.1.0"),
    ]  # fmt: skip


def test_archive_of_an_older_version_is_converted(root: Path) -> None:
    (root / "models/tiny.h5").write_bytes(pack_archive(native_library("tiny"), 5))
    command = ("cp", "{source}", "{output}")
    assert COMMAND.compile(request(root, *command)).version == 7


def test_program_next_to_the_project_file_needs_no_path(root: Path) -> None:
    program = root / "tools" / "copy"
    program.write_text('#!/bin/sh\necho "$PWD" >&2\nexec cp "$1" "$2"\n')
    program.chmod(0o755)
    assert COMMAND.compile(request(root, "tools/copy", "{source}", "{output}")) == native_library("tiny")


def test_model_file_elsewhere_has_an_absolute_path(root: Path) -> None:
    outside = root.parent / "outside.bin"
    outside.write_bytes((root / "models/tiny.h5").read_bytes())
    COMMAND.compile(request(root, source="../outside.bin"))
    assert runs(root) == [f"kws cortex-m4 {root}/../outside.bin"]


def test_name_that_looks_like_an_option_is_no_option(root: Path) -> None:
    (root / "-rf").write_bytes((root / "models/tiny.h5").read_bytes())
    assert COMMAND.compile(request(root, "cp", "{source}", "{output}", source="-rf")) == native_library("tiny")


def test_remaining_processes_are_killed_when_the_program_ends(root: Path) -> None:
    (root / "copy.sh").write_text('(sleep 600; touch ended) & echo $! > "pid"; cp "$1" "$2"\n')
    COMMAND.compile(request(root, "sh", "copy.sh", "{source}", "{output}"))
    wait_for(lambda: not is_running(int((root / "pid").read_text())))
    assert not (root / "ended").exists()


# Programs that fail --------------------------------------------------------------------------------------------------


def test_failed_program_is_reported_with_its_output(root: Path) -> None:
    error = failure(root, script(root, "print('reading the graph'); sys.exit('no operator Foo')"), ProcessFailedError)
    assert (error.code, error.place) == ("program-failed", "kws: python export.py {output}")
    assert error.output.strip() == "reading the graph\nno operator Foo"


def test_killed_program_is_reported_with_the_signal(root: Path) -> None:
    error = failure(root, script(root, "os.kill(os.getpid(), 11)"), ProcessFailedError)
    assert (error.code, error.reason) == ("program-failed", "was killed by SIGSEGV")


def test_end_of_long_output_is_shown(root: Path) -> None:
    error = failure(root, script(root, "print('x' * 500_000 + 'the end'); sys.exit(3)"), ProcessFailedError)
    assert error.output.startswith("...x") and error.output.rstrip().endswith("xthe end")
    assert len(str(error)) < 70_000


@pytest.mark.parametrize(
    ("words", "code"),
    [
        (("no-such-exporter", "{output}"), "program-not-found"),
        (("./no/such", "{output}"), "program-not-found"),
        (("tools/export.py", "{output}"), "program-not-executable"),
    ],
)
def test_missing_program_is_reported(root: Path, words: tuple[str, ...], code: str) -> None:
    error = failure(root, request(root, *words), ToolNotFoundError)
    assert (error.code, error.place) == (code, f"kws: {' '.join(words)}: {words[0]}")
    assert ToolNotFoundError.exit_code == 3


def test_program_that_cannot_be_started_is_reported(root: Path) -> None:
    (root / "broken").write_text("#!/no/such/interpreter\n")
    (root / "broken").chmod(0o755)
    error = failure(root, request(root, "./broken", "{output}"), ToolNotFoundError)
    assert (error.code, error.place) == ("program-cannot-start", "kws: ./broken {output}")


# Archives that are none ----------------------------------------------------------------------------------------------


def test_missing_archive_is_reported_with_the_output(root: Path) -> None:
    error = failure(root, script(root, "print('wrote module.tar')"), ProcessFailedError)
    assert (error.code, error.output.strip()) == ("archive-not-written", "wrote module.tar")


def test_folder_in_place_of_the_archive_is_rejected(root: Path) -> None:
    error = failure(root, script(root, "os.mkdir(sys.argv[1])"), ProcessFailedError)
    assert error.code == "archive-not-written" and "a folder" in error.reason


def test_file_that_is_not_an_archive_is_rejected(root: Path) -> None:
    error = failure(root, script(root, "open(sys.argv[1], 'w').write('hello' * 500)"), InputFileError)
    assert error.code == "archive-not-tar" and error.place.endswith(": its archive")


def test_truncated_archive_is_rejected(root: Path) -> None:
    cut = "data = open('models/tiny.h5', 'rb').read()\nopen(sys.argv[1], 'wb').write(data[:len(data) // 2])"
    message = str(failure(root, script(root, cut), InputFileError))
    assert re.search(r": its archive: .*(ends|cut)", message)


def test_unsafe_archive_is_rejected(root: Path) -> None:
    unsafe = (
        "import tarfile\nwith tarfile.open(sys.argv[1], 'w') as tar:\n"
        " tar.addfile(tarfile.TarInfo('../../metadata.json'))"
    )
    message = str(failure(root, script(root, unsafe), InputFileError))
    assert "'../../metadata.json'" in message
    assert "; pack it again" in message


@pytest.mark.parametrize("flaw", FLAWS[:8], ids=lambda flaw: flaw.code)
def test_archive_that_breaks_a_rule_is_rejected_but_not_for_a_warning(root: Path, flaw: Flaw) -> None:
    (root / "models/tiny.h5").write_bytes(b"".join(pack(flaw.files(), 0)))
    copy = request(root, "cp", "{source}", "{output}", cpu="host")
    code = CODES[flaw.code]
    if code.severity == "error":
        error = failure(root, copy, InputFileError)
        assert error.code == "exported-archive-invalid"
        assert error.place.endswith(f"its archive: {flaw.place}")
        assert error.hint == code.advice
    else:
        assert COMMAND.compile(copy).modules


def test_executor_must_be_that_of_the_archive(root: Path) -> None:
    write_archive(graph_library("net"), root / "models/tiny.h5")
    assert COMMAND.compile(replace(request(root), executor="graph")).modules[0].executor == "graph"
    error = failure(root, replace(request(root), executor="aot"), UsageError)
    assert (error.code, error.place) == ("archive-of-another-executor", "kws: executor")


def test_code_for_another_cpu_is_rejected(root: Path) -> None:
    (module,) = native_library("tiny").modules
    theirs = replace(module, model_id="", targets=(replace(module.targets[0], text="c -mcpu=cortex-m55"),))
    write_archive(Library((theirs,)), root / "models/tiny.h5")
    COMMAND.compile(request(root, cpu="cortex-m55"))
    error = failure(root, request(root, cpu="cortex-m0plus"), UsageError)
    assert error.code == "module-for-another-cpu" and error.place.endswith(": module tiny")


def test_placement_must_be_that_of_the_archive(root: Path) -> None:
    placed = replace(request(root), placement=Placement(workspace=".bss.dtcm"))
    assert failure(root, placed, UsageError).place == "kws: placement.workspace"


def test_options_are_rejected(root: Path) -> None:
    assert COMMAND.check_options({}) == []
    ((key, mistake),) = COMMAND.check_options({"memory": "smallest"})
    assert (key, mistake.code) == ("memory", "option-of-command")
    with raises(UsageError, "option-of-command", at="kws: options.memory"):
        COMMAND.compile(replace(request(root), options={"memory": "smallest"}))
    with raises(UsageError, "command-without-project-file", at="kws"):
        COMMAND.compile(replace(request(root), program=None))


# Ctrl-C --------------------------------------------------------------------------------------------------------------

PROJECT = """\
mlfbuild: 1
targets: {pc: {cpu: host}}
models:
  one: {source: models/tiny.h5, compiler: command, command: [sh, hang.sh, one, "{output}"]}
  two: {source: models/tiny.h5, compiler: command, command: [sh, hang.sh, two, "{output}"]}
  three: {source: models/tiny.h5, compiler: command, command: [sh, hang.sh, three, "{output}"]}
"""
HANG = 'echo half > "$2"\nsleep 600 &\necho $! > "$1.child"\nsleep 0.5\necho $$ > "$1.pid"\nwait\n'
"""Half a second later mlfbuild knows the program: one that starts at the moment of a SIGKILL is not ended."""


@pytest.mark.parametrize(
    ("jobs", "number", "whole_group"),
    [(1, signal.SIGINT, True), (1, signal.SIGTERM, False), (1, signal.SIGKILL, False), (2, signal.SIGINT, True),
     (2, signal.SIGINT, False), (2, signal.SIGTERM, False), (2, signal.SIGHUP, True), (2, signal.SIGKILL, False)],
    ids=["ctrl-c", "kill-term", "kill-9", "two-ctrl-c", "two-kill-int", "two-kill-term", "two-hang-up", "two-kill-9"],
)  # fmt: skip
def test_program_that_hangs_is_killed_with_its_children(
    root: Path, jobs: int, number: signal.Signals, whole_group: bool
) -> None:
    (root / "mlfbuild.yml").write_text(PROJECT)
    (root / "hang.sh").write_text(HANG)
    process = subprocess.Popen(
        [PYTHON, "-m", "mlfbuild", "build", "-q", "-j", str(jobs)], cwd=root, start_new_session=True, text=True,
        stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    )  # fmt: skip
    wait_for(lambda: len(list(root.glob("*.pid"))) >= jobs)
    (os.killpg if whole_group else os.kill)(process.pid, number)
    _, err = process.communicate(timeout=60)
    assert "Traceback" not in err
    if number == signal.SIGKILL:
        assert process.returncode == -signal.SIGKILL
    else:
        assert (process.returncode, err) == (130, INTERRUPTED)
    pids = [int(path.read_text()) for path in [*root.glob("*.pid"), *root.glob("*.child")]]
    assert len(pids) == 2 * jobs, "no further program was started"
    wait_for(lambda: not any(map(is_running, pids)))
    assert not list(root.rglob("*.tar"))
    if (jobs, number) != (1, signal.SIGKILL):  # with workers, those remove their temporary files
        assert not [path for path in Path(os.environ["TMPDIR"]).iterdir() if path.name.startswith("mlfbuild-")]
