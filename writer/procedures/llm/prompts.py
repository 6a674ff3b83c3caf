"""Prompts for a language model, from ``prompts.toml``: analyse, abstract or revise a run, summarise a session."""

import tomllib
from importlib.resources import files

from retrieval.tables.kinds import AbstractionLevel

_READ = tomllib.loads(files("writer.procedures.llm").joinpath("prompts.toml").read_text(encoding="utf-8"))


def _whole(prompt: str) -> str:
    return prompt.replace("«steps»", f"{_READ['steps']} ").replace("«values»", f"{_READ['values']} ")


ANALYSE, ABSTRACT, REVISE, SUMMARISE = (_whole(_READ[name]) for name in ("analyse", "abstract", "revise", "summarise"))
LEVELS: dict[AbstractionLevel, str] = {level: _whole(text) for level, text in _READ["levels"].items()}
