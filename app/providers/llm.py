"""Asks a language model for answers that fit a JSON schema, over OpenAI's chat completions.

Many servers speak them: OpenAI, vLLM, Ollama, llama.cpp.
"""

import asyncio
import json
import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, Literal

import openai
from pydantic import BaseModel, JsonValue

from app.providers import wire
from app.providers.completions import Completion, NoCompletion, Unusable, bounded, form_of, parsed, read
from app.providers.wire import FAULTS, Breaker, Patience, client, with_retries
from retrieval.errors import ModelError, ModelMisbehaved, ModelRefused, ModelUnavailable, Tokens
from retrieval.ports import Answer, Reply
from retrieval.rewriting.fence import MOST_CHARS, WHAT_IS_DATA, fenced
from retrieval.tokens import count_tokens

CHECK = wire.CHECK | {400: "check the model's context length"}


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelEndpoint:
    """Language model that casebank asks, and its server.

    Attributes:
        base_url: address with the version, as http://localhost:8000/v1.
        api_key: API key; empty for a local server.
        max_output_tokens: longest answer, in tokens.
        max_chars: characters of a run or a session that are sent; the rest is cut.
    """

    base_url: str
    model: str
    api_key: str = field(default="", repr=False)
    max_output_tokens: int = 2_000
    max_chars: int = MOST_CHARS


@dataclass(frozen=True, slots=True)
class _Dialect:
    """Part of the wire format that the server accepts, learned from its refusals."""

    schema: bool = True
    limit: Literal["max_tokens", "max_completion_tokens"] = "max_tokens"


@dataclass(slots=True)
class _Talk:
    """Messages of one call, its cost so far, and its end by the clock of the event loop."""

    messages: list[dict[str, str]]
    answer: type[BaseModel]
    ends_at: float
    tokens: Tokens = field(default_factory=Tokens)


class OpenAIModel:
    """Asks a language model over HTTP, and checks every part of its answer."""

    def __init__(
        self, endpoint: ModelEndpoint, patience: Patience, clock: Callable[[], float] = time.monotonic
    ) -> None:
        """Prepares the client, without a request."""
        self._endpoint = endpoint
        self._patience = patience
        self._breaker = Breaker(patience, clock, ModelUnavailable, "language model")
        self._client = client(endpoint.base_url, endpoint.api_key, patience)
        self._dialect = _Dialect()

    @property
    def name(self) -> str:
        """Name of the model on the server."""
        return self._endpoint.model

    async def aclose(self) -> None:
        """Closes the connections; the model cannot be asked afterwards."""
        await self._client.close()

    async def ask(self, instructions: str, material: JsonValue, answer: type[Answer]) -> Reply[Answer]:
        """Returns the model's answer within `budget_s` seconds; see ``retrieval.ports.Model``."""
        form = json.dumps(answer.model_json_schema(), separators=(",", ":"))
        system = f"{instructions}\n\n{WHAT_IS_DATA}\n\nAnswer with one JSON object of this schema, and nothing else:\n"
        messages = [
            {"role": "system", "content": system + form},
            {"role": "user", "content": fenced(material, self._endpoint.max_chars)},
        ]
        talk = _Talk(messages, answer, asyncio.get_running_loop().time() + self._patience.budget_s)
        try:
            with self._breaker:
                try:
                    async with asyncio.timeout_at(talk.ends_at):
                        return Reply(await self._repaired(talk, answer), talk.tokens)
                except TimeoutError:
                    raise NoCompletion(f"no answer from {self.name} in {self._patience.budget_s} s") from None
        except ModelError as error:
            error.tokens = talk.tokens
            raise

    async def _repaired(self, talk: _Talk, answer: type[Answer]) -> Answer:
        """Returns the model's answer; an invalid one is requested once more, with an explanation of its fault."""
        completion = await self._say(talk)
        try:
            return parsed(completion, answer)
        except Unusable as fault:
            correction = f"That cannot be used: {fault}. Answer again, with nothing but the JSON object."
            talk.messages.append({"role": "assistant", "content": completion.text[:MOST_CHARS] or "(nothing)"})
            talk.messages.append({"role": "user", "content": correction})
        try:
            return parsed(await self._say(talk), answer)
        except Unusable as fault:
            raise ModelMisbehaved(f"{self.name} repeated a fault after an explanation: {fault}") from None

    async def _say(self, talk: _Talk) -> Completion:
        return await with_retries(partial(self._request, talk), self._patience)

    async def _request(self, talk: _Talk) -> Completion:
        """Returns the model's completion, requested in the server's dialect.

        Errors are raised without their cause: the client's errors quote the server, which may quote key or texts.
        """
        dialect: _Dialect | None = self._dialect
        while dialect is not None:
            try:
                completion = await self._post(talk, dialect)
            except openai.APIStatusError as error:
                advice = CHECK.get(error.status_code, "see the log of its server")
                message = f"{self.name} answered HTTP {error.status_code}: {advice}"
                left_s = talk.ends_at - asyncio.get_running_loop().time()
                refusal = wire.refusal(error, message, left_s, (ModelRefused, ModelUnavailable, NoCompletion))
                dialect = _simpler(dialect, error)
            else:
                self._dialect = dialect
                return completion
        raise refusal

    async def _post(self, talk: _Talk, dialect: _Dialect) -> Completion:
        """Returns the completion of one request, and adds its cost to the call's tokens; a refusal has no cost.

        Raises:
            openai.APIStatusError: the server refused the request, perhaps for its dialect.
            NoCompletion: the server gave no whole answer in time.
        """
        before, prompt = talk.tokens, Tokens(prompt=sum(count_tokens(each["content"]) for each in talk.messages))
        options: dict[str, Any] = {dialect.limit: self._endpoint.max_output_tokens}  # of the client's overloads
        if dialect.schema:
            options["response_format"] = {"type": "json_schema", "json_schema": form_of(talk.answer)}
        try:
            async with asyncio.timeout(self._patience.timeout_s):  # the client's own restarts with every byte
                talk.tokens = before + prompt  # an answer that never arrives may have been paid for
                async with self._client.chat.completions.with_streaming_response.create(
                    model=self.name,
                    messages=talk.messages,  # type: ignore[arg-type]
                    **options,
                ) as response:
                    body = await bounded(response.iter_bytes())
        except openai.APIStatusError:
            talk.tokens = before
            raise
        except ModelError:
            raise
        except Exception as error:  # noqa: BLE001 - the HTTP library's, too, where the body of a refusal breaks off
            raise NoCompletion(f"no answer from {self.name} ({type(error).__name__})") from None
        completion, cost = read(body)
        estimate = prompt + Tokens(completion=count_tokens(completion.text))
        talk.tokens = before + (cost or estimate)
        return completion


def _simpler(dialect: _Dialect, error: openai.APIStatusError) -> _Dialect | None:
    """Returns the dialect to try after a refusal: another name of the limit, or no schema; None: no other is left."""
    if error.status_code not in FAULTS:
        return None
    if "max_completion_tokens" in str(error.body) and dialect.limit == "max_tokens":
        return replace(dialect, limit="max_completion_tokens")
    return replace(dialect, schema=False) if dialect.schema else None
