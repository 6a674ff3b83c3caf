"""Answers in a given form from any language model behind OpenAI's chat completions: OpenAI, vLLM, Ollama, llama.cpp."""

import asyncio
import json
import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, Literal

import openai
from pydantic import BaseModel, JsonValue

from app.providers.completions import NoCompletion, Said, Unusable, bounded, form_of, parsed, read
from app.providers.wire import Breaker, Patience, client, is_retryable, retry_after_s, with_retries
from retrieval.errors import ModelError, ModelMisbehaved, ModelRefused, ModelUnavailable, Tokens
from retrieval.ports import Answer, Reply
from retrieval.rewriting.fence import MOST_CHARS, WHAT_IS_DATA, fenced
from retrieval.sections.context import count_tokens

THE_REQUESTS_FAULT = {400, 413, 422}
"""Too long, or with something that the server does not know: another request may well succeed."""

CHECK = {
    400: "check the model's context length",
    401: "check the API key",
    403: "check what the API key is allowed to do",
    404: "check the base URL and the model's name",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelEndpoint:
    """Where the answers come from.

    Attributes:
        base_url: up to and with the version, as in http://localhost:8000/v1.
        model: the name that the server knows.
        api_key: empty for a local server.
        max_output_tokens: longest answer.
        max_chars: what is sent of the material; what is longer is cut.
    """

    base_url: str
    model: str
    api_key: str = field(default="", repr=False)
    max_output_tokens: int = 2_000
    max_chars: int = MOST_CHARS


@dataclass(frozen=True, slots=True)
class _Dialect:
    """What this server understands of the wire format; learned from what it refuses."""

    schema: bool = True
    limit: Literal["max_tokens", "max_completion_tokens"] = "max_tokens"


@dataclass(slots=True)
class _Talk:
    """The messages of one call of ours, what it cost so far, and when it must end, by the clock of the event loop."""

    messages: list[dict[str, str]]
    answer: type[BaseModel]
    ends_at: float
    tokens: Tokens = field(default_factory=Tokens)


class OpenAIModel:
    """Asks over HTTP, and trusts nothing that comes back."""

    def __init__(
        self, endpoint: ModelEndpoint, patience: Patience, clock: Callable[[], float] = time.monotonic
    ) -> None:
        """Prepares the client; nothing is asked yet."""
        self._endpoint = endpoint
        self._patience = patience
        self._breaker = Breaker(patience, clock, ModelUnavailable, "language model")
        self._client = client(endpoint.base_url, endpoint.api_key, patience)
        self._dialect = _Dialect()

    @property
    def name(self) -> str:
        """The name that the server knows the model by."""
        return self._endpoint.model

    async def aclose(self) -> None:
        """Closes the connections; the model cannot be asked afterwards."""
        await self._client.close()

    async def ask(self, instructions: str, material: JsonValue, answer: type[Answer]) -> Reply[Answer]:
        """Returns the model's answer within `budget_s` seconds; see the port."""
        form = json.dumps(answer.model_json_schema(), separators=(",", ":"))
        system = f"{instructions}\n\n{WHAT_IS_DATA}\n\nAnswer with one JSON object of this schema, and nothing else:\n"
        messages = [
            {"role": "system", "content": system + form},
            {"role": "user", "content": fenced(material, self._endpoint.max_chars)},
        ]
        talk = _Talk(messages, answer, asyncio.get_running_loop().time() + self._patience.budget_s)
        try:
            with self._breaker:
                return Reply(await self._in_time(talk, answer), talk.tokens)
        except ModelError as error:
            error.tokens = talk.tokens
            raise

    async def _in_time(self, talk: _Talk, answer: type[Answer]) -> Answer:
        try:
            async with asyncio.timeout_at(talk.ends_at):
                return await self._repaired(talk, answer)
        except TimeoutError:
            raise NoCompletion(f"no answer from {self.name} in {self._patience.budget_s} s") from None

    async def _repaired(self, talk: _Talk, answer: type[Answer]) -> Answer:
        """Returns the first valid answer of two; before the second the model is told what was wrong with the first."""
        said = await self._say(talk)
        try:
            return parsed(said, answer)
        except Unusable as fault:
            correction = f"That cannot be used: {fault}. Answer again, with nothing but the JSON object."
            talk.messages.append({"role": "assistant", "content": said.text[:MOST_CHARS] or "(nothing)"})
            talk.messages.append({"role": "user", "content": correction})
        try:
            return parsed(await self._say(talk), answer)
        except Unusable as fault:
            raise ModelMisbehaved(f"{self.name} was told what was wrong, and still: {fault}") from None

    async def _say(self, talk: _Talk) -> Said:
        return await with_retries(partial(self._request, talk), self._patience)

    async def _request(self, talk: _Talk) -> Said:
        """Returns what the model says, asked for in a way that its server understands.

        Errors are raised without their cause: the client's quote the server, which may quote the key or the texts.
        """
        dialect: _Dialect | None = self._dialect
        while dialect is not None:
            try:
                said = await self._post(talk, dialect)
            except openai.APIStatusError as error:
                dialect, refusal = _simpler(dialect, error), self._refusal(error, talk.ends_at)
            else:
                self._dialect = dialect
                return said
        raise refusal

    async def _post(self, talk: _Talk, dialect: _Dialect) -> Said:
        before, asked = talk.tokens, Tokens(prompt=sum(count_tokens(each["content"]) for each in talk.messages))
        try:
            async with asyncio.timeout(self._patience.timeout_s):  # the client's own restarts with every byte
                talk.tokens = before + asked  # what never comes back may have been paid for
                async with self._client.chat.completions.with_streaming_response.create(
                    model=self.name,
                    messages=talk.messages,  # type: ignore[arg-type]
                    **self._options(talk.answer, dialect),
                ) as response:
                    body = await bounded(response.iter_bytes())
        except openai.APIStatusError:
            talk.tokens = before  # what is refused costs nothing
            raise
        except (TimeoutError, openai.OpenAIError) as error:
            raise NoCompletion(f"no answer from {self.name} ({type(error).__name__})") from None
        said, cost = read(body)
        estimate = asked + Tokens(completion=count_tokens(said.text))
        talk.tokens = before + (cost or estimate)
        return said

    def _options(self, answer: type[BaseModel], dialect: _Dialect) -> dict[str, Any]:  # of the client's overloads
        options: dict[str, Any] = {dialect.limit: self._endpoint.max_output_tokens}
        if dialect.schema:
            options["response_format"] = {"type": "json_schema", "json_schema": form_of(answer)}
        return options

    def _refusal(self, error: openai.APIStatusError, ends_at: float) -> ModelError:
        """Returns the error to raise for an HTTP status; only a `NoCompletion` is worth another attempt."""
        status = error.status_code
        message = f"{self.name} answered HTTP {status}: {CHECK.get(status, 'see the log of its server')}"
        if status in THE_REQUESTS_FAULT:
            return ModelRefused(message)
        if not is_retryable(status):
            return ModelUnavailable(message)
        wait_s = retry_after_s(error)
        if wait_s is not None and asyncio.get_running_loop().time() + wait_s >= ends_at:
            return ModelUnavailable(f"{message}; it asks to wait {wait_s:.0f} s")
        return NoCompletion(message, wait_s)


def _simpler(dialect: _Dialect, error: openai.APIStatusError) -> _Dialect | None:
    """Returns what to try after a refusal: another name of the limit, or no schema; None where nothing is left."""
    if error.status_code not in THE_REQUESTS_FAULT:
        return None
    if "max_completion_tokens" in str(error.body) and dialect.limit == "max_tokens":
        return replace(dialect, limit="max_completion_tokens")
    return replace(dialect, schema=False) if dialect.schema else None
