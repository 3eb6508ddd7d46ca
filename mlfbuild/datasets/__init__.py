"""Cases with which networks are calibrated and evaluated, read one batch after another.

**What.** ``DataKeys`` is what a project file says about data: a ``.npz`` file, a folder, or a function of the user.
``open_data`` turns it into a ``Dataset`` for the inputs of one network, which yields ``Batch`` after ``Batch``. Images
and recordings are prepared as the keys say. ``front_end`` writes the file with which firmware computes the same
features of audio.

**Rules.**

1. The memory does not depend on the number of cases: nothing reads a whole file, not even to check it. A mistake in the
   last case is therefore found last.
2. Numbers are real numbers, in float32, unless an array has exactly the integer type of the network's input. Whoever
   runs an integer network quantises them with the scale of its input, as its firmware would.
3. A batch axis of 1 of the network's input may be absent in the data.
4. Files are untrusted: no pickle is loaded, and sizes in headers are compared with the file. A function is code of the
   user, who runs it by naming it.
5. Order is that of the file, or of the names in a folder: the same data give the same batches on every machine.

**Example.** ``data/test.npz`` with ``in0`` of shape (1000, 49, 10) and ``labels`` of shape (1000,)::

    dataset = open_data(DataKeys(Path("data/test.npz")), network.inputs)
    for batch in dataset.batches(256):
        batch.inputs[0].shape, batch.labels      # (256, 1, 49, 10), array([3, 0, ...])

**What it does not do.** It computes no metric (``evaluation``) and no range of a tensor (``quantization``).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from mlfbuild.core import lazy_attributes

if TYPE_CHECKING:
    # fmt: off
    from mlfbuild.datasets.audio_front_end import FrontEnd, front_end
    from mlfbuild.datasets.cases import Batch, Dataset
    from mlfbuild.datasets.data_keys import DATA, DataKeys, data_problems
    from mlfbuild.datasets.functions import user_function
    from mlfbuild.datasets.npz import array_name
    from mlfbuild.datasets.sources import data_digest, data_files, open_data
    from mlfbuild.datasets.tflite_file import FileOperator, FileTensor, NetworkFile, write_tflite
else:
    __getattr__ = lazy_attributes(__name__)
