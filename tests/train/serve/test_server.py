"""The server as clients see it: OpenAI's own client, malformed ones, and ones that go away."""

import asyncio
import json
import os
import random
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import httpx2 as httpx
import openai
import pytest

from tests.train.serve.conftest import ANSWERS, TOOL, Server, started
from train.serve.__main__ import main

HELLO = [{"role": "user", "content": "hello"}]
GREEDY: dict[str, Any] = {"model": "parrot", "temperature": 0}


@pytest.fixture(scope="module")
def client(server: Server) -> Iterator[openai.OpenAI]:
    with openai.OpenAI(base_url=f"{server.url}/v1", api_key="none", max_retries=0, timeout=60) as found:
        yield found


def user(text: str) -> list[dict[str, str]]:
    return [{"role": "user", "content": text}]


def test_a_chat_answer_is_what_the_model_learnt(client: openai.OpenAI) -> None:
    found = client.chat.completions.create(messages=HELLO, **GREEDY)
    (choice,) = found.choices
    assert (choice.message.content, choice.finish_reason) == (ANSWERS["hello"], "stop")
    assert found.usage.completion_tokens > 10
    assert found.usage.total_tokens == found.usage.prompt_tokens + found.usage.completion_tokens


def test_a_stream_gives_the_same_answer(client: openai.OpenAI) -> None:
    chunks = list(
        client.chat.completions.create(messages=HELLO, stream=True, stream_options={"include_usage": True}, **GREEDY)
    )
    assert chunks[0].choices[0].delta.role == "assistant"
    assert "".join(c.choices[0].delta.content or "" for c in chunks[:-1]) == ANSWERS["hello"]
    assert [c.choices[0].finish_reason for c in chunks[:-1] if c.choices[0].finish_reason] == ["stop"]
    assert (chunks[-1].choices, chunks[-1].usage.completion_tokens > 10) == ([], True)
    assert len({c.id for c in chunks}) == 1


def test_a_stream_ends_with_done(server: Server) -> None:
    body = {"messages": HELLO, "stream": True, "temperature": 0}
    text = httpx.post(f"{server.url}/v1/chat/completions", json=body).text
    assert text.endswith("data: [DONE]\n\n")
    assert all(line.startswith("data: ") for line in text.split("\n\n") if line)


@pytest.mark.parametrize("stream", [False, True])
def test_thoughts_are_apart(client: openai.OpenAI, stream: bool) -> None:
    found = client.chat.completions.create(messages=user("think"), stream=stream, **GREEDY)
    if stream:
        deltas = [c.choices[0].delta for c in found]
        thought = "".join(getattr(d, "reasoning_content", None) or "" for d in deltas)
        said = "".join(d.content or "" for d in deltas)
    else:
        thought, said = found.choices[0].message.reasoning_content, found.choices[0].message.content
    assert (thought, said) == ("Let me see.", "It is four.")


@pytest.mark.parametrize("stream", [False, True])
def test_parallel_tool_calls(client: openai.OpenAI, stream: bool) -> None:
    found = client.chat.completions.create(messages=user("weather"), tools=[TOOL], stream=stream, **GREEDY)
    if stream:
        chunks = list(found)
        calls = [call for c in chunks for call in c.choices[0].delta.tool_calls or ()]
        assert [call.index for call in calls] == [0, 1]
        finish = chunks[-1].choices[0].finish_reason
    else:
        calls, finish = found.choices[0].message.tool_calls, found.choices[0].finish_reason
        assert found.choices[0].message.content is None
    assert [(c.function.name, json.loads(c.function.arguments)) for c in calls] == [
        ("weather", {"city": "Paris"}),
        ("weather", {"city": "東京"}),
    ]
    assert finish == "tool_calls"
    assert len({call.id for call in calls}) == 2


def test_one_call_where_calls_may_not_be_parallel(client: openai.OpenAI) -> None:
    found = client.chat.completions.create(messages=user("weather"), tools=[TOOL], parallel_tool_calls=False, **GREEDY)
    assert len(found.choices[0].message.tool_calls) == 1


def test_a_tool_that_must_be_called_is_called(client: openai.OpenAI) -> None:
    choice = {"type": "function", "function": {"name": "weather"}}
    found = client.chat.completions.create(messages=user("weather"), tools=[TOOL], tool_choice=choice, **GREEDY)
    (call,) = found.choices[0].message.tool_calls
    assert (call.function.name, json.loads(call.function.arguments)) == ("weather", {"city": "Paris"})


def test_without_tools_a_call_is_text(client: openai.OpenAI) -> None:
    found = client.chat.completions.create(messages=user("weather"), tools=[TOOL], tool_choice="none", **GREEDY)
    assert found.choices[0].message.tool_calls is None


def test_stop_strings_end_an_answer_before_them(client: openai.OpenAI) -> None:
    found = client.chat.completions.create(messages=HELLO, stop=["how are", "never"], **GREEDY).choices[0]
    assert (found.message.content, found.finish_reason) == ("Hello 你好 there, ", "stop")


def test_a_length_ends_an_answer(client: openai.OpenAI) -> None:
    found = client.chat.completions.create(messages=HELLO, max_completion_tokens=5, **GREEDY)
    assert (found.choices[0].finish_reason, found.usage.completion_tokens) == ("length", 5)


def test_the_same_seed_gives_the_same_answers_while_others_are_served(client: openai.OpenAI) -> None:
    def ask(seed: int, n: int = 2) -> list[str]:
        body: dict[str, Any] = {
            "messages": user("something"),
            "temperature": 1.5,
            "max_tokens": 30,
            "model": "",
            "extra_body": {"ignore_eos": True},
        }
        return [c.message.content for c in client.chat.completions.create(seed=seed, n=n, **body).choices]

    alone = [ask(seed) for seed in (1, 2)]
    with ThreadPoolExecutor(4) as pool:
        together = list(pool.map(ask, (1, 2, 1, 2)))
    assert together == alone * 2
    assert len({*alone[0], *alone[1]}) > 2


def test_log_probabilities_add_up(client: openai.OpenAI) -> None:
    found = client.chat.completions.create(messages=HELLO, logprobs=True, top_logprobs=3, **GREEDY).choices[0]
    content = found.logprobs.content
    assert b"".join(bytes(t.bytes or b"") for t in content if t.bytes).decode().startswith("Hello ")
    assert all(t.logprob == t.top_logprobs[0].logprob and -0.5 < t.logprob <= 0 for t in content)
    assert all(len(t.top_logprobs) == 3 for t in content)
    legacy = client.completions.create(prompt="hello", logprobs=2, max_tokens=4, **GREEDY).choices[0].logprobs
    assert [len(legacy.tokens), len(legacy.token_logprobs), len(legacy.top_logprobs[0])] == [4, 4, 2]


def test_completions_take_texts_and_ids(client: openai.OpenAI, server: Server) -> None:
    ids = httpx.post(f"{server.url}/v1/tokenize", json={"prompt": "hello"}).json()
    assert (ids["count"], ids["max_model_len"]) == (len(ids["tokens"]), 2048)
    body: dict[str, Any] = {"max_tokens": 6, **GREEDY}
    one, two = (client.completions.create(prompt=prompt, **body).choices[0].text for prompt in ("hello", ids["tokens"]))
    both = client.completions.create(prompt=["hello", ids["tokens"]], **body)
    assert [c.text for c in both.choices] == [one, two] == [one, one]
    streamed = client.completions.create(prompt="hello", stream=True, **body)
    assert "".join(c.choices[0].text for c in streamed) == one


def test_tokenize_gives_the_prompt_of_a_conversation(server: Server) -> None:
    found = httpx.post(f"{server.url}/tokenize", json={"messages": HELLO, "return_token_strs": True}).json()
    assert found["token_strs"][0] == "<|im_start|>"
    usage = httpx.post(f"{server.url}/v1/chat/completions", json={"messages": HELLO, "max_tokens": 1}).json()["usage"]
    assert usage["prompt_tokens"] == found["count"]


@pytest.mark.parametrize(
    ("body", "status", "words"),
    [
        ({"messages": HELLO, "model": "gpt-4"}, 404, "does not exist"),
        ({"messages": []}, 400, "messages"),
        ({"messages": [{"role": "wizard", "content": "x"}]}, 400, "messages.0.role"),
        ({"messages": user("x" * 9000)}, 400, "context"),
        ({"messages": HELLO, "temperature": -1}, 400, "temperature"),
        ({"messages": HELLO, "temperature": float("inf")}, 400, ""),
        ({"messages": HELLO, "n": 1000}, 400, "n"),
        ({"messages": HELLO, "logit_bias": {"999999": 1}}, 400, "logit_bias"),
        ({"messages": HELLO, "response_format": {"type": "json_object"}}, 400, "response_format"),
        (
            {"messages": [{"role": "user", "content": [{"type": "image_url", "image_url": {"url": "x"}}]}]},
            400,
            "content",
        ),
        ({"messages": HELLO, "tool_choice": "required"}, 400, "tool_choice"),
        ({"messages": [{"role": "tool", "content": ""}]}, 400, "an empty result"),
        ({"messages": user("\ud800")}, 400, "surrogate"),
        ({"messages": HELLO, "top_logprobs": 3}, 400, "logprobs"),
        ([1], 400, ""),
    ],
)
def test_a_request_that_makes_no_sense_is_refused(server: Server, body: Any, status: int, words: str) -> None:
    content = json.dumps(body)
    found = httpx.post(
        f"{server.url}/v1/chat/completions", content=content, headers={"content-type": "application/json"}
    )
    error = found.json()["error"]
    assert (found.status_code, set(error)) == (status, {"message", "type", "param", "code"})
    assert words in error["message"]


def test_other_requests_that_make_no_sense(server: Server, client: openai.OpenAI) -> None:
    post = f"{server.url}/v1/chat/completions"
    assert httpx.post(post, content=b"{", headers={"content-type": "application/json"}).status_code == 400
    assert httpx.post(post, content=b"[" * 100_000, headers={"content-type": "application/json"}).status_code == 400
    assert (
        httpx.post(post, content=json.dumps({"messages": HELLO}), headers={"content-type": "text/plain"}).status_code
        == 400
    )
    assert httpx.post(post, content=b"x" * 300_000).status_code == 413
    assert httpx.post(post, content=(b"x" * 9000 for _ in range(40))).status_code == 413
    assert httpx.get(f"{server.url}/v1/nothing").json()["error"]["code"] == "not_found"
    assert httpx.get(post).status_code == 405
    assert httpx.get(f"{server.url}/v1/models", headers={"host": "evil.example"}).status_code == 403
    assert (
        "access-control-allow-origin"
        not in httpx.get(f"{server.url}/health", headers={"origin": "http://evil.example"}).headers
    )
    with pytest.raises(openai.NotFoundError):
        client.chat.completions.create(messages=HELLO, model="other")
    assert client.models.list().data[0].id == client.models.retrieve("parrot").id == "parrot"


def test_a_full_queue_is_429_and_a_client_that_goes_away_frees_its_place(server: Server) -> None:
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
def test_a_client_that_is_killed_frees_its_place(server: Server, stream: bool) -> None:
    before = server.metric("generated_tokens")
    body = {"messages": HELLO, "max_tokens": 1800, "ignore_eos": True, "n": 4, "stream": stream}
    url, code = (
        f"{server.url}/v1/chat/completions",
        "import sys, json, httpx2; httpx2.post(sys.argv[1], json=json.loads(sys.argv[2]))",
    )
    process = subprocess.Popen([sys.executable, "-c", code, url, json.dumps(body)])
    end = time.monotonic() + 60
    while not server.metric("slots_busy"):
        assert time.monotonic() < end
        time.sleep(0.02)
    process.send_signal(signal.SIGKILL)
    process.wait()
    wait_until_idle(server)
    assert server.metric("generated_tokens") - before < 4 * 1800


def raw(server: Server, *pieces: bytes, wait: float = 3.0) -> bytes:
    """The answer to bytes on a bare connection."""
    at = urlsplit(server.url)
    with socket.create_connection((at.hostname, at.port), timeout=wait) as connection:
        found = b""
        try:
            for piece in pieces:
                connection.sendall(piece)
            connection.shutdown(socket.SHUT_WR)
            while piece := connection.recv(65536):
                found += piece
        except OSError:
            pass
    return found


def test_random_bytes_and_half_requests_do_no_harm(server: Server) -> None:
    rng = random.Random(5)
    head = b"POST /v1/chat/completions HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
    for _ in range(60):
        raw(server, rng.randbytes(rng.randrange(1, 400)), wait=0.3)
        body = bytearray(json.dumps({"messages": HELLO, "max_tokens": 2}).encode())
        body[rng.randrange(len(body))] = rng.randrange(256)
        raw(server, head + b"Content-Length: %d\r\n\r\n" % len(body) + body, wait=0.3)
    raw(server, head + b"Content-Length: 100\r\n\r\n{", wait=0.3)
    raw(server, head + b"Content-Length: -5\r\n\r\n{}", wait=0.3)
    assert len(raw(server, b"GET / HTTP/1.1\r\nHost: localhost\r\nX: " + b"x" * 300_000, wait=1)) < 1000
    wait_until_idle(server)
    assert httpx.get(f"{server.url}/health").status_code == 200
    assert server.process.poll() is None


def many_requests(server: Server, count: int) -> None:
    """Requests of all kinds, several at a time; every answer is the one that was asked for."""
    asked = [("hello", ANSWERS["hello"]), ("think", "It is four."), ("hello", "Hello ")]

    def ask(i: int) -> None:
        said, expected = asked[i % 3]
        body = {
            "messages": user(said),
            "temperature": 0,
            "max_tokens": 4 if expected == "Hello " else 60,
            "stream": i % 2 == 0,
        }
        for _ in range(200):
            found = client.post(f"{server.url}/v1/chat/completions", json=body)
            if found.status_code != 429:
                break
            time.sleep(0.05)
        if i % 2 == 0:
            lines = [json.loads(line[6:]) for line in found.text.split("\n\n") if line[6:7] == "{"]
            text = "".join(line["choices"][0]["delta"].get("content") or "" for line in lines)
        else:
            text = found.json()["choices"][0]["message"]["content"]
        assert text.startswith(expected[:4]) if expected == "Hello " else text == expected

    with httpx.Client(timeout=120) as client, ThreadPoolExecutor(6) as pool:
        list(pool.map(ask, range(count)))


def test_no_answer_gets_into_another_request(server: Server) -> None:
    many_requests(server, 60)
    wait_until_idle(server)


@pytest.mark.campaign
def test_ten_thousand_requests_leave_nothing_behind(server: Server) -> None:
    many_requests(server, 500)
    before = server.memory_mib()
    many_requests(server, 10_000)
    wait_until_idle(server)
    assert server.memory_mib() < before + 30
    assert len(os.listdir(f"/proc/{server.process.pid}/fd")) < 60


def test_the_api_is_as_it_describes_itself(server: Server) -> None:
    schemathesis = pytest.importorskip("schemathesis")
    from hypothesis import HealthCheck, Phase, given, settings
    from schemathesis.specs.openapi.checks import positive_data_acceptance as accepted

    # a template may refuse a conversation that fits the description
    schema = schemathesis.openapi.from_url(f"{server.url}/openapi.json")
    checked = []

    for result in schema.get_all_operations():
        operation = result.ok()

        @settings(
            max_examples=3,
            deadline=None,
            phases=[Phase.generate],
            suppress_health_check=list(HealthCheck),
            derandomize=True,
        )
        @given(case=operation.as_strategy())
        def one(case: Any) -> None:
            response = case.call()
            case.validate_response(response, excluded_checks=[accepted])
            checked.append(response.status_code)

        one()
    assert 200 in checked
    assert 500 not in checked


def test_a_key_is_needed_where_one_is_set(model_folder: Path) -> None:
    running = started(model_folder, "--host", "127.0.0.1", env={"DATAKIT_API_KEY": "geheim"})
    try:
        assert httpx.get(f"{running.url}/v1/models").status_code == 401
        assert httpx.get(f"{running.url}/v1/models", headers={"authorization": "Bearer falsch"}).status_code == 401
        assert httpx.get(f"{running.url}/v1/models", headers={"authorization": "Bearer geheim"}).status_code == 200
        assert httpx.get(f"{running.url}/health").status_code == 200
    finally:
        running.process.terminate()
        running.process.wait(20)


@pytest.mark.parametrize(
    ("flags", "words"),
    [
        (["--host", "0.0.0.0"], "--api-key"),
        (["--model", "/nowhere"], "no such folder"),
        (["--slots", "0"], "expected 1 or more"),
    ],
)
def test_a_server_that_cannot_start_says_why(flags: list[str], words: str) -> None:
    with pytest.raises(Exception, match=words):
        main(flags)


def test_sampling_is_that_of_the_models_own_settings_in_the_newest_checkpoint_of_a_run_too(
    model_folder: Path, tmp_path: Path
) -> None:
    newest = tmp_path / "run/checkpoints/step_00000002"
    shutil.copytree(model_folder, newest)
    given = json.loads((newest / "generation_config.json").read_text())
    (newest / "generation_config.json").write_text(
        json.dumps(given | {"temperature": 0.6, "top_p": 0.9, "top_k": None})
    )
    for flags, temperature in (((), 0.6), (("--temperature", "0"), 0.0)):
        running = started(tmp_path / "run", *flags)
        try:
            (model,) = httpx.get(f"{running.url}/v1/models").json()["data"]
            assert model["sampling"]["temperature"] == temperature
            assert model["sampling"]["top_p"] == 0.9 and model["sampling"]["top_k"] == 0
        finally:
            running.process.kill()
