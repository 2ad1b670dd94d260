"""The root of every error that a person may see."""


class GradmarketError(Exception):
    """Its text is the one line that a user reads: what, where, what was expected, what to do."""
