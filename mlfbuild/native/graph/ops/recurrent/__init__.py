"""Recurrent layers, which keep a state from step to step."""
