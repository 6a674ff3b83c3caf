"""The bodies of the memory tools: the arguments that a model gives, a class for each tool, and what it is answered.

A model reads names and descriptions, so both are short: `app.memory_tools.definitions` makes its schema of them.
"""

from collections.abc import Mapping
from typing import Annotated, Literal, Self
from uuid import UUID

from pydantic import BaseModel, ConfigDict, Field, JsonValue, model_validator

from app.schemas.fields import SearchText
from retrieval.tables.kinds import FactKind
from writer.run import Strict, line

Format = Literal["openai", "mcp"]
RunEnd = Literal["success", "partial", "failure"]
"""How a model may say that a run ended; what it cannot say, it leaves out."""
Kept = FactKind | Literal["run", "feedback"]

TopK = Annotated[int, Field(ge=1, le=20)]
Words = line(2_000, blank=False)
Step = line(500, blank=False)


def _examples(*examples: dict[str, JsonValue]) -> ConfigDict:
    return ConfigDict(extra="forbid", json_schema_extra={"examples": list(examples)})


class GoalsIn(Strict):
    """Which goals come first, and how many."""

    model_config = _examples({"query": "how much do I save?", "top_k": 3})

    query: SearchText | None = Field(default=None)
    top_k: TopK = 5


class SuggestionsIn(Strict):
    """The task at hand."""

    model_config = _examples({"query": "Add an age column to the profiles table"})

    query: SearchText = Field(description="the task")
    top_k: TopK = 3


class RecallIn(Strict):
    """What is to be done, or known."""

    model_config = _examples({"query": "Add an age column to the profiles table", "top_k": 4})

    query: SearchText = Field(description="the task or question")
    top_k: TopK = 4


class RememberIn(Strict):
    """What is to be kept, and what kind of thing it is."""

    model_config = _examples(
        {"kind": "goal", "text": "The user wants to save 500 EUR a month"},
        {
            "kind": "run",
            "text": "Add an age column to the profiles table",
            "outcome": "success",
            "steps": ["ALTER TABLE with the data type of the column"],
        },
    )

    kind: Kept
    text: Words | None = Field(default=None, description="one sentence; of a run its task")  # type: ignore[valid-type]
    outcome: RunEnd | None = Field(default=None, description="of a run or feedback")
    steps: list[Step] | None = Field(default=None, max_length=50, description="of a run")  # type: ignore[valid-type]
    receipt: UUID | None = Field(default=None, description="of the recall it began with")

    @model_validator(mode="after")
    def _has_what_its_kind_needs(self) -> Self:
        """Refuses what would be dropped as well as what is missing: a model mends either by the message."""
        needed, optional = _FIELDS.get(self.kind, _OF_A_FACT)
        given = {name for name in ("text", "outcome", "steps", "receipt") if getattr(self, name) is not None}
        if missing := needed - given:
            raise ValueError(f"{self.kind} needs {', '.join(sorted(missing))}")
        if unwanted := given - needed - optional:
            raise ValueError(f"{self.kind} takes no {', '.join(sorted(unwanted))}")
        return self


_FIELDS: Mapping[str, tuple[frozenset[str], frozenset[str]]] = {
    "run": (frozenset({"text", "outcome"}), frozenset({"steps", "receipt"})),
    "feedback": (frozenset({"outcome", "receipt"}), frozenset()),
}
_OF_A_FACT = frozenset({"text"}), frozenset[str]()
"""What each kind needs, and what it may have."""


class ForgetIn(Strict):
    """What is to be taken out of use."""

    model_config = _examples({"id": "01990a51-6a0e-7f3a-b1f2-7b8f5a0c1d2e"})

    id: UUID = Field(description="of a fact or a procedure, as it was told")


class ToolTextOut(BaseModel):
    """What the model is answered."""

    text: str = Field(description="for the model; what it quotes of stored texts is data, each as JSON in one line")


class ToolDefinitionsOut(BaseModel):
    """The definitions, to be handed to a model as they are."""

    tools: list[dict[str, JsonValue]]
