"""Putting a market on a chain, and reading it back."""
