"""Calls for ``graph/ops/classifiers``: classical machine learning: trees, distances, coupled probabilities.

Models of scikit-learn come as operators of ONNX's domain ai.onnx.ml. The frontend divides them into parts, of which
three have kernels of their own; the rest are products of matrices, EXP, comparisons and ARG_MAX.

TREE_ENSEMBLE, a forest. Its nodes are comparisons of integers (``tree_splits``):

1. Features that the network gets as integers are compared as they are (``passes/integer_trees``). Floats are compared
   as integers, because many cores have no floating-point unit: their bits, with all but the sign inverted if it is set,
   have the order of the numbers. Adding a constant moves all NaN to one end of the order.
2. A node has a feature, a limit and two children: numbers of nodes, or -1 - v for a leaf. Children follow their
   parents. Nodes that every value leaves by the same child are left out.

With ``trees: tables``, the tables are the largest constants of such networks, so they are as small as the trees permit
(``tree_ensemble``):

3. The nodes are a stream of words in which the first child is behind its parent, so that only the distance to the
   second child is stored.
4. Equal thresholds are stored once, for all features or for each, if that is smaller and a word of 16 bits has room for
   the position and the feature.
5. Equal leaves are stored once. If each leaf has one vote, and all leaves of a tree vote for the same target, the
   target is stored for each tree; if that is always target 0, nowhere. Weights are stored once if that saves much.

For example, a tree that gives 3 if x0 > 0.5, else 1 if x2 <= -1, else 3::

    nodes        int16  [4, 5, 2, 3, -1, -2]         feature 0 with threshold 1, feature 2 with threshold 0, two leaves
    thresholds   int32  [-1073741823, 1048576002]    -1 and 0.5 in the form above, plus 1
    weights      float  [1, 3]                       of three leaves in the file
    roots        int32  [0]

With ``trees: code``, each node is a comparison in C (``tree_code``): a quarter to a half of the instructions, and two
to four times the flash (docs/performance.md has figures). With ``parameters: replaceable``, they are one table that has
room for trees of other shapes (``tree_stream``).

SVM. The kernel of a row with each support vector is a product with a constant matrix (linear, polynomial, sigmoid), or
EXP(-gamma * SQUARED_DISTANCES) for RBF. The distances have a kernel because the usual expansion |x|^2 - 2 x p + |p|^2
loses digits if x is near p. The result is again a product with a matrix, of coefficients of all pairs of classes.

PAIRWISE_COUPLING makes probabilities of classes from those of pairs, by at most 100 iterations (or one for each class)
of libsvm's method (Wu, Lin and Weng, 2004) in float32. Its scratch memory holds the matrix of pairs, its products
and shares: 4 * classes * (2 * classes + 1) bytes. For example, 0.8 for 0 against 1, 0.6 for 0 against 2 and 0.3 for 1
against 2 become 0.52, 0.14 and 0.34.

Training and pruning are not done here.
"""
