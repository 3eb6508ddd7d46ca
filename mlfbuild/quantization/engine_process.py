"""The process in which an engine runs: ``python engine_process.py REQUEST REPLY``, both files of pickle.

Libraries of engines print to stderr, start threads and may crash. The parent shows what was printed only if the process
ends without a reply.
"""

from __future__ import annotations

import pickle
import sys
from pathlib import Path

from mlfbuild.core import MlfError
from mlfbuild.quantization.engine_request import EngineRequest
from mlfbuild.quantization.engines import ONNX, engine_of


def main(request: Path, reply: Path) -> None:
    """Do what the file ``request`` asks for, and write to ``reply`` why operators stay float, or the ``MlfError``."""
    asked: EngineRequest = pickle.loads(request.read_bytes())  # noqa: S301 - the parent wrote it
    if engine_of(asked.source) == ONNX:
        from mlfbuild.quantization.with_onnxruntime import quantize_file
    else:
        from mlfbuild.quantization.with_ai_edge import quantize_file
    answer: dict[str, str] | MlfError
    try:
        answer = quantize_file(asked)
    except MlfError as error:
        answer = error
    reply.write_bytes(pickle.dumps(answer))


if __name__ == "__main__":
    # The folder of this file would come before installed packages.
    sys.path.pop(0)
    main(*map(Path, sys.argv[1:]))
