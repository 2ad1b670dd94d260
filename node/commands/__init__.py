"""The command groups of gradmarket."""
