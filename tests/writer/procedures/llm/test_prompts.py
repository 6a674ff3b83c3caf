"""What a model is asked."""

from app.providers.llm import OpenAIModel
from tests.fakes.chat_server import ChatServer
from tests.writer.model_answers import SCRIPT, UNEVENTFUL, ByRule, learners_of


async def test_each_level_is_asked_for_in_other_words(server: ChatServer, model: OpenAIModel):
    server.says = lambda _: SCRIPT
    for level in ("concrete", "abstract", "hybrid"):
        await learners_of(model, ByRule()).abstract(UNEVENTFUL, level)
    assert len({payload["messages"][0]["content"] for payload in server.asked}) == 3
