"""A run that a framework reports: what its hooks say of tool calls and of the end, put together and retained once.

What every module for a framework has in common. They take the synchronous client and ask it in a thread, for a
framework may run each task in an event loop of its own.
"""

import asyncio
import logging
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from casebank_client.answers import Outcome
from casebank_client.run import Run, Status

log = logging.getLogger("casebank")

Judge = Callable[[Any], Outcome]
"""Says by what the agent answered how the run ended."""


def finished(_answer: object) -> Outcome:
    """Returns success: an agent that came to its end without an error says that it has done its task."""
    return "success"


@dataclass(slots=True)
class Watched:
    """A run under way, as a framework's hooks report it.

    Attributes:
        run: run to retain.
        judge: asked at the end, where nobody has said how it ended; if the judge raises, the outcome is unknown.
    """

    run: Run
    judge: Judge = finished
    _calls: dict[str, tuple[str, Any, float]] = field(default_factory=dict)
    _retained: bool = False

    async def begin(self) -> None:
        """Retrieves without holding up the event loop."""
        await asyncio.to_thread(self.run.begin)

    def called(self, call_id: str, tool: str, arguments: Any) -> None:
        """Notes that a tool was called."""
        self._calls[call_id] = (tool, arguments, time.perf_counter())

    def noted(self, call_id: str, output: Any, status: Status | None = None) -> dict[str, Any] | None:
        """Notes what the call came to; see ``Run.note``. One that was not noted before is passed over."""
        if call_id not in self._calls:
            return None
        tool, arguments, began = self._calls.pop(call_id)
        return self.run.note(tool, arguments, output, status=status, duration_ms=1000 * (time.perf_counter() - began))

    def answered(self, call_id: str, output: Any, status: Status | None = None) -> str | None:
        """Notes what the call came to, and returns advice if it failed."""
        return self.run.advised(self.noted(call_id, output, status))

    async def advised(self, call_id: str, output: Any, status: Status | None = None) -> str | None:
        """Does what ``answered`` does, without holding up the event loop."""
        asked = self.noted(call_id, output, status)
        return None if asked is None else await asyncio.to_thread(self.run.advised, asked)

    def ended(self, answer: Any) -> None:
        """Retains a run that came to its end with this answer."""
        self._retain(None, answer)

    def broke_off(self, error: BaseException) -> None:
        """Retains a run that an error ended: a failure, or aborted where it was stopped from outside."""
        self._retain(error, None)

    def _retain(self, error: BaseException | None, answer: Any) -> None:
        if self._retained:
            return
        self._retained = True
        for tool, arguments, _ in self._calls.values():
            self.run.note(tool, arguments, None if error is None else str(error), status="error")
        if error is None and self.run.outcome is None:
            try:
                self.run.end(self.judge(answer))
            except Exception:
                log.exception("casebank: the judge failed, and the outcome of the run is unknown")
        self.run.finish(error)


def with_context(instructions: str | None, context: str) -> str | None:
    """Returns the instructions with what memory says after them."""
    return "\n\n".join(part for part in (instructions, context) if part) or None


def with_advice(output: Any, advice: str | None, kind: str = "text") -> Any:
    """Returns what a message says, a text or a list of parts, with the advice after it."""
    if advice is None:
        return output
    return f"{output}\n\n{advice}" if isinstance(output, str) else [*output, {"type": kind, "text": advice}]
