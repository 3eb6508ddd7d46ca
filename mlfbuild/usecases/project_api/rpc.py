"""JSON-RPC 2.0, one request and one reply per line, with the errors of the Project API.

An error of mlfbuild becomes a server error (-32000) whose message is the text that the command line would print. The
client knows three errors of the API by their message: ``TransportClosedError``, ``IoTimeoutError`` and
``UnsupportedTVMVersionError``.
"""

from __future__ import annotations

import base64
import json
import logging
from collections.abc import Callable, Mapping
from typing import IO, Any

from mlfbuild.core import MlfError

# Codes of JSON-RPC 2.0, section 5.1 (error object); -32000 to -32099 are left to each server.
SERVER_ERROR = -32000
_PARSE_ERROR, _INVALID_REQUEST, _METHOD_NOT_FOUND, _INVALID_PARAMS = -32700, -32600, -32601, -32602
# So that a client that sends no line break does not fill the memory.
_LONGEST_REQUEST = 64 << 20
"""Characters; the largest requests write to the transport, a packet at a time."""
_LOG = logging.getLogger(__name__)

Parameters = Mapping[str, Any]
Method = Callable[[Parameters], Any]


class RequestError(Exception):
    """A request that gets an error as its reply."""

    def __init__(self, code: int, message: str, data: Mapping[str, Any] | None = None) -> None:
        super().__init__(message)
        self.code, self.message, self.data = code, message, data


def transport_closed() -> RequestError:
    """Return the error for a transport that is closed, or whose device is gone."""
    return RequestError(SERVER_ERROR, "TransportClosedError")


def timed_out() -> RequestError:
    """Return the error for a read or write that took too long."""
    return RequestError(SERVER_ERROR, "IoTimeoutError")


class Server:
    """Serves ``methods``: each has the names and types of its parameters, all of them required."""

    def __init__(self, methods: Mapping[str, tuple[Mapping[str, tuple[type, ...]], Method]]) -> None:
        self._methods = methods

    def serve(self, requests: IO[str], replies: IO[str]) -> None:
        """Answer every line of ``requests`` in ``replies`` until the client closes its end."""
        while line := requests.readline(_LONGEST_REQUEST):
            _LOG.debug("request: %s", line.rstrip())
            rest = line
            while rest and not rest.endswith("\n"):  # the end of a line that is too long
                rest = requests.readline(_LONGEST_REQUEST)
            # A line that was cut off is not JSON, and gets the reply for that.
            reply = json.dumps(self._answer(line))
            _LOG.debug("reply: %s", reply)
            try:
                replies.write(f"{reply}\n")
                replies.flush()
            # The client is gone, and the caller closes the transport.
            except BrokenPipeError:
                return

    def _answer(self, line: str) -> Mapping[str, Any]:
        try:
            request = json.loads(line)
        except (ValueError, RecursionError):
            _LOG.error("the request is not JSON: %.200r", line)
            return {"jsonrpc": "2.0", "id": None, "error": {"code": _PARSE_ERROR, "message": "not JSON", "data": None}}
        return self._reply(request)

    def _reply(self, request: object) -> Mapping[str, Any]:
        # The id of a request that is not an object is unknown, for which JSON-RPC has null (section 5).
        known = request if isinstance(request, dict) else {}
        reply = {"jsonrpc": "2.0", "id": known.get("id")}
        try:
            return {**reply, "result": self._result(request)}
        except RequestError as error:
            return {**reply, "error": {"code": error.code, "message": error.message, "data": error.data}}
        except MlfError as error:
            # The code and the exit status let a client tell errors apart without parsing the text.
            facts = {"code": error.code, "exit_code": error.exit_code}
            return {**reply, "error": {"code": SERVER_ERROR, "message": str(error), "data": facts}}
        except OSError as error:
            return {**reply, "error": {"code": SERVER_ERROR, "message": str(error), "data": None}}
        except Exception as error:  # noqa: BLE001 - a defect of mlfbuild must not end the session
            _LOG.exception("the request failed")
            return {**reply, "error": {"code": SERVER_ERROR, "message": repr(error), "data": None}}

    def _result(self, request: object) -> Any:
        if not isinstance(request, dict) or request.get("jsonrpc") != "2.0":
            raise RequestError(_INVALID_REQUEST, 'a request must be an object with "jsonrpc": "2.0"')
        name, given = request.get("method"), request.get("params")
        if not isinstance(name, str) or not isinstance(given, dict):
            raise RequestError(_INVALID_REQUEST, "a request must have a method and an object of params")
        identifier = request.get("id")
        # A bool is an ``int`` in Python, but not in JSON.
        if isinstance(identifier, bool) or not isinstance(identifier, str | int | float | None):
            raise RequestError(_INVALID_REQUEST, "the id must be a string, a number or null")
        if name not in self._methods:
            raise RequestError(_METHOD_NOT_FOUND, f"{name}: no such method")
        parameters, method = self._methods[name]
        # All parameters are required, because the Project API has no optional ones.
        if given.keys() != parameters.keys():
            wanted = ", ".join(parameters) or "none"
            raise RequestError(_INVALID_PARAMS, f"{name}: the parameters must be {wanted}")
        for key, types in parameters.items():
            if not isinstance(given[key], types) or (isinstance(given[key], bool) and bool not in types):
                expected = " or ".join("null" if each is type(None) else each.__name__ for each in types)
                raise RequestError(_INVALID_PARAMS, f"{name}: {key} must be {expected}")
        return method(given)


def encoded(data: bytes) -> str:
    """Return ``data`` as the protocol transmits bytes: base85."""
    return base64.b85encode(data).decode("ascii")


def decoded(text: str) -> bytes:
    """Return the bytes of ``text``; raises ``RequestError`` if it is not base85."""
    try:
        return base64.b85decode(text)
    except ValueError:
        raise RequestError(_INVALID_PARAMS, "data must be in base85") from None
