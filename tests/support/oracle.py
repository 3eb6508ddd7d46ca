"""Run the reference kernels of TensorFlow Lite Micro and, for operators that it lacks, of LiteRT."""

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[np.generic]

ARENA_SIZE = 8 << 20


def tflite_micro_run(model: bytes, inputs: Sequence[Array]) -> list[Array]:
    """Run ``model`` once on ``inputs`` (in the model's order, full shapes) and return its outputs in order.

    Raises ``RuntimeError`` if TensorFlow Lite Micro refuses the model.
    """
    return tflite_micro_cases(model, [inputs])[0]


def tflite_micro_cases(model: bytes, cases: Sequence[Sequence[Array]]) -> list[list[Array]]:
    """Run ``model`` on each of ``cases`` in one interpreter; see ``tflite_micro_run``."""
    from tflite.Model import Model
    from tflite_micro.python.tflite_micro import runtime

    outputs = Model.GetRootAs(model).Subgraphs(0).OutputsLength()
    interpreter = runtime.Interpreter.from_bytes(model, arena_size=ARENA_SIZE)
    results = []
    for inputs in cases:
        for index, value in enumerate(inputs):
            interpreter.set_input(value, index)
        interpreter.invoke()
        results.append([np.array(interpreter.get_output(index)) for index in range(outputs)])
    return results


def litert_run(model: bytes, inputs: Sequence[Array], *, reference: bool = True) -> list[Array]:
    """Run ``model`` once on ``inputs`` with LiteRT's reference kernels; raises ``RuntimeError`` if it is refused.

    Without ``reference``, run the kernels that LiteRT has for this machine, without delegates.
    """
    return litert_cases(model, [inputs], reference=reference)[0]


def litert_cases(model: bytes, cases: Sequence[Sequence[Array]], *, reference: bool = True) -> list[list[Array]]:
    """Run ``model`` on each of ``cases``, as ``litert_run``, in one interpreter."""
    from ai_edge_litert.interpreter import Interpreter, OpResolverType

    kernels = OpResolverType.BUILTIN_REF if reference else OpResolverType.BUILTIN_WITHOUT_DEFAULT_DELEGATES
    interpreter = Interpreter(model_content=model, experimental_op_resolver_type=kernels)
    interpreter.allocate_tensors()
    places = [place["index"] for place in interpreter.get_input_details()]
    outputs = [place["index"] for place in interpreter.get_output_details()]
    results = []
    for inputs in cases:
        for place, value in zip(places, inputs, strict=True):
            interpreter.set_tensor(place, value)
        interpreter.invoke()
        results.append([np.array(interpreter.get_tensor(place)) for place in outputs])
    return results


def assert_equal(got: Array, expected: Array, what: str, operands: float = 0.0) -> None:
    """Check that integers are equal and float32 within 1e-5 of the greatest magnitude; dimensions of 1 may differ.

    If sums may cancel, ``operands`` is the magnitude of the summands.
    """
    assert got.dtype == expected.dtype, what
    if expected.dtype == np.float32:
        limit = 1e-5 * max(operands, float(np.abs(expected).max()))
        np.testing.assert_allclose(got, expected.reshape(got.shape), rtol=0, atol=limit, err_msg=what)
    else:
        np.testing.assert_array_equal(got, expected.reshape(got.shape), err_msg=what)
