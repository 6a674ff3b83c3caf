"""Recognises calls and plans that destroy something or switch a check off; advice tells them only of proven runs."""

import json

import re2

from writer.analysis.calls import Call

LOOK_CHARS = 4_000

_DANGEROUS = re2.compile(
    r"(?i)\brm\s+(?:-\w+\s+)*-\w*[rf]|\brmdir\b|\bmkfs|\bdd\s+if=|\bshred\b|\bkill(?:all)?\s+-9"
    r"|\bchmod\s+(?:-\w+\s+)*0?777|\bsudo\b|--(?:force|hard|no-verify|no-check|insecure|privileged|yes-i-really)\b"
    r"|\s-D[\w.]*skip\w*|\bgradlew?\b.*\s-x\s+\S*(?:check|test)"
    r"|--(?:allow|disable|skip|ignore|no)-[\w-]*(?:check|valid|verif|secur|auth|tls|ssl|sign|test|lint)"
    r"|\bgit\s+(?:push\b.*\s-f\b|clean\b.*-\w*f|reset\b.*--hard)|\bcurl\b.*\s-\w*k\b"
    r"|\b(?:drop|truncate)\s+(?:table|database|schema|index|column|user|role|view)\b|\bdrop_\w+"
    r"|\bdelete\s+from\s+[\w.\"`]+\s*(?:;|$|[\"'}])"
    r"|\bverify[\w-]*\W{1,4}(?:false|0|none|off)\b|\b(?:force|overwrite|skip_\w+|ignore_\w+|disable_\w+|no_verify"
    r"|unsafe|insecure)\W{1,4}(?:true|1|yes|on)\b|\b(?:disable|bypass|deactivate)_?\w*"
    r"(?:check|valid|verif|secur|auth|firewall|protect|safe)"
)


def is_dangerous(call: Call) -> bool:
    """Returns whether a call destroys something or switches a check off; true in doubt."""
    written = json.dumps(call.arguments, ensure_ascii=False, default=str)[:LOOK_CHARS]
    return names_danger(f"{call.tool} {written}")


def names_danger(text: str) -> bool:
    """Returns whether a text, such as a plan's step, names an action that destroys or that switches a check off."""
    return _DANGEROUS.search(text) is not None
