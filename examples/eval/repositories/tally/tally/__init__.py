"""Plain-text accounting."""

__version__ = "1.4.0"


class TallyError(Exception):
    """A mistake of the user's, with the place where it is known."""

    def __init__(self, message, place=None):
        super().__init__(f"{place}: {message}" if place else message)
        self.place = place
