"""Convert the errors of reading a model to errors that name its file."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from mlfbuild.core import InputFileError, UnsupportedModelError
from mlfbuild.native.graph import GraphError, OperatorError

_COPY = "copy or export the model again"
_CHECK = "run the model in its own runtime; if it runs there, use another compiler (tvm or command)"
"""The hint for an intact file: its operators break rules that we know, so a copy would also break them."""


class DamagedFileError(GraphError):
    """The bytes of the file are cut off, changed, or not of this format; a copy may have others."""


@contextmanager
def naming_file(where: str, malformed: str) -> Iterator[None]:
    """Add ``where``, the file, to the errors of the block; ``malformed`` is the code of a ``GraphError``.

    An ``OperatorError`` becomes an ``UnsupportedModelError``, any other ``GraphError`` an ``InputFileError``.
    """
    try:
        yield
    # An operator that breaks its rules comes from an intact file, whose user needs other advice.
    except OperatorError as error:
        raise unsupported(error).within(where) from None
    except GraphError as error:
        raise InputFileError(
            malformed,
            place=f"{where}: {error.where}",
            reason=error.reason,
            hint=_COPY if isinstance(error, DamagedFileError) else _CHECK,
        ) from None
    except UnsupportedModelError as error:
        raise error.within(where) from None


def unsupported(error: OperatorError) -> UnsupportedModelError:
    """Return ``error`` about the tensors of an operator as one about a model that is not supported."""
    return UnsupportedModelError("operator-invalid", place=error.where, reason=error.reason, hint=_CHECK)
