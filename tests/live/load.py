"""A steady stream of requests at an endpoint, every answer compared with a lone engine's."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import httpx

PROMPTS = tuple(
    f"Question {n}: what does a prefill hand to a decode, and who waits for whom? " * (1 + n % 4)
    for n in range(12)
)
TOKENS = 16


@dataclass(frozen=True)
class Answer:
    """One finished request: when it began and ended (monotonic seconds), and what was wrong."""

    began: float
    ended: float
    problem: str = ""


async def ask(http: httpx.AsyncClient, url: str, model: str, prompt: str, stream: bool) -> str:
    """The text of one completion. Raises httpx.HTTPError or ValueError with what came instead."""
    body = {"model": model, "prompt": prompt, "max_tokens": TOKENS, "stream": stream}
    if not stream:
        reply = await http.post(f"{url}/completions", json=body)
        if reply.status_code != httpx.codes.OK:
            raise ValueError(f"HTTP {reply.status_code}: {reply.text[:200]}")
        return str(reply.json()["choices"][0]["text"])
    text, done = "", False
    async with http.stream("POST", f"{url}/completions", json=body) as reply:
        if reply.status_code != httpx.codes.OK:
            raise ValueError(f"HTTP {reply.status_code}: {(await reply.aread())[:200]!r}")
        async for line in reply.aiter_lines():
            if line == "data: [DONE]":
                done = True
            elif line.startswith("data: "):
                text += "".join(c["text"] for c in json.loads(line[6:])["choices"])
    if not done:
        raise ValueError(f"the stream broke off after {text!r}")
    return text


async def right_answers(url: str, model: str) -> dict[str, str]:
    """Every prompt's answer by a lone engine at `url`."""
    async with httpx.AsyncClient(trust_env=False, timeout=30) as http:
        return {p: await ask(http, url, model, p, False) for p in PROMPTS}


@dataclass
class Load:
    """`clients` that ask one request after another until stopped, every third as a stream."""

    url: str
    model: str
    right: Mapping[str, str]
    clients: int = 6
    pause_s: float = 0.02
    answers: list[Answer] = field(default_factory=list)
    _stop: asyncio.Event = field(default_factory=asyncio.Event)
    _tasks: list[asyncio.Task[None]] = field(default_factory=list)

    async def __aenter__(self) -> Load:
        self._tasks = [asyncio.create_task(self._client(n)) for n in range(self.clients)]
        return self

    async def __aexit__(self, *_: object) -> None:
        self._stop.set()
        await asyncio.gather(*self._tasks)

    async def more(self, count: int, seconds: float = 60) -> None:
        """Wait until so many more requests were answered."""
        goal = len(self.answers) + count
        async with asyncio.timeout(seconds):
            while len(self.answers) < goal:
                await asyncio.sleep(0.02)

    @property
    def failed(self) -> list[Answer]:
        """The requests that were refused, cut short or answered wrongly."""
        return [a for a in self.answers if a.problem]

    async def _client(self, number: int) -> None:
        async with httpx.AsyncClient(trust_env=False, timeout=60) as http:
            turn = number
            while not self._stop.is_set():
                prompt = PROMPTS[turn % len(PROMPTS)]
                self.answers.append(await self._one(http, prompt, turn % 3 == 0))
                turn += self.clients + 1
                await asyncio.sleep(self.pause_s)

    async def _one(self, http: httpx.AsyncClient, prompt: str, stream: bool) -> Answer:
        began, problem = time.monotonic(), ""
        try:
            text = await ask(http, self.url, self.model, prompt, stream)
            if text != self.right[prompt]:
                problem = f"{text!r} instead of {self.right[prompt]!r}"
        except (httpx.HTTPError, ValueError, KeyError) as error:
            problem = f"{type(error).__name__}: {error}"
        return Answer(began, time.monotonic(), problem)


def windows(answers: Sequence[Answer], gap_s: float = 1.0) -> list[tuple[float, float, int]]:
    """Stretches of failed requests: seconds from the first one, how long, how many."""
    out: list[tuple[float, float, int]] = []
    first = min((a.began for a in answers), default=0.0)
    for a in sorted((a for a in answers if a.problem), key=lambda a: a.ended):
        if out and a.ended - first - (out[-1][0] + out[-1][1]) < gap_s:
            start, _, count = out[-1]
            out[-1] = (start, a.ended - first - start, count + 1)
        else:
            out.append((a.ended - first, 0.0, 1))
    return out
