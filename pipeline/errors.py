"""The one exception whose message is meant for the user."""


class SandglassError(Exception):
    """Something the user can act on; the command line prints its message as one line, without a traceback."""

    def __str__(self) -> str:
        """Return the message on one line, whatever it quotes: what cannot be printed is escaped."""
        text = super().__str__()
        return "".join(char if char.isprintable() else repr(char)[1:-1] for char in text)
