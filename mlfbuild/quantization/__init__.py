"""Static quantisation: a float network becomes one that runs on integers, by the tools of its own format.

**What.** A quantised tensor stores the real number ``r`` as an integer ``q`` with ``r = scale * (q - zero_point)``.
Weights are known, so that their scales are. The range of an activation is not: it is measured by running the float
network on data like those of the field (calibration), and stays the same for all later inputs, hence static. From the
ranges, an engine writes a file of the same format whose tensors have scales and whose weights are integers::

    float file + calibration data -> [measure] -> [engine] -> quantised file -> [read_model] -> what stays float

``QuantizeKeys`` is what a project file says, ``quantize`` does one file, ``QuantizedNetwork`` says what came of it: for
each operator whether it runs on integers and, if not, why; and warnings. The engines are ``ai-edge-quantizer`` for
TensorFlow Lite and ``onnxruntime.quantization`` for ONNX. They choose scales and rewrite graphs; this room feeds them,
prepares what they expect of a file, and judges the result by what the native compiler makes of it.

**Rules.**

1. The data are measured first, a batch at a time, without an engine: their mistakes are found before a library is
   loaded, and memory does not depend on the number of cases. The engines also get a case at a time.
2. An engine runs in a process of its own (``engine_process``): a crash, its output and its threads stay there, and a
   build that has nothing to quantise never imports it.
3. The same inputs and versions give the same bytes: one thread, no dates, no names of temporary files.
4. ``minmax`` means the least and the greatest value that was seen. Other methods (``METHODS``) clip, which is said.
5. What an engine leaves in float is named, with the reason: it was told to, it does not quantise this operator, or the
   compiler computes it in float.
6. Inputs and outputs are integers, so that firmware needs no float code, unless ``io`` is ``float32`` or an operator in
   float32 computes an output.

**Example.** A layer ``y = w x`` with ``w`` in [-0.5, 0.5]; calibration finds ``x`` in [0, 2] and ``y`` in [-1, 1]. With
8 bits, ``w`` has the scale 0.5/127 and the zero point 0, ``x`` 2/255 and -128, and ``y`` 2/255 and 0: ideally -0.5, but
the number 0 must be an integer. Products of int8 are summed in int32 and scaled by ``(0.5/127) (2/255) / (2/255)``,
which is an integer multiplication and a shift. An ``x`` of 3, which calibration did not have, becomes 127 as 2 does.

**What it does not do.** It does not train, nor measure accuracy (``evaluation`` does), and knows no projects: ``jobs``
makes it a step of a build. A file that is quantised already is refused. ``losses`` judges the noise of tensors, but
runs no network; the verbs ``compare`` and ``quantize`` do.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from mlfbuild.core import lazy_attributes

if TYPE_CHECKING:
    # fmt: off
    from mlfbuild.quantization.engines import METHOD_WORDS, engine_of, engine_versions, node_names
    from mlfbuild.quantization.losses import (
        CALIBRATION, GOOD, KEEP_FLOAT, LOSS_COLUMNS, LossAdvice, LossCases, LossMeter, LossReport, LostTensor,
        loss_rows, loss_summary, losses_text, unpaired_text,
    )
    from mlfbuild.quantization.quantize_keys import ACTIVATIONS, IO, MINMAX, WEIGHTS, QuantizeKeys, quantize_problems
    from mlfbuild.quantization.quantizing import QuantizedNetwork, QuantizedOperator, is_quantized, quantize
else:
    __getattr__ = lazy_attributes(__name__)
