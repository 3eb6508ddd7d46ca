"""Budgets of a linked image: flash, RAM, stack, instructions, and growth since a baseline.

``check`` runs all of them after a link; the others each measure one kind.
"""
