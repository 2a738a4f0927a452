"""What is kept of a CI job's log."""

from bot.github.logs import failing_part, readable


def test_a_log_is_made_readable() -> None:
    raw = b"\xef\xbb\xbf2026-01-02T03:04:05.1234567Z \x1b[36mhello\x1b[0m \xff\r\n2026-01-02T03:04:06.1Z next\r\n"
    assert readable(raw).splitlines() == ["hello \ufffd", "next"]


def test_a_short_log_is_kept_whole() -> None:
    assert failing_part("one\ntwo\n") == "one\ntwo"


def test_the_failing_step_is_kept_and_the_noise_before_it_is_not() -> None:
    noise = "\n".join(f"##[group]Run install {n}\nfetching {n}\n##[endgroup]" for n in range(3000))
    step = "##[group]Run pytest\n##[endgroup]\nE   assert 3 == 4\ncart.py:7: AssertionError\n##[error]exit code 1."
    cleanup = "\n".join(f"##[group]Post cleanup {n}\n##[endgroup]" for n in range(3000))
    part = failing_part(f"{noise}\n{step}\n{cleanup}", limit=2000)
    assert "E   assert 3 == 4" in part
    assert "##[error]exit code 1." in part
    assert "fetching 10\n" not in part
    assert len(part) < 2600


def test_an_error_early_in_a_long_step_is_kept_with_its_surroundings() -> None:
    lines = [f"line {n}" for n in range(10_000)]
    lines[5000] = "Traceback (most recent call last):"
    lines[5001] = "ValueError: no such price"
    part = failing_part("\n".join(lines), limit=3000)
    assert "line 4999\nTraceback (most recent call last):\nValueError: no such price\nline 5002" in part
    assert part.endswith("line 9999")
    assert "[…]" in part


def test_one_endless_line_does_not_push_the_others_out() -> None:
    part = failing_part("x" * 1_000_000 + "\nerror: the real one\n" + "tail", limit=4000)
    assert "error: the real one" in part
    assert len(part) < 5000


def test_a_log_of_nothing_but_errors_keeps_its_end() -> None:
    part = failing_part("\n".join(f"error {n}" for n in range(50_000)), limit=2000)
    assert part.endswith("error 49999")
    assert len(part) < 2500
