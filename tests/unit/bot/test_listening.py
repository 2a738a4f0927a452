"""The port of the web part is one process's alone, and is known to be before anything is started."""

import socket

import pytest

from bot.listening import bound, listen
from store.errors import ConfigurationError


def test_a_port_that_is_listened_on_is_refused_in_words() -> None:
    with bound("127.0.0.1", 0) as first:
        host, port = listen(first)
        with pytest.raises(ConfigurationError, match=rf"Port {port} of {host} cannot be listened on: Address already"):
            bound(host, port)


def test_of_two_that_begin_together_one_listens() -> None:
    with bound("127.0.0.1", 0) as first, bound("127.0.0.1", first.getsockname()[1]) as second:
        listen(first)
        with pytest.raises(ConfigurationError, match="give another --port or --host"):
            listen(second)


def test_a_connection_is_refused_until_it_is_listened_on() -> None:
    with bound("127.0.0.1", 0) as listener:
        with pytest.raises(ConnectionRefusedError):
            socket.create_connection(listener.getsockname())
        socket.create_connection(listen(listener)).close()


def test_an_address_of_another_machine_is_refused_in_words() -> None:
    with pytest.raises(ConfigurationError, match=r"Port 8080 of 192\.0\.2\.1 cannot be listened on"):
        bound("192.0.2.1", 8080)
