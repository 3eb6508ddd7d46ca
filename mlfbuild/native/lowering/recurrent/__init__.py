"""Calls for ``graph/ops/recurrent``: recurrent layers, which keep a state from step to step."""
