"""By which words an error is found again: the first line of what each failed call said."""

from writer.analysis.calls import StoredRun

MOST_SIGNATURES = 20
SIGNATURE_CHARS = 200


def error_signatures(run: StoredRun) -> list[str]:
    """Returns the first lines of the run's errors, each once, in the order of the calls; as redacted as its traces."""
    said = (call.failure.strip().partition("\n")[0][:SIGNATURE_CHARS] for call in run.calls if call.failure)
    return list(dict.fromkeys(line for line in said if line))[:MOST_SIGNATURES]
