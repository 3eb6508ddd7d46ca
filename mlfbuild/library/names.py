"""Names in TVM's generated C: prefixes of a module's symbols, and names that TVM's runtimes look up."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

_SIGNATURE = re.compile(r"serving_default_(?P<own>.+?)(:[0-9]+)?")
"""TensorFlow's prefix of the name that the model's signature has for an input, and its index of an output."""
_GENERATED = re.compile(
    r"(Stateful)?PartitionedCall(_[0-9]+)?(:[0-9]+)?"  # outputs of TensorFlow's converter
    r"|keras_tensor(_?[0-9]+)?(:[0-9]+)?"  # Keras 3
    r"|(sequential|functional|model)(_[0-9]+)*/.*"  # layers of Keras models without a name
    r"|[0-9]+|onnx::.*|/.*"  # PyTorch's exporters
)
_NUMBERED = re.compile(r"(input|arg|args|inputs)(_[0-9]+)*")
"""Names in signatures that TensorFlow counts up."""


def own_name(name: str) -> str:
    """Return ``name`` without what a converter added; empty if it is entirely generated.

    For example, ``serving_default_audio:0`` is ``audio``, and ``StatefulPartitionedCall:0`` is generated, hence empty.
    """
    found = _SIGNATURE.fullmatch(name)
    own = found["own"] if found else name
    return "" if _GENERATED.fullmatch(own) or (found and _NUMBERED.fullmatch(own)) else own


def port_names(inputs: Sequence[str], outputs: Sequence[str]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return names for the inputs and outputs of a model file, which has these names for them.

    An input whose name is generated is called ``input``, or ``input_1`` at the second position; outputs likewise.

    Names stay distinct: a second one that is equal gets ``_`` at its end. A tensor that is both input and output has
    one name, in both tuples.
    """
    chosen: dict[str, str] = {}
    for kind, names in (("input", inputs), ("output", outputs)):
        for at, name in enumerate(names):
            own = own_name(name) or (f"{kind}_{at}" if at else kind)
            # An input and an output with one name in the file are the same tensor and keep one name in C.
            while name not in chosen and own in chosen.values():
                own += "_"
            chosen.setdefault(name, own)
    return tuple(chosen[name] for name in inputs), tuple(chosen[name] for name in outputs)


SYSTEM_LIBRARY = "TVMSystemLibEntryPoint"
"""The function that returns an image's table of functions by name; modules exported with ``system-lib`` have it."""
MERGED_SYSTEM_LIBRARY = "mlfbuild_system_lib.c"
"""The file with that function after the tables of several modules were merged."""
MODULE_CONTEXT = "__tvm_module_ctx"
"""The variable that points to the module's context in code for TVM's C++ runtime."""
LINKED_PARAMETERS = "_lookup_linked_param"
"""The function that TVM 0.8's graph executor calls to get the parameter of a storage id."""
LINKED_ARRAY = "__tvm_param__"
"""Prefix of the names of arrays of such parameters, in C and in symbol tables."""
SHARED_WORKSPACE = "mlf_shared_workspace"
"""The workspace of all models of an image that never run at the same time: a common symbol in each model."""
WORKSPACE_POOL = "sram"
"""The memory pool in which code of the native compiler has its workspace if inputs and outputs are in it.

TVM lets its users choose the name; this is the one in its documentation."""


def sanitize_name(name: str) -> str:
    """Return ``name`` with ``_`` for each byte that is not an ASCII letter or digit (TVM's ``SanitizeName``).

    Different names can become equal: both ``a-b`` and ``a.b`` are ``a_b``. A letter beyond ASCII has several bytes in
    UTF-8, so ``é`` becomes ``__``.
    """
    # JSON can hold lone surrogates, which are not valid UTF-8 but still part of a name.
    return re.sub(rb"[^0-9A-Za-z]", b"_", name.encode(errors="surrogatepass")).decode()


def symbol_prefix(module: str) -> str:
    """Return the prefix of a module's functions: ``tvmgen_Kws``.

    The case of the module's name stays, as in TVM's code. The C interface has one case only: see ``struct_prefix`` and
    ``macro_prefix``.
    """
    return f"tvmgen_{sanitize_name(module)}"


def struct_prefix(module: str) -> str:
    """Return the prefix of the structs of a module's C interface: ``tvmgen_kws`` (TVM's ``ToCVariableStyle``).

    The functions of the header have it as well: firmware calls ``tvmgen_kws_run`` of a module ``Kws``. TVM's code
    defines ``tvmgen_Kws_run`` then, which ``mlfbuild.executor`` renames.
    """
    return symbol_prefix(module).lower()


def macro_prefix(module: str) -> str:
    """Return the prefix of the macros of a module's C interface: ``TVMGEN_KWS`` (TVM's ``ToCConstantStyle``).

    For example, ``TVMGEN_KWS_WORKSPACE_SIZE``. For the macro of a tensor's size, see ``macro_words``.
    """
    return symbol_prefix(module).upper()


def macro_words(members: Iterable[str]) -> dict[str, str]:
    """Return the words for ``members`` of the C interface in macros: in capitals, and distinct.

    TVM's macro of both ``a`` and ``A`` is ``TVMGEN_KWS_A_SIZE``. Here the second one becomes ``A_2``.
    """
    names = list(dict.fromkeys(members))
    words: dict[str, str] = {}
    # Names that members have without a number come first, so that a numbered one never takes the macro of another
    # tensor.
    taken = {name.upper() for name in names}
    own: set[str] = set()
    for name in names:
        words[name] = upper = name.upper()
        number = 1
        # A_2 may be the name of another tensor.
        while words[name] in own or (number > 1 and words[name] in taken):
            number += 1
            words[name] = f"{upper}_{number}"
        own.add(words[name])
    return words


def header_names(module: str) -> frozenset[str]:
    """Return the possible names of a module's header; TVM's exporter keeps characters that C names cannot have.

    A module ``My-net`` can have ``tvmgen_my_net.h`` or ``tvmgen_my-net.h``.
    """
    return frozenset({f"{struct_prefix(module)}.h", f"tvmgen_{module.lower()}.h"})


def facts_header(module: str) -> str:
    """Return the name of the header with the native compiler's constants for a module of the graph executor."""
    return f"mlf_{module}.h"
