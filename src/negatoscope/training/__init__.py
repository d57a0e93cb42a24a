"""Recipes, the loop, checkpoints."""
