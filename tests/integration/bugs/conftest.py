"""Fixtures for the tests of the demo's bugs."""

from tests.support.bugs import all_bugs, make_bug, scripted_endpoint

__all__ = ["all_bugs", "make_bug", "scripted_endpoint"]
