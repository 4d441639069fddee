"""The server as clients see it: OpenAI's own client, malformed ones, and ones that go away."""

import asyncio
import json
import shutil
import socket
import struct
import time
from collections.abc import AsyncIterator, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any
from urllib.parse import urlsplit

import httpx2 as httpx
import openai
import pytest

from datakit.pack.chat import ChatTokenizer
from tests.train.serve.conftest import ANSWERS, TOOL, Server
from train.serve.__main__ import main
from train.serve.server import ServeConfig, Service, application

HELLO = [{"role": "user", "content": "hello"}]
GREEDY: dict[str, Any] = {"model": "parrot", "temperature": 0}
JSON_HEAD = b"POST /v1/chat/completions HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"


@pytest.fixture(scope="module")
def client(server: Server) -> Iterator[openai.OpenAI]:
    with openai.OpenAI(base_url=f"{server.url}/v1", api_key="none", max_retries=0, timeout=60) as found:
        yield found


def user(text: str) -> list[dict[str, str]]:
    return [{"role": "user", "content": text}]


def test_a_chat_answer_is_what_the_model_learnt_whole_and_streamed(client, server):
    found = client.chat.completions.create(messages=HELLO, **GREEDY)
    (choice,) = found.choices
    assert (choice.message.content, choice.finish_reason) == (ANSWERS["hello"], "stop")
    assert found.usage.completion_tokens > 10
    assert found.usage.total_tokens == found.usage.prompt_tokens + found.usage.completion_tokens
    options = {"stream": True, "stream_options": {"include_usage": True}}
    parts = [HELLO[0] | {"content": [{"type": "text", "text": text} for text in ("hel", "lo")]}]  # joined as in ingest
    chunks = list(client.chat.completions.create(messages=parts, **options, **GREEDY))
    assert chunks[0].choices[0].delta.role == "assistant"
    assert "".join(c.choices[0].delta.content or "" for c in chunks[:-1]) == ANSWERS["hello"]
    assert [c.choices[0].finish_reason for c in chunks[:-1] if c.choices[0].finish_reason] == ["stop"]
    assert (chunks[-1].choices, chunks[-1].usage.total_tokens) == ([], found.usage.total_tokens)
    assert len({c.id for c in chunks}) == 1
    text = httpx.post(f"{server.url}/v1/chat/completions", json={"messages": HELLO, **options}).text
    assert text.endswith("data: [DONE]\n\n") and all(line.startswith("data: ") for line in text.split("\n\n") if line)


@pytest.mark.parametrize("stream", [False, True])
def test_thoughts_and_parallel_tool_calls_are_apart(client, stream):
    found = client.chat.completions.create(messages=user("think"), stream=stream, **GREEDY)
    said = [c.choices[0].delta for c in found] if stream else [found.choices[0].message]
    assert "".join(getattr(d, "reasoning_content", None) or "" for d in said) == "Let me see."
    assert "".join(d.content or "" for d in said) == "It is four."
    found = client.chat.completions.create(messages=user("weather"), tools=[TOOL], stream=stream, **GREEDY)
    chunks = [*found] if stream else [found]
    said = [c.choices[0].delta if stream else c.choices[0].message for c in chunks]
    calls = [call for d in said for call in d.tool_calls or ()]
    assert [(c.function.name, json.loads(c.function.arguments)["city"]) for c in calls] == [
        ("weather", "Paris"), ("weather", "東京")]  # fmt: skip
    assert not stream or [call.index for call in calls] == [0, 1]
    assert chunks[-1].choices[0].finish_reason == "tool_calls" and len({call.id for call in calls}) == 2
    assert not any(d.content for d in said)


def test_tools_are_called_as_the_client_wants(client):
    def calls(**options: Any) -> list[Any]:
        found = client.chat.completions.create(messages=user("weather"), tools=[TOOL], **options, **GREEDY).choices[0]
        assert (found.finish_reason == "tool_calls") == bool(found.message.tool_calls)
        return found.message.tool_calls or []

    assert len(calls(tool_choice="auto")) == 2
    assert calls(tool_choice="none") == []


def test_stop_strings_and_lengths_end_an_answer(client):
    found = client.chat.completions.create(messages=HELLO, stop=["how are", "never"], **GREEDY).choices[0]
    assert (found.message.content, found.finish_reason) == ("Hello 你好 there, ", "stop")
    cut = client.chat.completions.create(messages=HELLO, max_completion_tokens=5, **GREEDY)
    assert (cut.choices[0].finish_reason, cut.usage.completion_tokens) == ("length", 5)


def test_the_same_seed_gives_the_same_answers_while_others_are_served(client):
    def ask(seed: int) -> list[str]:
        body = {"messages": user("something"), "temperature": 1.5, "max_tokens": 30, "model": "", "n": 2}
        found = client.chat.completions.create(seed=seed, extra_body={"ignore_eos": True}, **body)
        return [c.message.content for c in found.choices]

    alone = [ask(seed) for seed in (1, 2)]
    with ThreadPoolExecutor(4) as pool:
        assert list(pool.map(ask, (1, 2, 1, 2))) == alone * 2
    assert len({*alone[0], *alone[1]}) > 2


def test_log_probabilities_add_up(client):
    found = client.chat.completions.create(messages=HELLO, logprobs=True, top_logprobs=3, **GREEDY).choices[0]
    content = found.logprobs.content
    assert b"".join(bytes(t.bytes or b"") for t in content if t.bytes).decode().startswith("Hello ")
    assert all(t.logprob == t.top_logprobs[0].logprob and -0.5 < t.logprob <= 0 for t in content)
    assert all(len(t.top_logprobs) == 3 for t in content)
    legacy = client.completions.create(prompt="hello", logprobs=2, max_tokens=4, **GREEDY).choices[0].logprobs
    assert [len(legacy.tokens), len(legacy.token_logprobs), len(legacy.top_logprobs[0])] == [4, 4, 2]


def test_completions_take_texts_and_ids_and_give_text_as_it_is(client, model_folder):
    tokenizer = ChatTokenizer.load(model_folder)
    ids = tokenizer.encode_document("hello")
    body: dict[str, Any] = {"max_tokens": 6, **GREEDY}
    one, two = (client.completions.create(prompt=prompt, **body).choices[0].text for prompt in ("hello", ids))
    both = client.completions.create(prompt=["hello", ids], **body)
    assert [c.text for c in both.choices] == [one, two] == [one, one]
    assert "".join(c.choices[0].text for c in client.completions.create(prompt="hello", stream=True, **body)) == one
    said = tokenizer.encode_prompt(user("think"))
    whole = client.completions.create(prompt=said, max_tokens=60, **GREEDY)
    assert (whole.choices[0].text, whole.usage.prompt_tokens) == (ANSWERS["think"], len(said))


@pytest.mark.parametrize(
    ("body", "status", "words"),
    [
        ({"messages": HELLO, "model": "gpt-4"}, 404, "does not exist"), ({"messages": []}, 400, "messages"),
        ({"messages": [{"role": "wizard", "content": "x"}]}, 400, "messages.0.role"),
        ({"messages": user("x" * 9000)}, 400, "context"), ({"messages": HELLO, "temperature": -1}, 400, "temperature"),
        ({"messages": HELLO, "temperature": float("inf")}, 400, ""), ({"messages": HELLO, "n": 1000}, 400, "n"),
        ({"messages": HELLO, "logit_bias": {"999999": 1}}, 400, "logit_bias"),
        ({"messages": HELLO, "response_format": {"type": "json_object"}}, 400, "response_format"),
        ({"messages": [HELLO[0] | {"content": [{"type": "image_url", "image_url": {"url": "x"}}]}]}, 400, "content"),
        ({"messages": HELLO, "tool_choice": "required"}, 400, "tool_choice"),
        ({"messages": HELLO, "parallel_tool_calls": False}, 400, "parallel_tool_calls"),
        ({"messages": [{"role": "tool", "content": ""}]}, 400, "an empty result"),
        ({"messages": user("\ud800")}, 400, "surrogate"), ({"messages": HELLO, "top_logprobs": 3}, 400, "logprobs"),
        ([1], 400, ""),
    ],
)  # fmt: skip
def test_a_request_that_makes_no_sense_is_refused(server, body, status, words):
    head = {"content-type": "application/json"}
    found = httpx.post(f"{server.url}/v1/chat/completions", content=json.dumps(body), headers=head)
    error = found.json()["error"]
    assert (found.status_code, set(error)) == (status, {"message", "type", "param", "code"})
    assert words in error["message"]


def test_other_requests_that_make_no_sense(server, client):
    post, as_json = f"{server.url}/v1/chat/completions", {"content-type": "application/json"}
    for content, headers, status in (
        (b"{", as_json, 400),
        (b"[" * 100_000, as_json, 400),
        (json.dumps({"messages": HELLO}), {"content-type": "text/plain"}, 400),
        (b"x" * 300_000, {}, 413),
        ((b"x" * 9000 for _ in range(40)), {}, 413),
    ):
        found = httpx.post(post, content=content, headers=headers)
        assert (found.status_code, found.json()["error"]["param"]) == (status, None)
    assert httpx.get(f"{server.url}/v1/nothing").json()["error"]["code"] == "not_found"
    assert httpx.get(post).status_code == 405
    assert httpx.get(f"{server.url}/v1/models", headers={"host": "evil.example"}).status_code == 403
    headers = httpx.get(f"{server.url}/health", headers={"origin": "http://evil.example"}).headers
    assert "access-control-allow-origin" not in headers and headers["x-content-type-options"] == "nosniff"
    with pytest.raises(openai.NotFoundError):
        client.chat.completions.create(messages=HELLO, model="other")
    assert client.models.list().data[0].id == client.models.retrieve("parrot").id == "parrot"


def test_a_full_queue_is_429_and_a_client_that_goes_away_frees_its_place(server):
    body = {"messages": HELLO, "max_tokens": 1500, "ignore_eos": True, "n": 4, "stream": True}

    async def go() -> list[int]:
        async with httpx.AsyncClient(timeout=60) as many:

            async def ask() -> int:
                async with many.stream("POST", f"{server.url}/v1/chat/completions", json=body) as response:
                    await response.aiter_lines().__anext__()
                    await asyncio.sleep(0.5)
                    return response.status_code

            return await asyncio.gather(*(ask() for _ in range(8)))

    statuses = asyncio.run(go())
    assert {200, 429} == set(statuses)
    wait_until_idle(server)


def wait_until_idle(server: Server, seconds: float = 20) -> None:
    end = time.monotonic() + seconds
    while server.metric("slots_busy") or server.metric("requests_waiting"):
        assert time.monotonic() < end, "places are not free again"
        time.sleep(0.1)


@pytest.mark.parametrize("stream", [True, False])
def test_a_client_that_vanishes_frees_its_place(server, stream):
    before, at = server.metric("generated_tokens"), urlsplit(server.url)
    body = json.dumps({"messages": HELLO, "max_tokens": 1800, "ignore_eos": True, "n": 4, "stream": stream})
    with socket.create_connection((at.hostname, at.port)) as connection:
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))  # a reset, no farewell
        connection.sendall(JSON_HEAD + b"Content-Length: %d\r\n\r\n" % len(body) + body.encode())
        while not server.metric("slots_busy"):
            time.sleep(0.02)
    wait_until_idle(server)
    assert server.metric("generated_tokens") - before < 4 * 1800


def test_the_api_is_as_it_describes_itself(server):
    schemathesis = pytest.importorskip("schemathesis")
    from hypothesis import HealthCheck, Phase, given, settings
    from schemathesis.specs.openapi.checks import positive_data_acceptance as accepted

    checked, few = [], settings(max_examples=2, phases=[Phase.generate], suppress_health_check=list(HealthCheck))
    for result in schemathesis.openapi.from_url(f"{server.url}/openapi.json").get_all_operations():

        @few
        @given(case=result.ok().as_strategy())
        def one(case: Any) -> None:
            response = case.call(timeout=60)
            case.validate_response(response, excluded_checks=[accepted])  # a template may refuse what fits
            checked.append(response.status_code)

        one()
    assert 200 in checked
    assert 500 not in checked


def test_a_key_is_needed_where_one_is_set_and_a_slow_body_is_cut_off(model_folder, monkeypatch):
    origin = "http://friend.example"
    monkeypatch.setenv("DATAKIT_API_KEY", "geheim")
    monkeypatch.setattr("train.serve.server.BODY_SECONDS", 0.2)
    app = application(Service(ServeConfig(model=str(model_folder), threads=1, allow_origin=(origin,))))

    async def slow() -> AsyncIterator[bytes]:
        yield b"{"
        await asyncio.sleep(5)

    async def go() -> None:
        async with httpx.AsyncClient(transport=httpx.ASGITransport(app=app), base_url="http://machine") as one:
            for path, key, status in (
                ("/v1/models", "", 401), ("/v1/models", "Bearer falsch", 401), ("/v1/models", "Bearer geheim", 200),
                ("/health", "", 200),
            ):  # fmt: skip
                assert (await one.get(path, headers={"authorization": key})).status_code == status
            head = {"authorization": "Bearer geheim", "content-type": "application/json", "origin": origin}
            answer = await one.post("/v1/chat/completions", content=slow(), headers=head)
            assert answer.status_code == 408 and answer.headers["access-control-allow-origin"] == origin
            assert (await one.get("/health")).json()["slots_busy"] == 0

    asyncio.run(go())


@pytest.mark.parametrize(
    ("flags", "words"),
    [
        (["--host", "0.0.0.0"], "--api-key"),
        (["--model", "/nowhere"], "no model there"),
        (["--slots", "0"], "expected 1 or more"),
    ],
)
def test_a_server_that_cannot_start_says_why(flags, words):
    with pytest.raises(Exception, match=words):
        main(flags)


def test_sampling_is_that_of_the_models_own_settings_in_the_newest_checkpoint_of_a_run_too(model_folder, tmp_path):
    newest = tmp_path / "run/checkpoints/step_00000002"
    shutil.copytree(model_folder, newest)
    file = newest / "generation_config.json"
    own = json.loads(file.read_text()) | {"temperature": 0.6, "top_p": 0.9, "top_k": None}
    for more, temperature, expected in (({}, -1.0, 0.6), ({}, 0.3, 0.3), ({"do_sample": False}, -1.0, 0.0)):
        file.write_text(json.dumps(own | more))
        service = Service(ServeConfig(model=str(tmp_path / "run"), temperature=temperature, threads=1))
        assert service.defaults["temperature"] == expected
        assert service.defaults["top_p"] == 0.9 and service.defaults["top_k"] == 0
