"""Shows command lines with placeholders for their data, so that a procedure may quote them.

Programs, subcommands, flags, packages and common project names stay. Paths, hosts, numbers that may be ids, texts and
values of flags for secrets become placeholders. The concrete level also keeps words, relative paths and texts, unless
they name a machine, a person or an id.
"""

import re
from collections.abc import Iterator, Sequence
from itertools import takewhile

from retrieval.patterns import patterns, word_sets
from writer.analysis.command_names import (
    BUILDING,
    EXTENSIONS,
    INSTALLS,
    INTERPRETERS,
    JQ_WORDS,
    LINKING,
    MODULES,
    NESTED,
    PACKAGE_MANAGERS,
    PROGRAMS,
    SAFE_WORDS,
    SECRET_FLAGS,
    SINGLE_DASH,
    SUBCOMMANDS,
    WRAPPERS,
)
from writer.analysis.commands import Piece, bare

_STARTS = {"|", "||", "&&", ";", "&", "\n", "(", "|&"}
_FORMS = patterns("writer.analysis", "command_words")
_WORDS = word_sets("writer.analysis", "command_words")
MOST_PARTS = 3
"""Maximum parts of a name with colons, such as a mount with its mode."""
MOST_ASSIGNED = 100
"""Maximum number of assignments in one word that are read."""
MOST_CHARS = 100
"""Maximum characters of a quoted text that the concrete level of abstraction keeps, about a line."""


def shown(line: Sequence[Piece], *, concrete: bool = False) -> list[str]:
    """Returns the pieces of a command line in order, each as it is written or as a placeholder.

    ``concrete``: keep words, relative paths and texts that name no machine, person or id.
    """
    return list(_Abstraction(concrete=concrete).apply(line))


class _Abstraction:
    """One pass over a line's pieces; keeps track of the current command, since the meaning of a word depends on it."""

    def __init__(self, *, concrete: bool) -> None:
        self._concrete = concrete
        self._begin()

    def _begin(self) -> None:
        self._program = ""
        self._subs: list[str] = []
        self._levels = 0
        self._flag = ""

    def apply(self, line: Sequence[Piece]) -> Iterator[str]:
        redirected, sign = False, ""
        for piece in line:
            if piece.kind == "sign":
                sign = piece.text
                redirected = piece.text not in _STARTS
                if not redirected:
                    self._begin()
                yield ";" if piece.text == "\n" else piece.text
            elif piece.kind == "word":
                end = sign.startswith("<<") and _FORMS["end"].fullmatch(piece.text)
                yield piece.text if end else self._value(piece.text) if redirected else self._word(piece.text)
                redirected = False
            else:
                yield "<string>" if piece.kind == "text" else piece.text

    def _word(self, word: str) -> str:
        if not self._program:
            return self._first(word)
        flag, self._flag = self._flag, ""
        if word.startswith("-") and len(word) > 1:
            return self._flag_form(word)
        if (self._program == "xargs" and flag not in _WORDS["takes_value"]) or flag in {"-exec", "-execdir"}:
            self._begin()
            return self._first(word)
        return self._operand(flag, word)

    def _operand(self, flag: str, word: str) -> str:
        """Returns the form of an operand, or of the value of the flag before it."""
        if flag in SECRET_FLAGS:
            return "<secret>"
        if (self._program, flag) == ("git", "-c") and (given := _FORMS["setting"].fullmatch(word)):
            return self._assigned(given[1], given[2])
        if flag == "-m" and self._program in INTERPRETERS:
            return self._module(word)
        has_port = flag in {"-p", "-P"} and self._program in _WORDS["with_port"]
        if (has_port or _FORMS["numeric_flag"].fullmatch(flag)) and re.fullmatch(r"\d{1,5}", word):
            return word
        if self._levels and _FORMS["subcommand"].fullmatch(word):
            return self._sub(word)
        if self._subs and self._subs[-1] in INSTALLS and self._program in PACKAGE_MANAGERS and flag not in {"-r", "-c"}:
            plain = bare(word)
            is_place = plain.startswith((".", "/", "~")) or "://" in plain or plain.rsplit(".", 1)[-1] in EXTENSIONS
            keep = not is_place and bool(_FORMS["package"].fullmatch(plain)) and not _FORMS["id"].fullmatch(plain)
        else:
            pattern = {
                "chmod": _FORMS["mode"],
                "tar": _FORMS["cluster"],
                "docker": _FORMS["ports"] if flag in {"-p", "--publish"} else None,
            }.get(self._program, _FORMS["task"] if self._program in BUILDING else None)
            if self._subs[-1:] == ["config"] and not _FORMS["secret_name"].search(word.casefold()):
                pattern = _FORMS["config_key"]
            keep = pattern is not None and bool(pattern.fullmatch(word))
        return word if keep else self._value(word)

    def _first(self, word: str) -> str:
        """Returns the form of the first word of a command, and remembers its program."""
        if assignment := _FORMS["assigned"].fullmatch(word):
            return self._assigned(assignment[1], assignment[2])
        if "=" in word:
            return "<word>"
        plain = bare(word)
        if plain != word and " " in plain:
            return "<string>"
        name = plain.rsplit("/", 1)[-1]
        if plain in WRAPPERS or plain in {"{", "}", "!", "do", "then", "else", "if"}:
            return plain
        self._program = re.sub(r"(?<=[a-z])[\d.]+$", "", name)
        self._levels = 1 if self._program in SUBCOMMANDS else 0
        if "/" not in plain:
            return (
                word
                if name in PROGRAMS or (_FORMS["name"].fullmatch(name) and not _FORMS["id"].fullmatch(name))
                else "<word>"
            )
        path = self._path(plain)
        return path if "<" not in path or self._program not in PROGRAMS else f"<path>/{name}"

    def _sub(self, word: str) -> str:
        self._levels -= 1
        if (self._program, word) in NESTED or (self._program == "docker-compose"):
            self._levels += not self._subs
        self._subs.append(word)
        if self._program in {"uv", "poetry", "pipenv", "bundle"} and word in {"run", "exec"}:
            self._begin()
        elif (self._program, word) == ("uv", "pip"):
            self._program, self._subs, self._levels = "pip", [], 1
        return word

    def _module(self, word: str) -> str:
        if word == "pip" or word in SUBCOMMANDS:
            self._program, self._levels = word, 1
        if word in MODULES or (_FORMS["module"].fullmatch(word) and set(word.split(".")) <= SAFE_WORDS):
            return word
        return word if self._concrete and _FORMS["module"].fullmatch(word) else "<module>"

    def _flag_form(self, word: str) -> str:
        name, sign, value = word.partition("=")
        if sign and name.startswith("--") and _FORMS["flag"].fullmatch(name):
            return f"{name}=<secret>" if name in SECRET_FLAGS else f"{name}={self._value(value)}"
        if self._program in BUILDING and (given := _FORMS["property"].fullmatch(word)):
            return self._assigned(given[1], given[2]) if given[2] else word
        self._flag = word
        if word in SINGLE_DASH or _FORMS["flag"].fullmatch(word) or _FORMS["counted"].fullmatch(word):
            return word
        more = _FORMS["cluster"] if self._program in {"tar", "ls", "ps", "rsync", "grep", "git", "ssh"} else None
        more = _FORMS["linking_flag"] if self._program in LINKING else more
        more = _FORMS["field_flag"] if self._program in _WORDS["of_fields"] else more
        if more is not None and more.fullmatch(word):
            return word
        if self._program in LINKING and word[:2] in {"-I", "-L"}:
            return f"{word[:2]}{self._value(word[2:])}"
        return word if _FORMS["number"].fullmatch(word) else "<word>"

    def _assigned(self, name: str, value: str) -> str:
        if _FORMS["secret_name"].search(name.casefold()) and value:
            return f"{name}=<secret>"
        return f"{name}={value if _FORMS['option'].fullmatch(value) else self._value(value)}"

    def _value(self, word: str) -> str:
        inner = bare(word)
        if inner == word:
            return "<string>" if "'" in word or '"' in word else self._plain(word)
        if script := self._script(inner, word[0]):
            return f"{word[0]}{script}{word[0]}"
        if self._concrete and len(inner) <= MOST_CHARS and not _FORMS["private"].search(inner):
            return word
        if re.fullmatch(r"[^\w\s]{1,2}", inner):  # a separator
            return word
        if not inner or re.search(r"""[^\w./*@:=,\[\]?<>~^+ -]""", inner) or (" " in inner and not _is_path(inner)):
            return "<string>"
        form = self._path(inner) if " " in inner else self._plain(inner)
        return f"{word[0]}{form}{word[0]}" if "<" not in form or "<path>" in form else "<string>"

    def _script(self, inner: str, quote: str) -> str:
        """Returns the form of a quoted program of sed or jq, its words as placeholders; empty for other texts."""
        if self._program == "sed" and (script := _FORMS["sed"].fullmatch(inner)):
            if self._concrete:
                return inner
            old, new = (_FORMS["sed_word"].sub("<word>", script[at]) for at in (2, 3))
            return f"s{script[1]}{old}{script[1]}{new}{script[1]}{script[4]}"
        if self._program == "jq" and quote == "'" and re.search(r"[.\[]", inner):
            keep = JQ_WORDS if not self._concrete else None
            return re.sub(r"[A-Za-z_]\w*", lambda at: at[0] if keep is None or at[0] in keep else "<word>", inner)
        return ""

    def _plain(self, word: str) -> str:
        if (
            word in SAFE_WORDS
            or not re.search(r"\w", word)
            or _FORMS["variable"].fullmatch(word)
            or _FORMS["number"].fullmatch(word)
        ):
            return word
        if word == "/dev/null":
            return word
        if word[0].isdigit() and re.fullmatch(r"[\d.,:-]+", word):
            return "<number>"
        if word.count("=") <= MOST_ASSIGNED and (assigned := _FORMS["assigned"].fullmatch(word)):
            return self._assigned(assigned[1], assigned[2])
        if url := _FORMS["url"].fullmatch(word):
            local = _FORMS["local"].match(url[2])
            rest = "/<path>" if local and url[2][local.end() :].strip("/") else ""
            return f"{url[1]}://{local[0]}{rest}" if local else "<url>"
        return self._path(word) if _is_path(word) else self._named(word)

    def _named(self, word: str) -> str:
        if "@" in word or ":" in word or _FORMS["local"].fullmatch(word):
            return (
                word if self._program in {"docker", "podman"} and _FORMS["image"].fullmatch(word) else self._place(word)
            )
        if _FORMS["host"].fullmatch(word):
            is_host = self._program in _WORDS["to_hosts"] or _FORMS["domain"].fullmatch(word)
            return "<host>" if is_host else "<path>"
        if _FORMS["id"].fullmatch(word):
            return "<id>"
        if self._concrete or set(re.split(r"[:._-]", word)) <= SAFE_WORDS or _FORMS["version"].fullmatch(word):
            return word
        if self._on_branch():
            return word if _FORMS["revision"].fullmatch(word) else "<branch>"
        return "<word>"

    def _place(self, word: str) -> str:
        """Returns the form of a host with a port or a path, or of a name in parts such as test:unit."""
        if _FORMS["local"].fullmatch(word) or set(re.split(r"[:@]", word)) <= SAFE_WORDS:
            return word
        if _FORMS["host"].fullmatch(word) or "@" in word:
            return "<host>:<path>" if ":" in word else "<host>"
        return ":".join(self._plain(part) for part in word.split(":")) if word.count(":") < MOST_PARTS else "<word>"

    def _path(self, word: str) -> str:
        plain, extras = (spec[1], spec[2] or "") if (spec := _FORMS["spec"].fullmatch(word)) else (word, "")
        parts = plain.split("/")
        *folders, name = parts
        if all(_is_safe_part(part) for part in parts) and not plain.startswith("~"):
            return word
        if self._concrete and not plain.startswith(("/", "~")) and not _FORMS["id"].fullmatch(name):
            return word
        known = "".join(f"{part}/" for part in takewhile(_is_safe_part, folders))
        if name and folders and _is_safe_part(name) and name not in {"*", "."}:
            return f"{known}<path>/{name}{extras}"
        if self._on_branch() and "." not in name:
            return "<branch>"
        if plain.startswith("~"):
            known = ""
        suffix = re.search(r"(?:\.tar)?\.(\w{1,8})$", name)
        end = suffix[0] if suffix and suffix[1] in EXTENSIONS else ""
        return f"{known}<path>{end}{extras}"

    def _on_branch(self) -> bool:
        return self._program == "git" and bool(self._subs) and self._subs[0] in _WORDS["on_branches"]


def _is_path(word: str) -> bool:
    if "@" in word or "://" in word:
        return False
    end = word.rsplit(".", 1)
    return "/" in word or word.startswith(("~", ".")) or (len(end) > 1 and end[1].split("[")[0] in EXTENSIONS)


def _is_safe_part(part: str) -> bool:
    if not part or part in SAFE_WORDS or part in {".", "..", "*", "**", "..."} or part in PROGRAMS:
        return True
    stem, dot, end = part.rpartition(".")
    if not dot or end not in EXTENSIONS:
        return False
    return stem in {"*", "test_*", "*_test", "*.test"} or set(re.split(r"[._-]", stem)) <= SAFE_WORDS | {""}
