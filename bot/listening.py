"""The port of the web part: taken before anything else is started, so that a second process starts nothing."""

import socket

from store.errors import ConfigurationError


def bound(host: str, port: int) -> socket.socket:
    """Return a socket with this address that does not listen yet: until then a connection is refused, and waits not.

    Raises:
        ConfigurationError: the address is another process's, or none of this machine.
    """
    listener = socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if listener.family == socket.AF_INET6:
            listener.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
        listener.bind((host, port))
    except OSError as error:
        listener.close()
        raise _taken(host, port, error) from error
    return listener


def listen(listener: socket.socket) -> tuple[str, int]:
    """Take connections from now on and return the address; nobody else can have it from here on.

    Raises:
        ConfigurationError: another process that was bound to it at the same time was first.
    """
    host, port, *_ = listener.getsockname()
    try:
        listener.listen()
    except OSError as error:
        raise _taken(host, port, error) from error
    return host, port


def _taken(host: str, port: int, error: OSError) -> ConfigurationError:
    return ConfigurationError(
        f"Port {port} of {host} cannot be listened on: {error.strerror}. If another `acrouter up` is running, it does "
        "the work already; else give another --port or --host."
    )
