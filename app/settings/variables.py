"""The variables ``CASEBANK_…`` of the environment that set nothing: earlier settings, and names that are unknown."""

import re
from collections.abc import Collection, Iterable, Iterator
from difflib import get_close_matches

from app.wrong_settings import variable_of

REPLACED = {
    **{
        f"{scope}_{kind}_per_minute": f"limits={scope}_{kind}=N"
        for scope in ("user", "agent", "session")
        for kind in ("reads", "writes")
    },
    "limits_at_once_s": "limits=burst_s=N",
    "requests_at_once": "limits=requests=N",
    "user_requests_at_once": "limits=user_requests=N",
    "all_pending": "limits=pending=N",
    "user_pending": "limits=user_pending=N",
    "database_timeout_s": "timeouts_s=database=N",
    "embedder_timeout_s": "timeouts_s=embedder_request=N",
    "embedder_budget_s": "timeouts_s=embedder=N",
    "llm_timeout_s": "timeouts_s=llm_request=N",
    "llm_budget_s": "timeouts_s=llm=N",
    "llm_rewrite_budget_s": "timeouts_s=llm_rewrite=N",
    "headers_timeout_s": "timeouts_s=headers=N",
    "body_timeout_s": "timeouts_s=body=N",
    "body_budget_s": "timeouts_s=body_check=N",
    "turn_wait_s": "timeouts_s=turn=N",
    "stop_within_s": "timeouts_s=stop=N",
    "worker_poll_s": "worker_pace=poll_s=N",
    "worker_lease_s": "worker_pace=lease_s=N",
    "worker_max_attempts": "worker_pace=attempts=N",
    "worker_backoff_s": "worker_pace=backoff_s=N",
    "connections_per_address": "connections=per_address=N",
}
"""Earlier settings, each with the setting and the name in it that took its place."""

FIXED = {
    "bodies_in_flight_bytes": "it is four times the value of max_body_bytes",
    "crowd_share": "it is always 0.1",
    "seal_every_s": "it is always 60 seconds",
}
"""Earlier settings that cannot be set any more, each with the value in force."""

OTHER_READERS = {"CASEBANK_DATA", "CASEBANK_ENV_FILE", "CASEBANK_TOKEN", "CASEBANK_URL"}
"""Variables that the benchmarks, the clients and the command line read."""

ORCHESTRATED = re.compile(r"CASEBANK_(SERVICE_|PORT(_|$))")
"""Variables that Kubernetes sets in every container beside a service that is called casebank."""


def earlier_settings(environment: Collection[str]) -> Iterator[str]:
    """Yields a line for each variable that set something in an earlier version, with what takes its place."""
    for name, place in REPLACED.items():
        if variable_of(name) in environment:
            setting, _, number = place.partition("=")
            yield f"{variable_of(name)}: is a part of another setting now: {variable_of(setting)}={number}"
    for name, value in FIXED.items():
        if variable_of(name) in environment:
            yield f"{variable_of(name)}: cannot be set any more, {value}; take it out"


def unknown_variables(environment: Iterable[str], settings: Iterable[str]) -> Iterator[str]:
    """Yields a line for each variable of casebank's that nothing reads, with the nearest setting's name."""
    known = {variable_of(name) for name in settings} | OTHER_READERS
    for name in sorted(environment):
        if name.startswith("CASEBANK_") and name not in known and not ORCHESTRATED.match(name):
            near = get_close_matches(name, known, n=1, cutoff=0.8)
            yield f"{name} is no setting" + (f"; did you mean {near[0]}?" if near else "")
