"""What can be wrong with a stream's files."""

from store.errors import ConfigurationError


class StreamError(ConfigurationError):
    """A file of a stream is missing or wrong; the message names the file, the line and what to do."""
