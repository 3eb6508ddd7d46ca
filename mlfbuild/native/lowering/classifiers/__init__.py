"""Calls for ``graph/ops/classifiers``: classical machine learning: trees, distances, coupled probabilities.

Models of scikit-learn come as operators of ONNX's domain ai.onnx.ml. The frontend divides them into parts, of which
three have kernels of their own; the rest are products of matrices, EXP, comparisons and ARG_MAX.

TREE_ENSEMBLE, a forest. Its tables are the largest constants of such networks, so they are as small as the trees permit
(``tree_ensemble``):

1. A node has a feature, a threshold and two children. Children are numbers of nodes, or -1 - v for a leaf, v being its
   first vote. Children follow their parents.
2. Floats are compared as integers, because many cores have no floating-point unit: their bits, with all but the sign
   inverted if it is set, have the order of the numbers. Thresholds are stored in that form plus one constant, which
   moves all NaN to one end of the order, and plus 1, so that "less than" means "at most".
3. Equal thresholds are stored once if that is smaller: a byte for each node and 4 for each of at most 256 thresholds,
   instead of 4 bytes for each node.
4. Equal leaves are stored once. If each leaf has one vote, and all leaves of a tree vote for the same target, the
   target is stored for each tree; if that is always target 0, nowhere.
5. The width follows from the largest number: features of 8, 16 or 32 bits, children of 16 or 32.

For example, a tree that gives 3 if x0 > 0.5, else 1 if x2 <= -1, else 3::

    features     uint8  [0, 2]
    thresholds   uint32 [3196059650, 1073741825]       0.5 and -1 in the form above
    children     int16  [[1, -2], [-1, -2]]            the leaf -1 has the weight 1, the leaf -2 the weight 3
    weights      float  [1, 3]                         of three leaves in the file
    roots        int16  [0]

SVM. The kernel of a row with each support vector is a product with a constant matrix (linear, polynomial, sigmoid), or
EXP(-gamma * SQUARED_DISTANCES) for RBF. The distances have a kernel because the usual expansion |x|^2 - 2 x p + |p|^2
loses digits if x is near p. The result is again a product with a matrix, of coefficients of all pairs of classes.

PAIRWISE_COUPLING makes probabilities of classes from those of pairs, by at most 100 iterations (or one for each class)
of libsvm's method (Wu, Lin and Weng, 2004) in float32. Its scratch memory holds the matrix of pairs, its products
and shares: 4 * classes * (2 * classes + 1) bytes. For example, 0.8 for 0 against 1, 0.6 for 0 against 2 and 0.3 for 1
against 2 become 0.52, 0.14 and 0.34.

Trees are not unrolled into C code: that is faster and needs several times the flash (docs/performance.md compares
both). Training and pruning are not done here.
"""
