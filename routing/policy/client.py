"""Asks a policy model behind an OpenAI-compatible server (vLLM) for one of the pool's names.

https://docs.vllm.ai/en/latest/features/structured_outputs.html: `structured_outputs: {"choice": [...]}`. Servers that
do not know the field ignore it without a word, so what comes back is checked.
"""

import json
import time
from dataclasses import dataclass
from typing import Any

import httpx
from pydantic import BaseModel, ValidationError

from routing.policy.deadline import DeadlineError, within
from routing.policy.question import Question
from routing.policy.shares import Position, choice_shares

DEADLINE_S = 1.5
UNSURE = 0.5
"""Confidence in an answer that came without log-probabilities."""
_TOP = 20  # the most that vLLM reports unless told otherwise
_MAX_TOKENS = 100  # of a name of the pool, which has at most 100 characters
_MAX_BYTES = 1_000_000


class PolicyError(Exception):
    """The policy model cannot be asked, or its answer is no choice. Never leaves the voter."""


@dataclass(frozen=True)
class PolicyAnswer:
    """The name that the model gave, with a probability for each choice."""

    name: str
    shares: dict[str, float]
    confidence: float
    """The name's own probability; `UNSURE` where none was reported."""


class _Token(BaseModel):
    token: str
    logprob: float


class _Content(_Token):
    top_logprobs: list[_Token] = []


class _Logprobs(BaseModel):
    content: list[_Content] | None = None


class _Message(BaseModel):
    content: str | None = None


class _Choice(BaseModel):
    message: _Message
    logprobs: _Logprobs | None = None


class _Completion(BaseModel):
    choices: list[_Choice]


class PolicyClient:
    """One model of one server. Connections are kept. Safe to share between threads."""

    def __init__(self, base_url: str, model: str, *, api_key: str = "", deadline_s: float = DEADLINE_S) -> None:
        self.model = model
        self._url = base_url.rstrip("/") + "/chat/completions"
        self._deadline_s = deadline_s
        headers = {"Authorization": f"Bearer {api_key}"} if api_key else {}
        # A redirect would carry the task's words to another host: none is followed, and no proxy is asked.
        self._http = httpx.Client(timeout=deadline_s, headers=headers, follow_redirects=False, trust_env=False)

    def ask(self, question: Question) -> PolicyAnswer:
        """Return the model's answer within the deadline.

        Raises:
            PolicyError, DeadlineError, httpx.HTTPError: there is none that can be used.
        """
        body = {
            "model": self.model,
            "messages": question.messages(),
            "structured_outputs": {"choice": list(question.choices)},
            "temperature": 0,
            "max_tokens": _MAX_TOKENS,
            "logprobs": True,
            "top_logprobs": _TOP,
        }
        return _read(question.choices, within(self._deadline_s, lambda: self._post(body)))

    def _post(self, body: dict[str, Any]) -> bytes:
        until = time.monotonic() + self._deadline_s
        with self._http.stream("POST", self._url, json=body) as response:
            if response.status_code != httpx.codes.OK:
                raise PolicyError(f"the server answers with status {response.status_code}")
            content = b""
            for piece in response.iter_bytes():
                content += piece
                if len(content) > _MAX_BYTES:
                    raise PolicyError("the answer is too long")
                # Whoever waits gives up at this moment too: the same is said whichever clock is first.
                if time.monotonic() > until:
                    raise DeadlineError.late(self._deadline_s)
        return content


def _read(choices: tuple[str, ...], content: bytes) -> PolicyAnswer:
    try:
        completion = _Completion.model_validate(json.loads(content))
        choice = completion.choices[0]
    except (ValueError, ValidationError, IndexError, RecursionError) as error:
        raise PolicyError("the answer is no chat completion") from error
    name = choice.message.content or ""
    if name not in choices:
        raise PolicyError("the answer is no model of the pool; does the server know `structured_outputs`?")
    positions = [
        Position(token.token, {t.token: t.logprob for t in token.top_logprobs} | {token.token: token.logprob})
        for token in (choice.logprobs.content if choice.logprobs and choice.logprobs.content else ())
    ]
    shares = choice_shares(choices, positions) if positions else None
    if shares is None:
        return PolicyAnswer(name, {n: float(n == name) for n in choices}, UNSURE)
    return PolicyAnswer(name, shares, min(shares[name], 1.0))
