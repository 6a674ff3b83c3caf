"""Stands in for Claude Code's command line, which needs a key: speaks its protocol over stdin and stdout.

The prompt is the script: `select`, `broken`, `old` and `told` are calls of the tool `sql`; the others than the first
fail, `told` by what it returns. It ends with a result that is an error where the prompt has `limit`, and without any
where it has `crash`; the result says what the hooks added.
"""

import json
import sys

RULE = "Error: this server speaks one dialect of SQL and no other"
CALLS = {"select": "ran it", "broken": "no such table", "old": RULE, "told": RULE}


def say(message: dict) -> None:
    sys.stdout.write(json.dumps(message) + "\n")
    sys.stdout.flush()


def hear() -> dict:
    line = sys.stdin.readline()
    if not line:
        sys.exit(0)
    return json.loads(line)


def hook(hooks: dict, event: str, call: str | None = None, **told: object) -> str:
    """Calls the hooks of an event, and returns the context that they add."""
    added = []
    base = {"session_id": "s", "transcript_path": "/dev/null", "cwd": "/", "hook_event_name": event}
    for number, matcher in enumerate(hooks.get(event, [])):
        for callback in matcher["hookCallbackIds"]:
            asked = {"subtype": "hook_callback", "callback_id": callback, "input": base | told, "tool_use_id": call}
            say({"type": "control_request", "request_id": f"{event}-{number}-{call}", "request": asked})
            answer = hear()["response"].get("response", {})
            added.append(answer.get("hookSpecificOutput", {}).get("additionalContext", ""))
    return "".join(added)


def main() -> None:
    asked = hear()
    say(
        {
            "type": "control_response",
            "response": {"subtype": "success", "request_id": asked["request_id"], "response": {}},
        }
    )
    hooks = asked["request"]["hooks"] or {}
    prompt = hear()["message"]["content"]
    added = hook(hooks, "UserPromptSubmit", prompt=prompt)
    for number, query in enumerate(word for word in prompt.split() if word in CALLS):
        given = {"query": query} if CALLS[query] != RULE else {"query": "old", "dialect": "mysql"}
        call = {"tool_name": "sql", "tool_input": given, "tool_use_id": f"call-{number}"}
        hook(hooks, "PreToolUse", f"call-{number}", **call)
        if query in {"broken", "old"}:
            added += hook(hooks, "PostToolUseFailure", f"call-{number}", **call, error=CALLS[query])
        else:
            added += hook(hooks, "PostToolUse", f"call-{number}", **call, tool_response=CALLS[query])
    if "crash" in prompt:
        sys.exit(3)
    times = {"duration_ms": 1, "duration_api_ms": 1, "num_turns": 1, "session_id": "s"}
    failed = "limit" in prompt
    subtype = "error_max_turns" if failed else "success"
    say({"type": "result", "subtype": subtype, "is_error": failed, "result": added, **times})
    hear()


main()
