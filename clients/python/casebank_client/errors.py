"""Errors between a backend and casebank."""

from typing import Any


class ClientError(Exception):
    """The call did not do what it was to do."""


class CasebankUnreachable(ClientError):
    """Raised when no attempt got an answer in time, or casebank was too busy at each attempt."""


class CasebankRefused(ClientError):
    """casebank will not do this however often it is asked.

    Attributes:
        status: HTTP status.
        problem: the problem document of RFC 9457; empty where the answer was none.
    """

    def __init__(self, status: int, problem: dict[str, Any]) -> None:
        said = f"{status} {problem.get('title', '')}: {problem.get('detail', '')}".rstrip(": ")
        super().__init__(": ".join([said, *_faults(problem.get("errors"))[:1]]))
        self.status = status
        self.problem = problem

    @property
    def is_memory_off(self) -> bool:
        """True if the user switched off memory for the agent: nothing is stored, and nothing is lost."""
        return str(self.problem.get("type", "")).endswith(":memory-off")


def _faults(errors: Any) -> list[str]:
    """Returns what is wrong with each field that casebank names."""
    named = [each for each in errors if isinstance(each, dict)] if isinstance(errors, list) else []
    return [f"{each.get('field', '')}: {each.get('message', '')}" for each in named]
