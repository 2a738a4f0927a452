"""Finds a repository's tests, runs them in a sandbox and reads their results by test id."""

from sandbox.testing.discovery import discover
from sandbox.testing.run import run_tests

__all__ = ["discover", "run_tests"]
