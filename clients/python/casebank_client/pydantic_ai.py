"""Memory for Pydantic AI: a capability that retrieves before the model and retains after the run."""

from dataclasses import dataclass, field, replace
from typing import Any

from pydantic_ai import ModelRetry, RunContext
from pydantic_ai.capabilities import AbstractCapability
from pydantic_ai.exceptions import ApprovalRequired, CallDeferred
from pydantic_ai.messages import ToolCallPart, ToolReturn, UserPromptPart
from pydantic_ai.run import AgentRunResult
from pydantic_ai.tools import ToolDefinition

from casebank_client.client import Casebank
from casebank_client.watched import Judge, Watched, finished, with_advice


@dataclass
class CasebankMemory(AbstractCapability[Any]):
    """Memory for every run of an agent.

    agent = Agent(model, capabilities=[CasebankMemory(memory, "db-operator")])

    The task is the run's prompt, or else the last one of the messages that it goes on from; what memory says is among
    the instructions. An exception is a failure and goes on; a run that ends with calls to be approved or answered
    elsewhere is retained, and the next one is a run of its own.

    Attributes:
        memory: the synchronous client, whose calls are made in a thread.
        agent: agent of the run in casebank.
        judge: says by the output how the run ended; without it an end without an error is a success.
        more: further fields of the retain, such as ``tags``; with ``advice_s`` 0 no advice is asked for.
    """

    memory: Casebank
    agent: str
    judge: Judge = finished
    more: dict[str, Any] = field(default_factory=dict)
    watched: Watched | None = field(default=None, repr=False)

    async def for_run(self, ctx: RunContext[Any]) -> "CasebankMemory":
        """Returns the memory of one run."""
        return replace(self, watched=Watched(self.memory.run(self.agent, _task(ctx), **self.more), self.judge))

    def get_instructions(self) -> Any:
        """Returns what tells the model, once the run has begun, what memory says."""
        return lambda: self.watched.run.context or None if self.watched is not None else None

    async def wrap_run(self, ctx: RunContext[Any], *, handler: Any) -> AgentRunResult[Any]:  # noqa: ARG002
        """Retrieves before the run, and retains it after."""
        watched = self._watched()
        await watched.begin()
        try:
            result: AgentRunResult[Any] = await handler()
        except BaseException as error:
            watched.broke_off(error)
            raise
        watched.ended(result.output)
        return result

    async def wrap_tool_execute(
        self,
        ctx: RunContext[Any],  # noqa: ARG002
        *,
        call: ToolCallPart,
        tool_def: ToolDefinition,  # noqa: ARG002
        args: Any,
        handler: Any,
    ) -> Any:
        """Runs the tool, notes what it came to, and adds advice to what a failed call tells the model."""
        watched = self._watched()
        watched.called(call.tool_call_id, call.tool_name, args)
        try:
            output = await handler(args)
        except (ApprovalRequired, CallDeferred):
            watched.noted(call.tool_call_id, "deferred")
            raise
        except ModelRetry as error:
            advice = await watched.advised(call.tool_call_id, error.message, "error")
            raise ModelRetry(with_advice(error.message, advice)) from error
        except Exception as error:
            part = getattr(error, "tool_retry", None) or getattr(error, "tool_failed", None)
            if part is None:  # it ends the run
                watched.noted(call.tool_call_id, str(error), "error")
            elif (advice := await watched.advised(call.tool_call_id, str(error), "error")) is not None:
                part.content = with_advice(str(error), advice)
            raise
        return _advised(output, await watched.advised(call.tool_call_id, output))

    def _watched(self) -> Watched:
        assert self.watched is not None, "for_run comes first"  # noqa: S101 - the framework's promise
        return self.watched


def _advised(output: Any, advice: str | None) -> Any:
    """Returns what the tool returned with the advice in it, or beside it."""
    if advice is None or isinstance(output, ToolReturn):
        return output
    return with_advice(output, advice) if isinstance(output, str) else ToolReturn(output, content=advice)


def _task(ctx: RunContext[Any]) -> str:
    """Returns the run's prompt, or else the last one of the messages that it goes on from."""
    parts = [part for message in ctx.messages for part in message.parts]
    earlier = [part.content for part in parts if isinstance(part, UserPromptPart)] or [""]
    prompt = earlier[-1] if ctx.prompt is None else ctx.prompt
    if isinstance(prompt, str):
        return prompt
    return "\n".join(part for part in prompt if isinstance(part, str))
