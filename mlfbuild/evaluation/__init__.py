"""The quality of a network: metrics over a test set, computed from batches of outputs, and their limits.

**What.** ``EvaluateKeys`` is what a project file says: the data, a metric, limits. ``measure`` returns an accumulator,
which is given the outputs of one batch after another and then returns an ``Evaluation``: the value, figures and
confusion of classes, the worst cases. ``missed`` compares it with the limits.

**Definitions.** Outputs are real numbers: the caller dequantises those of an integer network first. Of two equal
scores, the class with the lower number is taken for the higher. An output with one element is the score of class 1, and
class 0 has the rest to 1.

- ``top1``, ``top5``: part of the cases whose label is among the 1 or 5 classes with the highest scores.
- ``f1``: mean over classes of 2 TP / (2 TP + FP + FN), for the class with the highest score; classes that neither a
  label nor a result has do not count. This is scikit-learn's ``f1_score(average="macro")``.
- ``auc``: area under the ROC curve of each class against all others, as the probability that a case of the class has
  a higher score than another case, where equal scores count half (Hanley and McNeil 1982); the mean over classes that
  have both. This is ``roc_auc_score(multi_class="ovr", average="macro")``, which wants scores whose sum is 1.
- ``mse``, ``mae``: mean of the squares, or magnitudes, of the differences of all elements.
- ``iou``: intersection over union of the pixels of a class in all cases, mean over classes that occur (Everingham et
  al. 2010, the Pascal VOC challenge). The expected output has the number of a class for each pixel.
- ``module:function``: mean of what ``function(outputs, expected)`` returns, an array with one number for each case.

**Rules.**

1. The memory does not depend on the number of cases; ``auc`` puts scores into a temporary file and sorts them there.
2. Sums are in float64, batch after batch, so that equal data give equal values on every machine.
3. A value that is not a number misses every limit.

**Example.**::

    measured = measure(EvaluateKeys(data, "top1", at_least=0.9), network.outputs[0])
    for batch in dataset.batches(256):
        measured.add(outputs_of(batch), batch.labels)
    missed(measured.result(), keys)     # {} or {"at-least": "top1 is 0.8967, less than 0.9"}

**What it does not do.** It runs no network and reads no data.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from mlfbuild.core import lazy_attributes

if TYPE_CHECKING:
    # fmt: off
    from mlfbuild.evaluation.as_json import evaluation_in, evaluation_json
    from mlfbuild.evaluation.evaluate_keys import LIMITS, EvaluateKeys, limit_problem
    from mlfbuild.evaluation.evaluation import ClassFigures, Evaluation, WorstCase, missed
    from mlfbuild.evaluation.measurements import Measurement, measure
    from mlfbuild.evaluation.metric_kinds import METRICS, is_error, needs_labels
    from mlfbuild.evaluation.text import (
        MATRIX, EvaluationTable, class_title, confusions, evaluation_details, evaluation_tables, value_text,
        worst_classes,
    )
else:
    __getattr__ = lazy_attributes(__name__)
