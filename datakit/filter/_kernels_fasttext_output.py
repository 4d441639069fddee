"""The output layer of fastText over the mean of a row's vectors: softmax, hierarchical softmax, one against all.

Sums, logarithms and ties are fastText's own: see `_kernels_fasttext`. With hierarchical softmax (Joulin et al. 2016) a
label's probability is the product of the turns from the root of a Huffman tree to its leaf.
"""

import numpy as np
from numba import njit

SOFTMAX, HIERARCHICAL, ONE_VS_ALL = range(3)

_SIGMOID_LIMIT, _SIGMOID_STEPS = np.float32(8), 512
_FLOOR = 1e-5  # fastText takes log(p + 1e-5), and its probabilities come back through exp
_NEVER = np.float32(-np.inf)


@njit(cache=True, nogil=True)
def _fill_logits(output_DL, norms, acc_D, logits_L):  # type: ignore[no-untyped-def]
    """Fill `logits_L`: each output row times the hidden vector, summed over the dimensions in order."""
    labels = len(logits_L)
    for label in range(labels):
        logits_L[label] = np.float32(0)
    for d in range(len(acc_D)):
        x = acc_D[d]
        for label in range(labels):
            logits_L[label] += output_DL[d, label] * x
    for label in range(labels):
        logits_L[label] *= norms[label]


@njit(cache=True, nogil=True, forceinline=True)
def _log(p):  # type: ignore[no-untyped-def]
    """fastText's logarithm of a float32: it never sees zero."""
    return np.float32(np.log(np.float64(p) + _FLOOR))


@njit(cache=True, nogil=True)
def _to_probabilities(loss, sigmoid, p):  # type: ignore[no-untyped-def]
    """Turn logits `p` into probabilities: softmax, or a sigmoid of each from fastText's table."""
    if loss == ONE_VS_ALL:
        for label in range(len(p)):
            x = p[label]
            if x < -_SIGMOID_LIMIT:
                p[label] = np.float32(0)
            elif x > _SIGMOID_LIMIT:
                p[label] = np.float32(1)
            else:
                step = (x + _SIGMOID_LIMIT) * np.float32(_SIGMOID_STEPS) / _SIGMOID_LIMIT / np.float32(2)
                p[label] = sigmoid[np.int64(step)]
        return
    largest = p[0]
    for label in range(len(p)):
        largest = max(largest, p[label])
    total = np.float32(0)
    for label in range(len(p)):
        p[label] = np.exp(p[label] - largest)
        total += p[label]
    for label in range(len(p)):
        p[label] /= total


@njit(cache=True, nogil=True)
def _best_flat(p):  # type: ignore[no-untyped-def]
    """(label, log score) of the most probable label; of equal ones the last, as fastText's heap has it."""
    largest = p[0]
    for label in range(len(p)):
        largest = max(largest, p[label])
    best, score = -1, _NEVER
    for label in range(len(p)):
        if p[label] >= largest * np.float32(0.999):  # equal logarithms are not only those of equal values
            this = _log(p[label])
            if this >= score:
                best, score = label, this
    return best, score


@njit(cache=True, nogil=True, forceinline=True)
def _turn(logit):  # type: ignore[no-untyped-def]
    """(log of going left, log of going right) at an inner node."""
    f = np.float32(1.0 / np.float64(np.float32(1) + np.exp(-logit)))
    return _log(np.float32(1.0 - np.float64(f))), _log(f)


@njit(cache=True, nogil=True)
def _best_leaf(left, right, logits_L, stack, scores):  # type: ignore[no-untyped-def]
    """(label, log score) of the best leaf, in fastText's depth-first order; (-1, floor) where all fall below 1e-5."""
    labels = (len(left) + 1) // 2
    best, score = np.int64(-1), _log(np.float32(0))
    stack[0], scores[0] = len(left) - 1, np.float32(0)
    depth = 1
    while depth > 0:
        depth -= 1
        node, here = np.int64(stack[depth]), scores[depth]
        if here < score:
            continue
        if node < labels:
            best, score = node, here
            continue
        go_left, go_right = _turn(logits_L[node - labels])
        stack[depth], scores[depth] = right[node], here + go_right
        stack[depth + 1], scores[depth + 1] = left[node], here + go_left
        depth += 2
    return best, score


@njit(cache=True, nogil=True)
def _leaf(left, parent, logits_L, stack, label):  # type: ignore[no-untyped-def]
    """Log score of one label: the turns from the root to its leaf."""
    labels = (len(left) + 1) // 2
    depth, node = 0, label
    while parent[node] >= 0:
        stack[depth] = node
        depth, node = depth + 1, parent[node]
    score = np.float32(0)
    while depth > 0:
        depth -= 1
        go_left, go_right = _turn(logits_L[node - labels])
        score += go_left if left[node] == stack[depth] else go_right
        node = stack[depth]
    return score


@njit(cache=True, nogil=True)
def best(loss, output_DL, norms, left, right, sigmoid, means_ND, counts, labels, scores):  # type: ignore[no-untyped-def]
    """Write the best label of each row (int32, -1: the model has none) and its probability (float32)."""
    logits_L = np.empty(output_DL.shape[1], np.float32)
    stack, stack_scores = np.empty(len(left) + 1, np.int32), np.empty(len(left) + 1, np.float32)
    for row in range(len(counts)):
        labels[row], scores[row] = -1, np.float32(0)
        if counts[row] == 0:
            continue
        _fill_logits(output_DL, norms, means_ND[row], logits_L)
        if loss == HIERARCHICAL:
            label, score = _best_leaf(left, right, logits_L, stack, stack_scores)
        else:
            _to_probabilities(loss, sigmoid, logits_L)
            label, score = _best_flat(logits_L)
        if label >= 0:
            labels[row], scores[row] = label, np.exp(score)


@njit(cache=True, nogil=True)
def best_among(loss, output_DL, norms, left, parent, sigmoid, means_ND, counts, some, labels, scores):  # type: ignore[no-untyped-def]
    """As `best`, choosing among the labels of `some` (int64) alone; of equal ones the last."""
    logits_L, stack = np.empty(output_DL.shape[1], np.float32), np.empty(len(left) + 1, np.int32)
    for row in range(len(counts)):
        labels[row], scores[row] = -1, np.float32(0)
        if counts[row] == 0:
            continue
        _fill_logits(output_DL, norms, means_ND[row], logits_L)
        if loss != HIERARCHICAL:
            _to_probabilities(loss, sigmoid, logits_L)
        chosen, score = np.int64(-1), _NEVER
        for label in some:
            this = _leaf(left, parent, logits_L, stack, label) if loss == HIERARCHICAL else _log(logits_L[label])
            if this >= score:
                chosen, score = label, this
        labels[row], scores[row] = chosen, np.exp(score)
