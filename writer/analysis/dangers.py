"""Recognises calls and plans that destroy something or switch a check off; advice tells them only of proven runs."""

import json
import re

from retrieval.patterns import patterns
from writer.analysis.calls import Call

_FORMS = patterns("writer.analysis", "dangers")


def is_dangerous(call: Call) -> bool:
    """Returns whether a call destroys something or switches a check off; true in doubt."""
    return names_danger(f"{call.tool} {json.dumps(call.arguments, ensure_ascii=False, default=str)}")


def names_danger(text: str) -> bool:
    """Returns whether a text, such as a plan's step, names an action that destroys or that switches a check off."""
    lines = re.sub(r"\\[nrt]", "\n", text)  # of a JSON text, in which "\\nrm" would hide "rm"
    return _FORMS["dangerous"].search(lines) is not None
