"""Answers in a given form from any language model behind OpenAI's chat completions: OpenAI, vLLM, Ollama, llama.cpp."""

import asyncio
import json
import re
import time
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field, replace
from functools import cache, partial
from typing import Any, Literal, cast

import openai
from pydantic import BaseModel, Field, JsonValue, ValidationError

from app.providers.wire import Breaker, NoAnswer, Patience, client, is_retryable, retry_after_s, with_retries
from retrieval.context import count_tokens
from retrieval.errors import ModelError, ModelMisbehaved, ModelRefused, ModelUnavailable, Tokens
from retrieval.ports import Answer, Reply
from retrieval.rewriting.fence import MOST_CHARS, WHAT_IS_DATA, fenced

THE_REQUESTS_FAULT = {400, 413, 422}
"""Too long, or with something that the server does not know: another request may well succeed."""

CHECK = {
    400: "check the model's context length",
    401: "check the API key",
    403: "check what the API key is allowed to do",
    404: "check the base URL and the model's name",
}
MOST_BYTES = 1 << 20
"""Longest body that is read of an answer."""
MOST_FAULTS = 8
"""How many of its faults a model is told of."""
UNSUPPORTED = {"minLength", "maxLength", "minItems", "maxItems", "default", "title"}
"""Keywords that some servers refuse in the schema of an answer; what they say is checked here, and told in words."""


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


class _NoAnswer(NoAnswer, ModelUnavailable):
    """The server gave no answer, or asked to be asked again."""


class _Unusable(Exception):
    """The answer is not of the form that was asked for; the message says to the model what is wrong."""


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


@dataclass(frozen=True, slots=True)
class _Said:
    """What the model said."""

    text: str
    cut: bool


class OpenAIModel:
    """Asks over HTTP, and trusts nothing that comes back."""

    def __init__(
        self, endpoint: ModelEndpoint, patience: Patience, clock: Callable[[], float] = time.monotonic
    ) -> None:
        """Prepares the client; nothing is asked yet."""
        self._endpoint = endpoint
        self._patience = patience
        self._breaker = Breaker(patience, clock, ModelUnavailable)
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
            raise _NoAnswer(f"no answer from {self.name} in {self._patience.budget_s} s") from None

    async def _repaired(self, talk: _Talk, answer: type[Answer]) -> Answer:
        """Returns the first valid answer of two; before the second the model is told what was wrong with the first."""
        said = await self._say(talk)
        try:
            return _parsed(said, answer)
        except _Unusable as fault:
            correction = f"That cannot be used: {fault}. Answer again, with nothing but the JSON object."
            talk.messages.append({"role": "assistant", "content": said.text[:MOST_CHARS] or "(nothing)"})
            talk.messages.append({"role": "user", "content": correction})
        try:
            return _parsed(await self._say(talk), answer)
        except _Unusable as fault:
            raise ModelMisbehaved(f"{self.name} was told what was wrong, and still: {fault}") from None

    async def _say(self, talk: _Talk) -> _Said:
        return await with_retries(partial(self._request, talk), self._patience)

    async def _request(self, talk: _Talk) -> _Said:
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

    async def _post(self, talk: _Talk, dialect: _Dialect) -> _Said:
        before, asked = talk.tokens, Tokens(prompt=sum(count_tokens(each["content"]) for each in talk.messages))
        try:
            async with asyncio.timeout(self._patience.timeout_s):  # the client's own restarts with every byte
                talk.tokens = before + asked  # what never comes back may have been paid for
                async with self._client.chat.completions.with_streaming_response.create(
                    model=self.name,
                    messages=talk.messages,  # type: ignore[arg-type]
                    **self._options(talk.answer, dialect),
                ) as response:
                    body = await _bounded(response.iter_bytes())
        except openai.APIStatusError:
            talk.tokens = before  # what is refused costs nothing
            raise
        except (TimeoutError, openai.OpenAIError) as error:
            raise _NoAnswer(f"no answer from {self.name} ({type(error).__name__})") from None
        said, cost = _read(body)
        estimate = asked + Tokens(completion=count_tokens(said.text))
        talk.tokens = before + (cost or estimate)
        return said

    def _options(self, answer: type[BaseModel], dialect: _Dialect) -> dict[str, Any]:  # of the client's overloads
        options: dict[str, Any] = {dialect.limit: self._endpoint.max_output_tokens}
        if dialect.schema:
            options["response_format"] = {"type": "json_schema", "json_schema": _form(answer)}
        return options

    def _refusal(self, error: openai.APIStatusError, ends_at: float) -> ModelError:
        """Returns the error to raise for an HTTP status; only a `_NoAnswer` is worth another attempt."""
        status = error.status_code
        message = f"{self.name} answered HTTP {status}: {CHECK.get(status, 'see the log of its server')}"
        if status in THE_REQUESTS_FAULT:
            return ModelRefused(message)
        if not is_retryable(status):
            return ModelUnavailable(message)
        wait_s = retry_after_s(error)
        if wait_s is not None and asyncio.get_running_loop().time() + wait_s >= ends_at:
            return ModelUnavailable(f"{message}; it asks to wait {wait_s:.0f} s")
        return _NoAnswer(message, wait_s)


def _simpler(dialect: _Dialect, error: openai.APIStatusError) -> _Dialect | None:
    """Returns what to try after a refusal: another name of the limit, or no schema; None where nothing is left."""
    if error.status_code not in THE_REQUESTS_FAULT:
        return None
    if "max_completion_tokens" in str(error.body) and dialect.limit == "max_tokens":
        return replace(dialect, limit="max_completion_tokens")
    return replace(dialect, schema=False) if dialect.schema else None


@cache
def _form(answer: type[BaseModel]) -> dict[str, JsonValue]:
    """Returns the answer's schema as the wire format has it: strict, and without what some servers refuse."""
    strict = cast("JsonValue", openai.pydantic_function_tool(answer)["function"]["parameters"])
    name = re.sub(r"\W+", "_", answer.__name__)[:60]
    return {"name": name, "strict": True, "schema": _plain(strict)}


def _plain(schema: JsonValue) -> JsonValue:
    """Returns the schema without the unsupported keywords; a property may well be called like one."""
    if isinstance(schema, list):
        return [_plain(item) for item in schema]
    if not isinstance(schema, dict):
        return schema
    properties = schema.get("properties")
    names = {name: _plain(item) for name, item in properties.items()} if isinstance(properties, dict) else {}
    rest = {name: _plain(item) for name, item in schema.items() if name not in UNSUPPORTED}
    return rest | {"properties": names} if names else rest


class _Message(BaseModel):
    content: str | None = None
    refusal: str | None = None


class _Choice(BaseModel):
    message: _Message
    finish_reason: str | None = None


class _Completion(BaseModel):
    choices: list[_Choice] = Field(min_length=1)
    usage: object = None


class _Usage(BaseModel):
    prompt_tokens: int = Field(ge=0, le=100_000_000)
    completion_tokens: int = Field(ge=0, le=100_000_000)


async def _bounded(chunks: AsyncIterator[bytes]) -> bytes:
    body = bytearray()
    try:
        async for chunk in chunks:
            body += chunk
            if len(body) > MOST_BYTES:
                break
    except Exception as error:  # noqa: BLE001 - of whichever HTTP library the client uses
        raise _NoAnswer(f"the answer broke off ({type(error).__name__})") from None
    if len(body) > MOST_BYTES:
        raise ModelMisbehaved(f"an answer of more than {MOST_BYTES} bytes")
    return bytes(body)


def _read(body: bytes) -> tuple[_Said, Tokens | None]:
    """Returns what the model said, and what it cost if the server tells.

    Raises:
        ModelMisbehaved: the body is no chat completion.
        ModelRefused: the model will not answer.
    """
    try:
        completion = _Completion.model_validate_json(body)
    except ValidationError as error:
        raise ModelMisbehaved(f"not a chat completion: {_faults(error)}") from None
    choice = completion.choices[0]
    if choice.message.refusal or choice.finish_reason == "content_filter":
        raise ModelRefused("the model will not answer")
    return _Said(choice.message.content or "", choice.finish_reason == "length"), _cost(completion.usage)


def _cost(usage: object) -> Tokens | None:
    try:
        counted = _Usage.model_validate(usage)
    except ValidationError:
        return None
    return Tokens(counted.prompt_tokens, counted.completion_tokens)


def _parsed(said: _Said, answer: type[Answer]) -> Answer:
    """Returns the answer in the text: its outermost JSON object, whatever a model thinks, says or fences around it.

    Raises:
        _Unusable: there is none, or not of that form.
    """
    text = said.text.rpartition("</think>")[2]
    start, end = text.find("{"), text.rfind("}")
    if start < 0 or end < start:
        raise _Unusable("it was cut off; be shorter" if said.cut else "there is no JSON object in it")
    try:
        return answer.model_validate_json(text[start : end + 1])
    except ValidationError as error:
        raise _Unusable("it was cut off; be shorter" if said.cut else _faults(error)) from None


def _faults(error: ValidationError) -> str:
    """Returns where the first faults are and of what kind; never what stands there."""
    items = error.errors(include_input=False, include_url=False, include_context=False)[:MOST_FAULTS]
    return "; ".join(f"{'.'.join(map(str, item['loc'])) or 'the object'}: {item['type']}" for item in items)
