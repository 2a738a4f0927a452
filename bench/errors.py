"""What can go wrong in a benchmark."""

from store.errors import AcrouterError


class BenchError(AcrouterError):
    """A benchmark cannot be measured."""
