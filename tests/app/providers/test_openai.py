"""Both embedders keep the port's promises; the one over HTTP does whatever its server answers."""

import asyncio
import time

import numpy as np
import pytest

from app.providers.openai import OpenAIEmbedder
from app.providers.wire import Patience
from app.providers.wordllama import MAX_CHARS
from retrieval.errors import (
    EmbedderError,
    EmbedderMisbehaved,
    EmbedderRefused,
    EmbedderUnavailable,
    TextNotEmbeddable,
)
from retrieval.ports import Embedder, embed_each
from tests.app.providers.conftest import KEY, QUICK, TEXTS, Clock, assert_unit, endpoint
from tests.fakes.openai_server import Fault, OpenAIServer

# The port, which both keep


async def test_each_text_gets_a_unit_vector(embedder: Embedder):
    assert_unit(await embedder.embed(TEXTS), 3, embedder.dimension)


async def test_no_texts_give_no_rows(embedder: Embedder):
    assert (await embedder.embed([])).shape == (0, embedder.dimension)


async def test_the_same_text_gives_the_same_bytes_alone_and_in_a_batch(embedder: Embedder):
    batch = await embedder.embed([*TEXTS, "long " * 500])
    alone = await embedder.embed(TEXTS[:1])
    assert batch[0].tobytes() == alone[0].tobytes()


async def test_similar_texts_are_nearer_than_others(embedder: Embedder):
    query, near, far = await embedder.embed(["reset my password", TEXTS[0], TEXTS[1]])
    assert query @ near > query @ far


@pytest.mark.parametrize("blank", ["", "   ", "\n\t\u00a0"])
async def test_a_blank_text_is_named_and_not_given_a_vector(embedder: Embedder, blank: str):
    with pytest.raises(TextNotEmbeddable) as caught:
        await embedder.embed([TEXTS[0], blank, TEXTS[1], blank])
    assert caught.value.indices == (1, 3)


async def test_a_blank_text_does_not_lose_the_others(embedder: Embedder):
    first, blank, last = await embed_each(embedder, [TEXTS[0], " ", TEXTS[1]])
    assert blank is None
    assert np.array_equal(np.stack([first, last]), await embedder.embed(TEXTS[:2]))


async def test_blank_texts_alone_are_no_error_for_embed_each(embedder: Embedder):
    assert await embed_each(embedder, ["", " "]) == [None, None]


@pytest.mark.parametrize("odd", ["a\ud800b", "\udfff", "\x00", "ᚠᛇᚻ", "😀", "!!!", "<s>", "\u200b", "字" * 9_000])
async def test_odd_texts_get_unit_vectors(embedder: Embedder, odd: str):
    assert_unit(await embedder.embed([odd]), 1, embedder.dimension)


async def test_ten_megabytes_are_cut_rather_than_read(embedder: Embedder):
    started = time.process_time()
    huge = await embedder.embed(["word " * 2_000_000])
    assert time.process_time() - started < 5
    assert np.array_equal(huge, await embedder.embed([("word " * 2_000_000)[:MAX_CHARS]]))


# What is sent to a server


async def test_big_batches_are_split_and_come_back_in_order(server: OpenAIServer, clock: Clock):
    texts = [f"text number {i}" for i in range(25)]
    small = OpenAIEmbedder(endpoint(server, batch_size=10), QUICK, clock)
    whole = OpenAIEmbedder(endpoint(server), QUICK, clock)
    assert np.array_equal(await small.embed(texts), await whole.embed(texts))
    assert [len(request.payload["input"]) for request in server.requests] == [10, 10, 5, 25]
    await small.aclose()
    await whole.aclose()


async def test_floats_are_asked_for_and_a_dimension_only_on_request(
    server: OpenAIServer, remote: OpenAIEmbedder, clock: Clock
):
    shortening = OpenAIEmbedder(endpoint(server, ask_dimension=True), QUICK, clock)
    await remote.embed(TEXTS)
    await shortening.embed(TEXTS)
    plain, shortened = (request.payload for request in server.requests)
    assert plain == {"model": "hashed-words", "input": TEXTS, "encoding_format": "float"}
    assert shortened == plain | {"dimensions": 32}
    await shortening.aclose()


async def test_a_text_that_is_refused_changes_no_request_for_others(server: OpenAIServer, clock: Clock):
    server.script(Fault.STATUS_400, Fault.NEVER)  # the text is asked for once more, without the dimension
    waiting = Patience(timeout_s=30, budget_s=60)
    shortening = OpenAIEmbedder(endpoint(server, ask_dimension="try"), waiting, clock)
    refused = asyncio.create_task(shortening.embed(["too long"]))
    async with asyncio.timeout(30):
        while server.count < 2:  # noqa: ASYNC110 - the server tells nobody
            await asyncio.sleep(0.01)
    await shortening.embed(TEXTS[:1])
    refused.cancel()
    await asyncio.wait([refused])
    await shortening.embed(TEXTS[:1])  # nor does a call that ended before its answer
    await shortening.aclose()
    assert ["dimensions" in request.payload for request in server.requests] == [True, False, True, True]


@pytest.mark.parametrize(("key", "sent"), [(KEY, KEY), (KEY + "\n", KEY), ("", "none")])
async def test_the_environments_key_is_never_used(
    server: OpenAIServer, monkeypatch: pytest.MonkeyPatch, key: str, sent: str
):
    monkeypatch.setenv("OPENAI_API_KEY", "sk-of-somebody-else")
    embedder = OpenAIEmbedder(endpoint(server, api_key=key), QUICK)
    await embedder.embed(TEXTS)
    assert server.requests[0].authorization == f"Bearer {sent}"
    await embedder.aclose()


def test_the_key_is_not_shown_with_the_settings(server: OpenAIServer):
    assert KEY not in repr(endpoint(server))


def test_a_key_that_no_header_can_carry_is_refused_at_the_start_without_quoting_it(server: OpenAIServer):
    with pytest.raises(ValueError, match="HTTP header") as caught:
        OpenAIEmbedder(endpoint(server, api_key="sk-gehëim"))
    assert "sk-" not in str(caught.value)


def test_an_address_that_is_none_is_refused_at_the_start(server: OpenAIServer):
    with pytest.raises(ValueError, match=r"base URL.*Invalid port"):
        OpenAIEmbedder(endpoint(server, base_url="http://a:b"))


# What comes back from it

MISBEHAVIOUR = [
    *(Fault.WRONG_DIMENSION, Fault.TOO_FEW, Fault.TOO_MANY, Fault.NO_ITEMS, Fault.DUPLICATE_INDEX, Fault.HOLE_IN_INDEX),
    *(Fault.NAN, Fault.INFINITE, Fault.NULL_NUMBER, Fault.NULL_EMBEDDING, Fault.TEXT_EMBEDDING, Fault.ZERO_VECTOR),
    *(Fault.HUGE_NUMBERS, Fault.HTML, Fault.PROSE, Fault.OTHER_JSON),
]


@pytest.mark.parametrize("fault", MISBEHAVIOUR)
async def test_a_wrong_answer_is_refused_and_not_asked_for_again(
    server: OpenAIServer, remote: OpenAIEmbedder, fault: Fault
):
    server.fault = fault
    with pytest.raises(EmbedderMisbehaved):
        await remote.embed(TEXTS)
    assert server.count == 1


async def test_a_shuffled_answer_is_put_in_order_by_its_index(server: OpenAIServer, remote: OpenAIEmbedder):
    straight = await remote.embed(TEXTS)
    server.fault = Fault.SHUFFLED
    assert np.array_equal(await remote.embed(TEXTS), straight)


@pytest.mark.parametrize(
    ("fault", "advice"),
    [
        (Fault.STATUS_400, "CASEBANK_OPENAI_MAX_CHARS"),
        (Fault.STATUS_401, "check the API key"),
        (Fault.STATUS_403, "allowed"),
        (Fault.STATUS_404, "base URL"),
    ],
)
async def test_a_refusal_says_what_to_check_and_is_not_retried(
    server: OpenAIServer, remote: OpenAIEmbedder, fault: Fault, advice: str
):
    server.fault = fault
    with pytest.raises(EmbedderRefused if fault is Fault.STATUS_400 else EmbedderUnavailable, match=advice):
        await remote.embed(TEXTS)
    assert server.count == 1


@pytest.mark.parametrize("fault", [Fault.STATUS_401, Fault.STATUS_500, Fault.HTML, Fault.NULL_EMBEDDING])
async def test_no_error_carries_the_key_the_texts_or_the_servers_words(
    server: OpenAIServer, remote: OpenAIEmbedder, fault: Fault
):
    server.fault = fault
    with pytest.raises(EmbedderError) as caught:
        await remote.embed(TEXTS)
    assert KEY not in str(caught.value)
    assert caught.value.__cause__ is None
    assert caught.value.__suppress_context__
