"""The sandbox's branch of the error tree."""

from store.errors import AcrouterError


class SandboxError(AcrouterError):
    """Base of what can go wrong around untrusted code."""


class SandboxUnavailable(SandboxError):  # noqa: N818
    """Neither Docker nor bubblewrap can be used here, and the message says what to install; or the Docker daemon, which
    was there when acrouter started, does not answer: waiting may help."""


class ImageError(SandboxError):
    """The base image or a repository's set-up could not be made; the message carries the end of its log."""


class CheckoutError(SandboxError):
    """A repository or a commit could not be fetched."""


class RemoteUnavailable(CheckoutError):  # noqa: N818
    """The remote cannot be reached, or fails: waiting may help."""


class RemoteRefused(CheckoutError):  # noqa: N818
    """The remote refuses, says that nothing is there, or gave not all of it in time: a few tries may help."""


class PatchError(SandboxError):
    """A patch cannot be read, is not allowed or does not apply; the message is a sentence for people."""


class PushError(SandboxError):
    """The branch could not be pushed."""


class BudgetExceeded(SandboxError):  # noqa: N818
    """The meter refused a reservation: the next call could pass a cap."""


class StopRequested(SandboxError):  # noqa: N818
    """A person stopped the task, or its worker lost the lease."""
