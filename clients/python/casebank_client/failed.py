"""A failed call as a run asks advice for it: the guess that it failed, and what was tried since.

The guess only saves requests: casebank decides by the output. It is right more often than it misses.
"""

import re
from collections.abc import Mapping, Sequence
from typing import Any

from casebank_client.bodies import as_text, shortened

ADVICE_S = 0.3
"""Default of the seconds that a failed call waits for advice."""
MOST_TRIED = 50
LOOK_CHARS = 2_000
END_CHARS = 500

_NO_ERROR = re.compile(
    r'"\w*(?:err|exception|fail)\w*"\s*:\s*(?:null|false|0|""|\[\s*\]|\{\s*\})|\b(?:no|0) errors?\b', re.IGNORECASE
)
_ERROR = re.compile(
    r"err(?:or|eur)|exception|fail|traceback|fatal|panic|abort|denied|refused|reject|forbidden|unauthori|invalid"
    r"|illegal|unable|unsupported|unavailable|cannot|can't|could ?n[o']t|not (?:found|exist|allowed|valid)|n[o']t exist"
    r"|no such|unknown|unexpected|required|violat|already exist|timed? ?out|too many|fehl|ungültig|fall[oó]\b"
    r"|错误|失败|未找到|エラー|오류"
    r'|exit\w*[\s_]*(?:with )?(?:code|status)?["\s:=]+-?[1-9]|\b(?:rc|returncode|return_code)\W{1,4}-?[1-9]'
    r'|"(?:success|succeeded|ok)"\s*:\s*false|(?:http|status|code)\w*\W{1,4}[45]\d\d\b|^\W*[45]\d\d\b',
    re.IGNORECASE,
)


def may_have_failed(output: Any) -> bool:
    """Returns whether the beginning or the end of an output looks like an error."""
    text = as_text(output)
    ends = f"{text[:LOOK_CHARS]}\n{text[LOOK_CHARS:][-END_CHARS:]}"
    return _ERROR.search(_NO_ERROR.sub("", ends)) is not None


def question(traces: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Returns the fields of a request for advice at the last of these calls, which failed.

    Where the run met the same failure before, the request is about the first of these calls, and every later one
    was tried since.
    """
    failure = _failure(traces[-1])
    first = next(place for place, trace in enumerate(traces) if _failure(trace) == failure)
    tried = [{"tool": each["tool"], "input": each["input"]} for each in traces[first + 1 :][-MOST_TRIED:]]
    tool, given, output = (traces[first][name] for name in ("tool", "input", "output"))
    status = traces[-1].get("status", "ok")  # the guess that the call failed is left to the service
    return {"tool": tool, "input": given, "output": shortened(output, 4 * LOOK_CHARS), "status": status, "tried": tried}


def _failure(trace: Mapping[str, Any]) -> tuple[str, str]:
    """Returns what two calls that failed alike have in common: the tool, and the error without its numbers."""
    return trace["tool"], re.sub(r"\d+", "", as_text(trace["output"])[:300])
