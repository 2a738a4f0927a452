"""When a command line agent is ended, what it has paid by then, and what that says about the endpoint."""

import json
import socket
import struct
from concurrent.futures import ThreadPoolExecutor

import pytest

from sandbox.agent.command_line import _ending
from sandbox.agent.model_proxy import ModelProxy
from sandbox.agent.usage import most_tokens_of
from sandbox.agent_types import AgentLimits, ModelEndpoint
from sandbox.types import CommandResult
from tests.support.meters import CountingMeter
from tests.support.model_provider import KEY, asked, proxy, upstream


def test_a_program_that_repeats_what_is_refused_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sandbox.agent.model_proxy.MOST_UNANSWERED", 3)
    meter = CountingMeter()
    with upstream(429) as (url, requests):
        to = proxy(url, meter)
        assert [asked(to, "/v1/responses", {}) for _ in range(4)] == [(429, b"")] * 3 + [None]
    assert to.ended == ("ModelError", "3 requests were not answered.")
    assert (len(requests), meter.open, meter.spent_usd) == (3, [], 0.0)


def test_requests_that_are_no_good_say_nothing_about_the_endpoint(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sandbox.agent.model_proxy.MOST_UNANSWERED", 3)
    with upstream(400) as (url, _):
        to = proxy(url, CountingMeter())
        assert [asked(to, "/v1/responses", {}) for _ in range(4)] == [(400, b"")] * 3 + [None]
    assert to.ended == ("ProgramError", "3 requests were not answered.")


def test_a_program_that_repeats_what_is_not_sent_on_ends_and_has_paid_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sandbox.agent.model_proxy.MOST_REFUSED", 3)
    meter = CountingMeter()
    with upstream(200, b"{}") as (url, requests):
        to = proxy(url, meter)
        answers = [asked(to, path, {}) for path in ("/v1/models", "/v1/files", "/", "/v1/models")]
    assert [answer and answer[0] for answer in answers] == [403, 403, 403, None]
    assert to.ended == ("ProgramError", "3 requests were refused before they were sent.")
    assert (requests, meter.spent_usd, to.unusable) == ([], 0.0, "")


@pytest.mark.parametrize(
    ("status", "why"), [(200, ""), (400, ""), (429, "HTTP 429"), (503, "HTTP 503"), (401, "HTTP 401")]
)
def test_the_last_call_says_whether_the_endpoint_can_be_used(status: int, why: str) -> None:
    with upstream(status, b"{}") as (url, _):
        to = proxy(url, CountingMeter())
        asked(to, "/v1/responses", {})
    assert to.unusable == (f"m cannot be used: {why}" if why else "")


def test_a_call_that_the_attempts_end_cuts_off_says_nothing_about_the_endpoint() -> None:
    left_s = iter([1.0, 1.0])
    endpoint = ModelEndpoint("m", "openai/m-1", 1.0, 10.0, api_base="http://127.0.0.1:9/v1")
    to = ModelProxy(
        endpoint,
        CountingMeter(),
        AgentLimits(),
        remaining_s=lambda: next(left_s, 0.0),
        after_call=lambda _proxy: None,
    )
    assert asked(to, "/v1/responses", {}) is not None
    assert to.unusable == ""


@pytest.mark.parametrize(
    ("status", "content", "paid"),
    [
        (200, b"no usage", True),
        (200, b'{"usage": {"input_tokens": 10}}', True),
        (200, b'{"usage": {"output_tokens": 10}}', True),
        (500, b"", True),
        (529, b"", False),
        (429, b"", False),
        (302, b"", False),
    ],
)
def test_what_may_have_been_billed_counts_as_paid(status: int, content: bytes, paid: bool) -> None:
    meter = CountingMeter()
    with upstream(status, content) as (url, requests):
        answer = asked(proxy(url, meter), "/v1/responses", {"input": "hello"})
    assert answer is not None
    assert answer[0] == status
    assert len(requests) == 1, "neither repeated nor redirected"
    assert meter.settled == {"r0": meter.reserved["r0"] if paid else 0.0}


def test_a_connection_that_ends_without_an_answer_counts_as_paid() -> None:
    def hang_up(server: socket.socket) -> None:
        connection, _ = server.accept()
        connection.close()

    meter = CountingMeter()
    with socket.create_server(("127.0.0.1", 0)) as server, ThreadPoolExecutor(1) as pool:
        pool.submit(hang_up, server)
        answer = asked(proxy(f"http://127.0.0.1:{server.getsockname()[1]}/v1", meter), "/v1/responses", {})
    assert answer is not None
    assert answer[0] == 504
    assert meter.settled == meter.reserved != {}


def test_no_answer_makes_a_call_cheaper_than_all_of_its_words_from_the_cache() -> None:
    meter = CountingMeter()
    usage = {"input_tokens": 1000, "output_tokens": 10, "input_tokens_details": {"cached_tokens": 10**9}}
    with upstream(200, json.dumps({"usage": usage}).encode()) as (url, _):
        asked(proxy(url, meter), "/v1/responses", {})
    assert meter.spent_usd == pytest.approx((1000 * 0.1 + 10 * 10.0) / 1e6)


def test_what_is_reserved_covers_a_request_that_is_written_into_the_cache_whole() -> None:
    meter = CountingMeter()
    endpoint = ModelEndpoint("m", "anthropic/m-1", 1.0, 10.0)
    with upstream() as (url, requests):
        asked(proxy(url, meter, model=endpoint.litellm_id), "/v1/messages", {"messages": ["words " * 1000]})
    [(_path, _headers, sent)] = requests
    most_written = most_tokens_of(endpoint, json.dumps(sent))
    assert meter.reserved["r0"] >= (1.25 * most_written * 1.0 + 500 * 10.0) / 1e6


def test_a_model_that_cannot_be_reached_costs_nothing() -> None:
    meter = CountingMeter()
    to = proxy("http://127.0.0.1:9", meter)
    answer = asked(to, "/v1/responses", {})
    assert answer is not None
    assert (answer[0], meter.spent_usd, meter.open) == (502, 0.0, [])
    assert to.unusable == "m cannot be used: no connection"


@pytest.mark.parametrize(
    ("meter", "limits", "left_s", "ending"),
    [
        (CountingMeter(cap_usd=0.0), AgentLimits(), 10.0, "BudgetExceeded"),
        (CountingMeter(stop_after=0), AgentLimits(), 10.0, "Stopped"),
        (CountingMeter(), AgentLimits(cost_usd=0.0001), 10.0, "LimitsExceeded"),
        (CountingMeter(), AgentLimits(steps=0), 10.0, "LimitsExceeded"),
        (CountingMeter(), AgentLimits(), -1.0, "TimeExceeded"),
    ],
)
def test_the_agent_ends_before_a_call_that_may_not_be_made(
    meter: CountingMeter, limits: AgentLimits, left_s: float, ending: str
) -> None:
    with upstream() as (url, requests):
        to = proxy(url, meter, limits, left_s)
        assert asked(to, "/v1/responses", {}) is None
    assert to.ended is not None
    assert (to.ended[0], requests, meter.open) == (ending, [], [])


def test_an_error_that_repeats_the_key_is_passed_on_without_it() -> None:
    with upstream(400, f"not with {KEY}".encode()) as (url, _):
        assert asked(proxy(url, CountingMeter()), "/v1/responses", {}) == (400, b"not with [secret]")


def test_a_refused_key_ends_the_agent_and_does_not_show() -> None:
    with upstream(401, f"bad key {KEY}".encode()) as (url, _):
        to = proxy(url, CountingMeter())
        assert asked(to, "/v1/responses", {}) is None
    assert to.ended == ("ModelError", "m cannot be used: HTTP 401")


@pytest.mark.parametrize(
    ("model", "own", "others"),
    [
        ("openai/m-1", "/v1/chat/completions", ["/v1/responses", "/v1/messages"]),
        ("hosted_vllm/m-1", "/v1/chat/completions", ["/v1/responses", "/v1/messages"]),
        ("anthropic/m-1", "/v1/messages", ["/v1/chat/completions", "/v1/responses"]),
    ],
)
def test_only_where_the_model_must_be_its_absence_ends_the_agent(model: str, own: str, others: list[str]) -> None:
    with upstream(404, b"{}") as (url, _):
        to = proxy(url, CountingMeter(), model=model)
        for path in others:
            assert asked(to, path, {}) == (404, b"{}"), "a server may lack it: the program is told, and nobody else"
            assert (to.ended, to.unusable) == (None, "")
        assert _ending(to, CommandResult("no such path", 1, False, 1.0, False), "")[0] == "ProgramError"
        assert asked(to, own, {}) is None
    assert to.ended == ("ModelError", "m cannot be used: HTTP 404")


@pytest.mark.parametrize("path", ["/v1/chat/completions", "/v1/messages"])
def test_a_model_that_has_answered_is_not_gone(path: str) -> None:
    with upstream([200, 404], b"{}") as (url, _):
        to = proxy(url, CountingMeter())
        assert asked(to, "/v1/chat/completions", {}) == (200, b"{}")
        assert asked(to, path, {}) == (404, b"{}")
    assert (to.ended, to.unusable, len(to.calls)) == (None, "", 1)


@pytest.mark.parametrize("status", [401, 403])
@pytest.mark.parametrize(
    ("model", "own", "other"),
    [("openai/m-1", "/v1/chat/completions", "/v1/messages"), ("anthropic/m-1", "/v1/messages", "/v1/responses")],
)
def test_a_path_that_looks_for_the_key_elsewhere_refuses_no_model(
    status: int, model: str, own: str, other: str
) -> None:
    with upstream(status, b"{}") as (url, _):
        to = proxy(url, CountingMeter(), model=model)
        assert asked(to, other, {}) == (status, b"{}"), "code in the sandbox may ask for it, and ends no attempt so"
        assert (to.ended, to.unusable) == (None, "")
        assert asked(to, own, {}) is None
    assert to.ended == ("ModelError", f"m cannot be used: HTTP {status}")


@pytest.mark.parametrize("status", [401, 403])
def test_a_path_that_is_not_for_this_key_ends_no_agent_whose_model_has_answered(status: int) -> None:
    with upstream([200, status], b"{}") as (url, _):
        to = proxy(url, CountingMeter())
        assert asked(to, "/v1/chat/completions", {}) == (200, b"{}")
        assert asked(to, "/v1/responses", {}) == (status, b"{}")
        assert (to.ended, to.unusable) == (None, "")
        assert asked(to, "/v1/chat/completions", {}) is None
    assert to.ended == ("ModelError", f"m cannot be used: HTTP {status}")


def test_a_path_that_is_not_there_does_not_make_up_for_an_outage() -> None:
    with upstream([503, 404], b"{}") as (url, _):
        to = proxy(url, CountingMeter())
        assert asked(to, "/v1/chat/completions", {}) == (503, b"{}")
        assert asked(to, "/v1/messages", {}) == (404, b"{}")
    assert (to.ended, to.unusable) == (None, "m cannot be used: HTTP 503")


def test_a_line_that_is_misused_is_cut() -> None:
    for piece in (struct.pack(">I", 2**31), struct.pack(">I", 2) + b"{}{}"):
        to = proxy("http://127.0.0.1:9", CountingMeter())
        assert to(piece) is None
        assert to.ended is not None
        assert to.ended[0] == "ProgramError", "that is not the endpoint's"
    to = proxy("http://127.0.0.1:9", CountingMeter())
    assert [to(bytes([b])) for b in struct.pack(">I", 5)] == [b""] * 4, "pieces of any size are put together"
    answer = to(b"hello")
    assert answer is not None
    assert json.loads(answer[4:])["status"] == 400
