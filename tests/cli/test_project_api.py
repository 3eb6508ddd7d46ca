"""`mlfbuild project-api`: TVM's Project API over pipes, and TVM's sessions with the firmware."""

import base64
import contextlib
import io
import json
import os
import signal
import socket
import struct
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from mlfbuild.archive import open_archive
from mlfbuild.core import ProcessFailedError
from mlfbuild.usecases.project_api.rpc import Server
from support import warm
from support.command import Folder
from support.firmware_repo import tiny_network
from support.microtvm_session import DeviceError, Session, packet, run_model
from support.oracle import tflite_micro_run
from support.processes import wait_for
from support.project_api_client import Client, LocalClient, ServerError, project_api

SERVER = "microtvm_api_server.py"
TVM = "0.14.0"
SERVER_ERROR, METHOD_NOT_FOUND, INVALID_REQUEST, INVALID_PARAMS = -32000, -32601, -32600, -32602
PARSE_ERROR = -32700
MODEL = tiny_network(5)
INPUT = np.arange(-4, 4, dtype=np.int8).reshape(1, 8)
KEYS = {"name", "choices", "default", "type", "required", "optional", "help"}


@pytest.fixture(scope="module")
def template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a template, with an archive for the graph executor beside it."""
    root = tmp_path_factory.mktemp("project-api")
    (root / "tiny.tflite").write_bytes(MODEL)
    words = ("compile", "tiny.tflite", "--cpu", "cortex-m4", "--executor", "graph", "-o", "tiny.tar")
    warm.run("mlfbuild", *words, cwd=root, check=True)
    warm.run("mlfbuild", "project-api", "template", cwd=root, check=True)
    return root / "template"


@pytest.fixture(scope="module")
def project(template: Path) -> Path:
    """Return a project that the server generated, that was moved, and that is built."""
    made, root = template.parent / "made here", template.parent / "moved"
    with project_api(template) as client:
        client.call("generate_project", **paths(template.parent / "tiny.tar", made), options={})
    made.rename(root)
    with project_api(root) as client:
        client.call("build", options={"verbose": "true"})
    return root


def paths(archive: Path, folder: Path) -> dict[str, str]:
    return {"model_library_format_path": str(archive), "standalone_crt_dir": "", "project_dir": str(folder)}


@pytest.fixture(scope="module")
def opened(project: Path) -> Iterator[Client]:
    """Return a client of the built project whose transport is open; every test starts a session of its own."""
    with project_api(project) as client:
        client.call("flash", options={})
        assert set(client.call("open_transport", options={})["timeouts"]) == {
            "session_start_retry_timeout_sec", "session_start_timeout_sec", "session_established_timeout_sec",
        }  # fmt: skip
        yield client


def asked(folder: Path, method: str, **params: object) -> Any:
    """Return the reply of a server in this process."""
    return replied(folder, json.dumps({"jsonrpc": "2.0", "id": 1, "method": method, "params": params}))


def replied(folder: Path, line: str) -> Any:
    with contextlib.closing(LocalClient(folder)) as client:
        return client.send_line(line)


def test_a_template_offers_its_options(template: Path) -> None:
    info = asked(template, "server_info_query", tvm_version=TVM)["result"]
    assert (info["protocol_version"], info["is_template"], info["model_library_format_path"]) == (1, True, "")
    options = {option["name"]: option for option in info["project_options"]}
    assert all(set(option) == KEYS for option in options.values())
    assert options["project_type"]["choices"] == ["host_driven", "example_project"]
    assert "mps3-an547" in options["board"]["choices"]


def test_a_generated_project_has_the_archive_and_the_server(template: Path, project: Path) -> None:
    info = asked(project, "server_info_query", tvm_version="0.8.0")["result"]
    assert info["is_template"] is False
    assert Path(info["model_library_format_path"]).read_bytes() == (template.parent / "tiny.tar").read_bytes()
    assert (project / SERVER).read_bytes() == (template / SERVER).read_bytes()
    assert not [path for path in project.glob("*.*") if str(template.parent).encode() in path.read_bytes()]


def test_a_host_runs_the_model_on_the_board(opened: Client) -> None:
    session = Session(opened)
    (output,) = run_model(session, [INPUT])
    (again,) = run_model(session, [INPUT[:, ::-1]], "tiny")
    executor = session.executor()
    name = session.call(session.get(executor, "get_input_name"), 0)
    assert session.call(session.get(executor, "get_input_index"), name) == 0
    assert (output.dtype, output.shape) == (np.int8, (1, 4))
    np.testing.assert_array_equal(output, tflite_micro_run(MODEL, [INPUT])[0])
    np.testing.assert_array_equal(again, tflite_micro_run(MODEL, [INPUT[:, ::-1]])[0])


def test_functions_missing_in_the_firmware_are_errors_of_the_device(opened: Client) -> None:
    session = Session(opened)
    executor = session.executor()
    assert session.function("runtime.Unknown") is None
    for function, argument in (("get_output", 1), ("get_input", -1), ("get_input", "other"), ("set_input", 0)):
        with pytest.raises(DeviceError):
            session.call(session.get(executor, function), argument)
    with pytest.raises(DeviceError):
        session.executor("other")
    with pytest.raises(DeviceError):
        session.request(8, b"")


def test_damaged_packets_are_skipped(opened: Client) -> None:
    session = Session(opened)
    good = packet(struct.pack("<HB", session.session, 0x10) + struct.pack("<QIiiQ", 32, 9, 1, 11, 3) + b"abc")
    for noise in (b"\xff", b"\xff\xfd", good[:9], good[:-1] + b"!", packet(bytes(5000)), packet(b"x"), b"\xff\xfe" * 3):
        opened.write(noise)
    assert session.function("runtime.SystemLib") is not None


def test_a_host_calls_operators_of_the_system_library(opened: Client, template: Path) -> None:
    """As TVM's graph executor on the host does, with tensors that it allocates on the device."""
    weights = next(iter(open_archive(template.parent / "tiny.tar").modules[0].params.values()))
    session = Session(opened)
    system = session.function("runtime.SystemLib")
    assert system is not None
    operator = session.get(session.call(system), "tvmgen_tiny_fully_connected_8_to_4")
    source, target = session.allocate("int8", (1, 8)), session.allocate("int8", (1, 4))
    constants = session.allocate(weights.dtype.name, weights.shape)
    session.copy_to(source, INPUT)
    session.copy_to(constants, weights)
    session.call(operator, source, constants, target)
    np.testing.assert_array_equal(session.copy_from(target), tflite_micro_run(MODEL, [INPUT])[0])
    session.free(source)
    with pytest.raises(DeviceError):
        session.allocate("int8", (1 << 31,))


def test_reading_ends_at_its_time_limit(opened: Client) -> None:
    Session(opened)
    for seconds in (0, 0.2):
        with pytest.raises(ServerError, match=r"^IoTimeoutError$"):
            opened.read(1, seconds)
    assert opened.read(0, 0) == b""


def test_firmware_that_ends_closes_the_transport(project: Path) -> None:
    with project_api(project) as client:
        client.call("open_transport", options={})
        client.read(11)
        (emulator,) = emulators(client)
        os.kill(emulator, signal.SIGKILL)
        with pytest.raises(ServerError, match=r"^TransportClosedError$"):
            client.read(1)
        with pytest.raises(ServerError, match=r"^TransportClosedError$"):
            client.write(bytes(1 << 20))
        for _ in range(2):
            client.call("close_transport")
        client.call("open_transport", options={})
        client.read(11)
        (emulator,) = emulators(client)
        read = {"jsonrpc": "2.0", "id": 1, "method": "read_transport", "params": {"n": 1 << 20, "timeout_sec": None}}
        client.post(json.dumps(read))
    assert not Path(f"/proc/{emulator}/exe").exists()  # the client died while it waited


@pytest.mark.sweep
def test_a_server_that_is_killed_leaves_no_emulator(project: Path) -> None:
    with project_api(project) as client:
        client.call("open_transport", options={})
        client.read(11)
        (emulator,) = emulators(client)
        client.process.kill()
        wait_for(lambda: not Path(f"/proc/{emulator}").exists())


def emulators(client: Client) -> list[int]:
    """Return the processes of QEMU that the server has started."""
    children = Path(f"/proc/{client.process.pid}/task/{client.process.pid}/children").read_text().split()
    return [int(child) for child in children if "qemu" in Path(f"/proc/{child}/comm").read_text()]


@pytest.mark.parametrize(
    ("line", "code"),
    [
        ("[]", INVALID_REQUEST),
        ('{"jsonrpc": "1.0", "id": 1, "method": "build", "params": {}}', INVALID_REQUEST),
        ('{"jsonrpc": "2.0", "id": [], "method": "build", "params": {"options": {}}}', INVALID_REQUEST),
        ('{"jsonrpc": "2.0", "id": true, "method": "explode", "params": {}}', INVALID_REQUEST),
        ('{"jsonrpc": "2.0", "id": 1.5, "method": "explode", "params": {}}', METHOD_NOT_FOUND),
        ('{"jsonrpc": "2.0", "id": 1, "method": "build", "params": []}', INVALID_REQUEST),
        ('{"jsonrpc": "2.0", "id": 1, "method": "explode", "params": {}}', METHOD_NOT_FOUND),
        ('{"jsonrpc": "2.0", "id": 1, "method": "build", "params": {}}', INVALID_PARAMS),
        ('{"jsonrpc": "2.0", "id": 1, "method": "build", "params": {"options": {}, "more": 1}}', INVALID_PARAMS),
        ('{"jsonrpc": "2.0", "id": 1, "method": "build", "params": {"options": "fast"}}', INVALID_PARAMS),
    ],
)  # fmt: skip
def test_wrong_requests_get_the_errors_of_json_rpc(template: Path, line: str, code: int) -> None:
    assert replied(template, line)["error"]["code"] == code


def test_a_line_that_is_not_json_gets_a_parse_error(tmp_path: Path) -> None:
    wrong = [b"garbage", b"\xff\xfe\x00", b"[" * 100_000]
    right = b'{"jsonrpc": "2.0", "id": 7, "method": "explode", "params": {}}'
    read_fd, requests = os.pipe()
    replies, write_fd = os.pipe()
    command = [sys.executable, "-m", "mlfbuild", "project-api", "--read-fd", str(read_fd), "--write-fd", str(write_fd)]
    with subprocess.Popen(command, cwd=tmp_path, pass_fds=(read_fd, write_fd), stderr=subprocess.PIPE) as server:
        os.close(read_fd)
        os.close(write_fd)
        with os.fdopen(requests, "wb") as pipe, contextlib.suppress(BrokenPipeError):
            pipe.writelines(line + b"\n" + right + b"\n" for line in wrong)
        said = server.communicate(timeout=60)[1]
        with os.fdopen(replies, "rb") as pipe:
            errors = [(reply["id"], reply["error"]["code"]) for reply in map(json.loads, pipe)]
    assert errors == 3 * [(None, PARSE_ERROR), (7, METHOD_NOT_FOUND)], "the server goes on"
    assert server.returncode == 0
    assert [line.startswith(b"the request is not JSON: ") for line in said.splitlines()] == 3 * [True]


def test_tvm_without_the_project_api(template: Path) -> None:
    error = asked(template, "server_info_query", tvm_version="0.7.1")["error"]
    assert (error["code"], error["message"]) == (SERVER_ERROR, "UnsupportedTVMVersionError")


def test_a_closed_transport(template: Path) -> None:
    wrong = {"data": base64.b85encode(b"abc").decode() + '"', "timeout_sec": 1}
    for method, params in (("read_transport", {"n": 1, "timeout_sec": None}), ("write_transport", wrong)):
        assert asked(template, method, **params)["error"]["message"] == "TransportClosedError"
    assert asked(template, "read_transport", n=True, timeout_sec=1)["error"]["code"] == INVALID_PARAMS


@pytest.mark.parametrize(
    ("options", "code"),
    [
        ({"borad": "mps2-an386"}, "unknown-project-option"),
        ({"board": "arduino"}, "project-option-invalid"),
        ({"project_type": 3}, "project-option-invalid"),
        ({"verbose": "perhaps"}, "project-option-invalid"),
    ],
)
def test_wrong_options(template: Path, tmp_path: Path, options: dict[str, object], code: str) -> None:
    error = asked(
        template, "generate_project", **paths(template.parent / "tiny.tar", tmp_path / "new"), options=options
    )
    assert (error["error"]["code"], error["error"]["data"]) == (SERVER_ERROR, {"code": code, "exit_code": 2})
    assert not (tmp_path / "new").exists()


def test_a_failed_project_leaves_nothing(template: Path, tmp_path: Path) -> None:
    (tmp_path / "used").mkdir()
    (tmp_path / "used/notes.txt").touch()
    for folder, archive, code in (
        ("used", template.parent / "tiny.tar", "project-folder-not-empty"),
        ("new", tmp_path / "none.tar", "no-such-input"),
        ("bad", template.parent / "tiny.tflite", "model-not-archive"),
    ):
        error = asked(template, "generate_project", **paths(archive, tmp_path / folder), options={})["error"]
        assert error["data"]["code"] == code
    assert sorted(path.name for path in tmp_path.rglob("*")) == ["notes.txt", "used"]


def test_mistakes_in_a_project(project: Path, tmp_path: Path) -> None:
    new = paths(project / "models/tiny.tar", tmp_path / "new")
    error = asked(project, "generate_project", **new, options={})["error"]
    assert error["data"]["code"] == "project-is-no-template"
    assert asked(project, "build", options={"target": "m44"})["error"]["data"]["exit_code"] == 2
    (tmp_path / "mlfbuild.yml").write_text("mlfbuild: 1\nmodles: {}\n")
    error = asked(tmp_path, "build", options={})["error"]
    assert error["data"] == {"code": "project-file", "exit_code": 2}
    assert "mlfbuild.yml:2:1: modles" in error["message"]


def test_the_output_of_programs_reaches_the_host() -> None:
    def build(_: object) -> None:
        raise ProcessFailedError("program-failed", "main.c:1: stopped here\n", reason="failed", place="cmake")

    replies = io.StringIO()
    Server({"build": ({}, build)}).serve(
        io.StringIO('{"jsonrpc": "2.0", "id": 1, "method": "build", "params": {}}'), replies
    )
    error = json.loads(replies.getvalue())["error"]
    assert "main.c:1: stopped here" in error["message"]
    assert error["data"] == {"code": "program-failed", "exit_code": 7}


def test_a_template_of_the_user_replaces_files_and_its_variables_are_options(template: Path, tmp_path: Path) -> None:
    own = tmp_path / "own"
    own.mkdir()
    (own / "mlfbuild-template.yml").write_text(
        "mlfbuild-template: 1\nvariables: {port: {help: Serial port}, speed: {default: fast, choices: [fast, slow]}}\n"
    )
    (own / "notes.txt.jinja").write_text("{{ model }} at {{ port }}, {{ speed }}\n")
    options = {
        each["name"]: each for each in asked(own, "server_info_query", tvm_version=TVM)["result"]["project_options"]
    }
    assert options["port"]["required"] == ["generate_project"]
    assert (options["speed"]["choices"], options["speed"]["optional"]) == (["fast", "slow"], ["generate_project"])
    new = paths(template.parent / "tiny.tar", tmp_path / "new")
    error = asked(own, "generate_project", **new, options={})["error"]
    assert error["data"]["code"] == "template-variable-missing"
    assert asked(own, "generate_project", **new, options={"port": "/dev/ttyACM0"})["result"] is None
    assert (tmp_path / "new/notes.txt").read_text() == "tiny at /dev/ttyACM0, fast\n"
    assert (tmp_path / "new/src/mlf_rpc.c").is_file()
    (own / "notes.txt.jinja").unlink()
    (own / "mlfbuild-template.yml").write_text("mlfbuild-template: 1\nvariables: {verbose: {default: x}}\n")
    assert asked(own, "server_info_query", tvm_version=TVM)["error"]["data"]["code"] == "variable-is-option"


def test_runners_carry_the_bytes(project: Path) -> None:
    """A command that runs images, and the serial port beside a probe."""
    before = (project / "mlfbuild.yml").read_bytes()
    board = "qemu-system-arm, -M, mps2-an386, -nographic, -monitor, none, -serial, none, -semihosting-config"
    try:
        write_runner(project, f"{{run: [{board}, 'enable=on,target=native', -kernel, '{{elf}}']}}")
        with contextlib.closing(LocalClient(project)) as client:
            client.call("flash", options={"firmware": "app", "target": "m4"})
            client.call("open_transport", options={})
            (output,) = run_model(Session(client), [INPUT])
        np.testing.assert_array_equal(output, tflite_micro_run(MODEL, [INPUT])[0])
        with socket.create_server(("127.0.0.1", 0)) as server:
            threading.Thread(target=echo, args=(server,), daemon=True).start()
            write_runner(project, f"{{gdb: 'localhost:1', console: 'socket://127.0.0.1:{server.getsockname()[1]}'}}")
            with contextlib.closing(LocalClient(project)) as client:
                client.call("open_transport", options={})
                client.write(b"some bytes\xff\x00")
                assert client.read(12) == b"some bytes\xff\x00"
                with pytest.raises(ServerError, match=r"^IoTimeoutError$"):
                    client.read(1, 0.05)
        write_runner(project, "{gdb: 'localhost:1'}")
        error = asked(project, "open_transport", options={})["error"]
        assert error["data"]["code"] == "transport-unknown"
    finally:
        (project / "mlfbuild.yml").write_bytes(before)


def write_runner(folder: Path, runner: str) -> None:
    path = folder / "mlfbuild.yml"
    lines = path.read_text().splitlines()
    changed = [
        f"  m4: {{cpu: cortex-m4, board: mps2-an386, runner: {runner}}}" if " m4:" in line else line for line in lines
    ]
    path.write_text("\n".join(changed))


def echo(server: socket.socket) -> None:
    connection, _ = server.accept()
    with connection:
        while data := connection.recv(100):
            connection.sendall(data)


def test_without_mlfbuild_every_request_fails(template: Path) -> None:
    python = getattr(sys, "_base_executable", sys.executable)
    if subprocess.run([python, "-c", "import mlfbuild"], capture_output=True, cwd="/", check=False).returncode == 0:
        pytest.skip("the Python of this environment has mlfbuild, too")
    environment = {"PATH": "/nowhere", "LC_ALL": "C.UTF-8"}
    with project_api(template, env=environment, python=python) as client:
        for _ in range(2):
            with pytest.raises(ServerError, match="MLFBUILD_COMMAND"):
                client.call("server_info_query", tvm_version=TVM)


@pytest.mark.sweep
def test_an_example_project_runs_the_model_once(template: Path, tmp_path: Path) -> None:
    new = paths(template.parent / "tiny.tar", tmp_path / "new")
    assert asked(template, "generate_project", **new, options={"project_type": "example_project"})["result"] is None
    with contextlib.closing(LocalClient(tmp_path / "new")) as client:
        client.call("build", options={})
        client.call("open_transport", options={})
        assert client.read(1 << 10).endswith(b"\nDONE\n")


def test_the_server_is_written_once(folder: Folder) -> None:
    ended = folder.run("project-api", "--format", "json")
    assert (ended.status, ended.json) == (0, {"written": SERVER, "template": False})
    assert folder.run("project-api", "new/one").out == "new/one/microtvm_api_server.py: template\n"
    assert folder.run("project-api", "-q").out == ""
    folder.write(SERVER, b"# mine\n")
    assert folder.run("project-api").status == 6
    assert (folder.root / SERVER).read_bytes() == b"# mine\n"


def test_one_pipe_is_not_enough(folder: Folder) -> None:
    for option in ("--read-fd", "--write-fd"):
        ended = folder.run("project-api", option, "7", "--format", "json")
        assert (ended.status, ended.error["code"]) == (2, "option-needs-another")
