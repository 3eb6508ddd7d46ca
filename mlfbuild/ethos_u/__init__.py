"""Arm's Ethos-U: compile the part of a network that the NPU takes with Arm's Vela, and check what comes out.

    .tflite -> compile_with_vela -> .tflite with operators "ethos-u" -> native's front end -> check_payload -> C

**What Vela does.** It replaces chains of operators that the NPU can compute by custom operators ``ethos-u``, and leaves
the others as they are. The constant inputs of such an operator are the payload of the driver (a command stream) and the
weights, compressed; then come the sizes of two working memories, and the tensors of the network. Metadata
``OfflineMemoryAllocation`` has an offset in the working memory for each tensor. The native front end
(``native/frontends/tflite/npu.py``) makes one operator of the graph of each.

**How the NPU addresses memory.** Commands have offsets in regions, whose addresses the driver gets for each call:

    0  constants: weights, biases and tables. Read-only.
    1  working memory: the tensors of the network, and what is between operators.
    2  the NPU's own memory with memory-mode dedicated-sram, otherwise the same bytes as region 1.

**Whose memory is it.** Vela plans the working memory of all calls together, and tensors stay there between them. Our
memory plan does the same for tensors between a call and an operator of the core (``native/memory/borders.py``). Other
tensors, such as those in the caller's buffers, are copied to their offsets before a call, or from them after it, so
that these buffers are neither written nor moved. Between calls, bytes that hold no tensor are free for the core.

**Rules.**

1. Vela is never imported: it runs in a process of its own, of this Python or of another one (``npu.python``).
2. Nothing that Vela wrote is trusted: ``check_payload`` computes every address of every command, and refuses those
   outside the regions that generated code passes.
3. Estimates are Vela's, and always named so. Nothing in this project has run on an NPU.

For example, the keyword spotting network of MLPerf Tiny for an Ethos-U55 with 128 multipliers and shared SRAM becomes
one call: 3,664 bytes of payload, 31,104 of constants, 22,192 of working memory, and no operator for the core.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from mlfbuild.core import lazy_attributes

if TYPE_CHECKING:
    # fmt: off
    from mlfbuild.ethos_u.stream import StreamFacts, StreamRegion, check_payload
    from mlfbuild.ethos_u.vela import VelaResult, compile_with_vela, system_config_of, unknown_operators, vela_version
else:
    __getattr__ = lazy_attributes(__name__)
