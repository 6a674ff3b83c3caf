"""What can go wrong between a backend and casebank."""

from typing import Any


class ClientError(Exception):
    """The call did not do what it was to do."""


class CasebankUnreachable(ClientError):
    """Nobody answered in time, or casebank said to come back later, as often as it was asked."""


class CasebankRefused(ClientError):
    """casebank will not do this however often it is asked.

    Attributes:
        status: of HTTP.
        problem: the problem document of RFC 9457; empty where the answer was none.
    """

    def __init__(self, status: int, problem: dict[str, Any]) -> None:
        super().__init__(f"{status} {problem.get('title', '')}: {problem.get('detail', '')}".rstrip(": "))
        self.status = status
        self.problem = problem
