"""The questions of the benchmark: many ways to ask for one thing, and things that differ in a word."""

import random

from bench.findings.questions import Topic, question


def test_one_intent_is_asked_in_many_ways_and_one_text_asks_for_one_thing():
    rng = random.Random(3)
    topic = Topic.drawn(rng)
    asked = [question(rng, topic) for _ in range(400)]
    texts = {each.text: {other.intent for other in asked if other.text == each.text} for each in asked}
    assert max(map(len, texts.values())) == 1
    assert len(texts) > 3 * len({each.intent for each in asked})
