"""Calls for ``graph/ops/classifiers``: classical machine learning: trees, distances, coupled probabilities."""
