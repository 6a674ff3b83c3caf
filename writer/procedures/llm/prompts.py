"""Prompts for a language model, from ``prompts.toml``: analyse, abstract or revise a run, summarise a session."""

from retrieval.patterns import read
from retrieval.tables.kinds import AbstractionLevel

_READ = read("writer.procedures.llm", "prompts.toml")


def _whole(prompt: str) -> str:
    return prompt.replace("«steps»", f"{_READ['steps']} ").replace("«values»", f"{_READ['values']} ")


ANALYSE, ABSTRACT, REVISE, SUMMARISE = (_whole(_READ[name]) for name in ("analyse", "abstract", "revise", "summarise"))
LEVELS: dict[AbstractionLevel, str] = {level: _whole(text) for level, text in _READ["levels"].items()}
