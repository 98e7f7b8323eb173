"""The one exception that users see."""


class NMTError(Exception):
    """Something that a user can mend: one line that says what is wrong, where, and what to do.

    The command line prints the message and exits with code 2.
    """
