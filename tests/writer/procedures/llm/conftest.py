"""A language model at its port, answering as a test says, and learners that ask it."""

from collections.abc import AsyncIterator, Iterator

import pytest

from app.providers.llm import OpenAIModel
from tests.fakes.chat_server import ChatServer
from tests.writer.model_answers import PATIENT, learners_of, model_of
from writer.procedures.llm.learners import LlmLearners
from writer.procedures.rules.learners import RuleLearners


@pytest.fixture(scope="module")
def running_server() -> Iterator[ChatServer]:
    with ChatServer() as server:
        yield server


@pytest.fixture
def server(running_server: ChatServer) -> ChatServer:
    running_server.reset()
    return running_server


@pytest.fixture
async def model(server: ChatServer) -> AsyncIterator[OpenAIModel]:
    model = model_of(server, PATIENT)
    yield model
    await model.aclose()


@pytest.fixture
def analyst(model: OpenAIModel) -> LlmLearners:
    return learners_of(model, RuleLearners())
