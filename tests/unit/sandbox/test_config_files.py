"""TOML and INI files of a repository are read, and none stalls the worker that reads it."""

import time
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from sandbox.config_files import read_ini, read_toml

DEEP = "a." * 200_000


@contextmanager
def at_once() -> Iterator[None]:
    before = time.process_time()
    yield
    assert time.process_time() - before < 3


def test_toml_is_read_as_it_is() -> None:
    text = """
        [project]  # an a.b.c project
        name = "a.b.c.d.e.f.g.h.i.j.k.l.m.n.o.p.q.r.s.t.u.v.w.x.y.z.a.b.c.d.e.f.g.h.i.j.k"
        'dotted.name'.x.y = '''a.b'''''
        versions = ["1.2.3", "4.5.6"]
    """
    found = read_toml(text)
    assert found is not None
    assert found["project"]["dotted.name"] == {"x": {"y": "a.b''"}}
    assert found["project"]["versions"] == ["1.2.3", "4.5.6"]


@pytest.mark.parametrize("text", ["a =", "a = 1\na = 2", f"a = {'9' * 5_000}", "[" * 100_000])
def test_what_is_no_toml_or_no_number_of_pythons_is_nothing(text: str) -> None:
    assert read_toml(text) is None


@pytest.mark.parametrize(
    "text",
    [
        f"{DEEP}b = 1",
        f"[{DEEP}b]",
        f"x = {{ {DEEP}b = 1 }}",
        '"=" . ' * 100_000 + "b = 1",
        # A string that seems to go on, and hides what follows it.
        f"x = ['''a'''', {{ {DEEP}b = 1 }}, '']",
        f'x = ["""a"""", {{ {DEEP}b = 1 }}, ""]',
        f'x = """\\""" # """\n{DEEP}b = 1',
        f"x = '#'\n{DEEP}b = 1",
    ],
)
def test_a_deep_key_is_not_read(text: str) -> None:
    with at_once():
        assert read_toml(text) is None


@pytest.mark.parametrize(
    "text", ['"""' + '\\"""' * 250_000, "'''" * 300_000, '"' * 1_000_000, "a-" * 500_000, "." * 1_000_000]
)
def test_strings_without_an_end_and_long_words_are_no_trap(text: str) -> None:
    with at_once():
        assert read_toml(text) is None


def test_ini_is_read_as_it_is() -> None:
    parser = read_ini("[a]\nb = c\n  d\n[a]\ne = %(x)s\n")
    assert parser is not None
    assert dict(parser.items("a")) == {"b": "c\nd", "e": "%(x)s"}


@pytest.mark.parametrize("text", ["a", "[s]\n" + " a\n" * 300_000, "a\n" * 400_000])
def test_what_is_no_ini_is_nothing(text: str) -> None:
    with at_once():
        assert read_ini(text) is None
