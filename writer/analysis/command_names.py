"""Names in command lines that are no data of a run, read from ``command_names.toml``, which says what each is."""

from retrieval.patterns import read

_READ = read("writer.analysis", "command_names.toml")
_SETS: dict[str, frozenset[str]] = {name: frozenset(words.split()) for name, words in _READ["sets"].items()}
_GROUPS: dict[str, list[str]] = _READ["groups"]
PROGRAMS = _SETS["programs"]
INTERPRETERS = _SETS["interpreters"]
WRAPPERS = _SETS["wrappers"]
SUBCOMMANDS = _SETS["subcommands"]
INSTALLS = _SETS["installs"]
PACKAGE_MANAGERS = _SETS["package_managers"]
SINGLE_DASH = _SETS["single_dash"]
SECRET_FLAGS = _SETS["secret_flags"]
BUILDING = _SETS["building"]
LINKING = _SETS["linking"]
SAFE_WORDS = _SETS["safe_words"]
MODULES = _SETS["modules"]
EXTENSIONS = _SETS["extensions"]
FILTERS = _SETS["filters"]
READERS = _SETS["readers"]
TRIVIAL = _SETS["trivial"]
DATABASES = _SETS["databases"]
JQ_WORDS = _SETS["jq_words"]
NESTED = frozenset(tuple(pair.split()) for pair in _GROUPS["nested"])
FAMILIES = tuple(frozenset(names.split()) for names in _GROUPS["families"])
SUB_FAMILIES = tuple(frozenset(names.split(",")) for names in _GROUPS["sub_families"])
