"""Texts that GitHub would not take are cut where it hurts least."""

from hypothesis import given
from hypothesis import strategies as st

from bot.github.limits import BODY_LIMIT, fit, fit_title


def units(text: str) -> int:
    return len(text.encode("utf-16-le")) // 2


def test_a_text_that_fits_is_left_alone() -> None:
    assert fit("words\n" * 10) == "words\n" * 10


def test_a_long_text_is_cut_at_the_end_of_a_line_with_everything_closed() -> None:
    text = "<!-- m -->\n<details><summary>Log</summary>\n\n````text\n" + "a line of the log\n" * 6000
    cut = fit(text)
    assert units(cut) <= BODY_LIMIT
    assert cut.count("````") == 2
    assert cut.count("<details") == cut.count("</details>")
    assert "a line of the log\n````" in cut
    assert "left out" in cut


@given(st.text(alphabet="`~\n x😀<details>/", max_size=3000), st.integers(700, 1500))
def test_whatever_it_is_it_fits(text: str, limit: int) -> None:
    assert units(fit(text, limit)) <= limit


def test_a_title_is_one_line() -> None:
    assert fit_title("two\nlines") == "two lines"
    assert units(fit_title("😀" * 300)) <= 256
