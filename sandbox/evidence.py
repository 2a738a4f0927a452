"""What a verdict rests on, as facts that a reviewer can check by hand."""

from collections.abc import Sequence
from dataclasses import dataclass

from sandbox.patch_text import Kind


@dataclass(frozen=True)
class ByHand:
    """Lines for bash by which a person comes to the same results. Untrusted words in them are quoted for the shell."""

    setup: Sequence[str]
    """What the tests need; empty where nothing was installed."""
    proof: str
    """Runs the tests that show the fix, and as few others as the runner allows; empty where no test shows it."""
    broken: str
    """The same for the tests that the patch breaks."""
    everything: str
    own_tests: Sequence[str]
    """Test files of the patch, to be taken over to the old source before `proof` fails there."""


@dataclass(frozen=True)
class Evidence:
    """Facts about a patch's tests. Test ids are sorted."""

    fixed: Sequence[str] = ()
    """Were there, failed before, and pass now with all tests as they were."""
    reproductions: Sequence[str] = ()
    """The patch's own: they fail on the old source and pass on the new one."""
    idle: Sequence[str] = ()
    """The patch's own that pass on the old source too: they show nothing."""
    own_failing: Sequence[str] = ()
    """The patch's own that fail with it."""
    flaky: Sequence[str] = ()
    """Changed between two equal runs, and count for nothing."""
    test_files: Sequence[tuple[Kind, str]] = ()
    """Files of tests that the patch changes, and how."""
    remarks: Sequence[str] = ()
    """What is unusual about the patch, as sentences."""
    by_hand: ByHand | None = None
    """None: there is nothing to run."""
