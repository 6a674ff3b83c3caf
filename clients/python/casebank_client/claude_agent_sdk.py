"""Memory for the Claude Agent SDK: hooks that retrieve and note tool calls, and a watch on how a run ends."""

from collections.abc import AsyncIterable, AsyncIterator
from typing import Any

from claude_agent_sdk import HookContext, HookMatcher, Message, ResultMessage
from claude_agent_sdk.types import HookEvent, HookInput, SyncHookJSONOutput

from casebank_client.client import Casebank
from casebank_client.watched import Judge, Watched, finished


class EndedInError(Exception):
    """The result said that the run ended in an error; noted, never raised."""


class CasebankHooks:
    """Memory for a conversation, a run for each prompt.

    hooks = CasebankHooks(memory, "db-operator")
    options = ClaudeAgentOptions(hooks=hooks.hooks)
    async for message in hooks.watch(query(prompt=task, options=options)):

    ``watch`` passes every message on, and retains the run with the result: a failure where that is an error, or where
    an exception came in its place. With a ``ClaudeSDKClient`` watch ``client.receive_response()``. The SDK has no hook
    that is told of errors; without ``watch`` nothing is retained.

    Args:
        memory: the synchronous client, whose calls are made in a thread.
        agent: agent of the runs in casebank.
        judge: says by the result's text how the run ended; without it an end without an error is a success.
        more: further fields of the retain, such as ``tags``; ``advice_s=0`` asks for no advice at failed calls.
    """

    def __init__(self, memory: Casebank, agent: str, *, judge: Judge = finished, **more: Any) -> None:
        self._memory = memory
        self._agent = agent
        self._judge = judge
        self._more = more
        self._watched: Watched | None = None
        self.hooks: dict[HookEvent, list[HookMatcher]] = {
            "UserPromptSubmit": [HookMatcher(hooks=[self._prompt])],
            "PreToolUse": [HookMatcher(hooks=[self._call])],
            "PostToolUse": [HookMatcher(hooks=[self._answer])],
            "PostToolUseFailure": [HookMatcher(hooks=[self._failed_call])],
        }

    async def watch(self, messages: AsyncIterable[Message]) -> AsyncIterator[Message]:
        """Yields the messages; retains the run once its result is there, or an error in its place."""
        try:
            async for message in messages:
                if isinstance(message, ResultMessage):
                    self._end(message)
                yield message
        except BaseException as error:
            self._broke_off(error)
            raise

    async def _prompt(self, told: HookInput, _id: str | None, _context: HookContext) -> SyncHookJSONOutput:
        self._watched = Watched(self._memory.run(self._agent, _told(told, "prompt"), **self._more), self._judge)
        await self._watched.begin()
        if not (context := self._watched.run.context):
            return {}
        return {"hookSpecificOutput": {"hookEventName": "UserPromptSubmit", "additionalContext": context}}

    async def _call(self, told: HookInput, call_id: str | None, _context: HookContext) -> SyncHookJSONOutput:
        if self._watched is not None:
            self._watched.called(call_id or "", _told(told, "tool_name"), _told(told, "tool_input"))
        return {}

    async def _answer(self, told: HookInput, call_id: str | None, _context: HookContext) -> SyncHookJSONOutput:
        if self._watched is None:
            return {}
        advice = await self._watched.advised(call_id or "", _told(told, "tool_response"))
        return {"hookSpecificOutput": {"hookEventName": "PostToolUse", "additionalContext": advice}} if advice else {}

    async def _failed_call(self, told: HookInput, call_id: str | None, _context: HookContext) -> SyncHookJSONOutput:
        if self._watched is None:
            return {}
        advice = await self._watched.advised(call_id or "", _told(told, "error"), "error")
        added: Any = {"hookEventName": "PostToolUseFailure", "additionalContext": advice}
        return {"hookSpecificOutput": added} if advice else {}

    def _end(self, result: ResultMessage) -> None:
        if result.is_error:
            self._broke_off(EndedInError(result.result or result.subtype))
        elif self._watched is not None:
            self._watched.ended(result.result)
            self._watched = None

    def _broke_off(self, error: BaseException) -> None:
        if self._watched is not None:
            self._watched.broke_off(error)
            self._watched = None


def _told(told: HookInput, name: str) -> Any:
    return told.get(name)
