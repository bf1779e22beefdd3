"""The one exception whose message is meant for the user."""


class SandglassError(Exception):
    """Something the user can act on; the command line prints its message as one line, without a traceback."""
