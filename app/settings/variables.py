"""The variables ``CASEBANK_…`` of the environment that are no settings."""

import re
from collections.abc import Iterable, Iterator
from difflib import get_close_matches

from app.wrong_settings import variable_of

ENV_FILE = "CASEBANK_ENV_FILE"
"""Variable that names a file of further variables, for the command line."""
OTHER_READERS = {"CASEBANK_DATA", ENV_FILE, "CASEBANK_TOKEN", "CASEBANK_URL"}
"""Variables that the benchmarks, the clients and the command line read."""

ORCHESTRATED = re.compile(r"CASEBANK_(SERVICE_|PORT(_|$))")
"""Variables that Kubernetes sets in every container beside a service that is called casebank."""


def unknown_variables(environment: Iterable[str], settings: Iterable[str]) -> Iterator[str]:
    """Yields a line for each variable of casebank's that is no setting, with the nearest setting's name."""
    known = {variable_of(name) for name in settings} | OTHER_READERS
    for name in sorted(environment):
        if name.startswith("CASEBANK_") and name not in known and not ORCHESTRATED.match(name):
            near = get_close_matches(name, known, n=1, cutoff=0.8)
            yield f"{name} is no setting" + (f"; did you mean {near[0]}?" if near else "")
