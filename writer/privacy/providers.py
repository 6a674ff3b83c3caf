"""Patterns of tokens as providers document them, read from ``providers.toml``: a prefix, an alphabet and a length.

The patterns replace the engine if it is missing, and complement it, because it finds some tokens only after a name.
"""

from retrieval.patterns import read

PROVIDER_TOKEN = "provider-token"  # noqa: S105 - a kind of finds
_UUID = "[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}"
_READ = read("writer.privacy", "providers.toml")
LOOSE_SIGN = r"-us\d|_mmk|\.atlasv1\.|\dQ~|[0-9a-f]{8}-[0-9a-f]{8}-|[MNO][\w-]{22}[\w-]*\.[\w-]{6}\."
"""Sign of a text that may hold a token in a form without a unique prefix."""
LOOSE = f"{PROVIDER_TOKEN}/loose"

PROVIDERS = {
    LOOSE: r"\b(?:" + "|".join(_READ["loose"]) + r")\b",
    f"{PROVIDER_TOKEN}/form": r"\b(?:" + "|".join(_READ["whole"]).replace("UUID", _UUID) + r")\b",
    **{
        f"{PROVIDER_TOKEN}/{number}": rf"\b(?:{'|'.join(each['prefixes'].split())}){each['rest']}(?:[._-][A-Za-z0-9]{{2,}})*"
        for number, each in enumerate(_READ["prefixed"])
    },
}
"""Patterns of tokens by kind; marks in redacted texts do not show the part of a kind after the slash."""
