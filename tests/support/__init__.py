"""Helpers of the tests: builders of models and archives, oracles."""
