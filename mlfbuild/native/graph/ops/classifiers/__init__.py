"""Classical machine learning: trees, distances to examples, coupled probabilities."""
