"""The root of every error that a person may see."""

from protocol.core.text import one_line

LONGEST = 2000  # letters: room for a reason from each of many peers


class GradmarketError(Exception):
    """Its text is the one line that a user reads: what, where, what was expected, what to do.

    A text may quote a stranger, so it is made one printable line here, for every kind of error.
    """

    def __str__(self) -> str:
        return one_line(super().__str__(), LONGEST)
