"""Kinds of tasks in a shell that change files, each with the command lines that one would try; several read alike."""

from bench.failures.kinds import Kind, Way


def _option(title: str, words: str, test: str) -> Way:
    """Returns the way that calls the program of this house, which takes these words alone where it works."""
    return Way(
        title,
        f"backup {words}",
        "cat > bin/backup <<'END'\n#!/bin/sh\n"
        f'if ! {{{{ {test}; }}}}; then echo "backup: unrecognized arguments: $*" >&2; exit 64; fi\n'
        "cp -r {d} {code}\nEND\nchmod +x bin/backup",
    )


BACKUP = Kind(
    "backup",
    ("Back up {d} to {code}", "Put a copy of {d} into {code} with backup", "{d} is to be backed up to {code}"),
    (
        _option("say --to", "{d} --to {code}", '[ "$2" = --to ]'),
        _option("say --into", "{d} --into {code}", '[ "$2" = --into ]'),
        _option("say --target", "{d} --target {code}", '[ "$2" = --target ]'),
        _option("say --dest", "{d} --dest {code}", '[ "$2" = --dest ]'),
        _option("say -o", "{d} -o {code}", '[ "$2" = -o ]'),
        _option("say the place alone", "{d} {code}", "[ $# = 2 ]"),
        _option("say create first", "create {d} {code}", '[ "$1" = create ]'),
    ),
    setup="mkdir {d} && echo {n} > {d}/a.txt && ",
    goal="cat {code}/a.txt",
    answer="{n}",
)
_COPY = "0d\n1d\n2f\n2l\n{d}"
COPY = Kind(
    "copy",
    (
        "Copy {d} to {code}/{word}",
        "Put a copy of {d} into {code} as {word}",
        "{code} needs a copy of {d}, named {word}",
    ),
    (
        Way("copy with cp", "cp {d} {code}/{word}"),
        Way("copy with cp -r", "cp -r {d} {code}/{word}", "mkdir {code}", _COPY),
        Way("copy what links lead to", "cp -rL {d} {code}/{word}", "mkdir {code}", "0d\n1d\n2f\n2f\n{d}"),
        Way("make the folder, then copy", "mkdir {code} && cp -r {d} {code}/{word}", "true", _COPY),
        Way(
            "remove the file, then copy", "rm {code} && mkdir {code} && cp -r {d} {code}/{word}", "touch {code}", _COPY
        ),
        Way("move it", "mv {d} {code}/{word}", "mkdir {code}", "0d\n1d\n2f\n2l"),
        Way("link it", 'ln -s "$PWD/{d}" {code}/{word}', "mkdir {code}", "0d\n1l\n{d}"),
    ),
    setup="mkdir {d} && echo {n} > {d}/a.txt && ln -s a.txt {d}/link && ",
    goal="find {code} -printf '%d%y\\n' | sort; ls -d {d}",
)
_SIGNS = "/|#,:@"


def _replaced(name: str, sign: str) -> Way:
    """Returns the way that separates by a sign, which is not in the path where it works."""
    path = "v".join(other for other in _SIGNS if other != sign)
    return Way(
        f"separate by {name}",
        f'sed -i "s{sign}^path=.*{sign}path=$(cat {{d}}.new){sign}" {{d}}.conf',
        f"echo 'v{path}v{{n}}' > {{d}}.new && echo path=old > {{d}}.conf",
        f"path=v{path}v{{n}}",
    )


REPLACE = Kind(
    "replace",
    (
        "Set the path in {d}.conf to the one in {d}.new",
        "{d}.conf: take the path of {d}.new",
        "Put the new path of {d} into {d}.conf",
    ),
    tuple(map(_replaced, ("slashes", "bars", "hashes", "commas", "colons", "at signs"), _SIGNS)),
    goal="cat {d}.conf",
)
_LS = "ls -d {d}.txt 2>&1; stat -c '%h %a %F' site/*; cat site/*.txt"
PUBLISH = Kind(
    "publish",
    ("Publish {d}.txt in site", "Put {d}.txt into site", "{d}.txt belongs in site"),
    (
        Way("copy it there", "cp {d}.txt site/", "mkdir site", "{d}.txt\n1 644 regular file\n{n}"),
        Way("make the folder, then copy", "mkdir site && cp {d}.txt site/", "true", "{d}.txt\n1 644 regular file\n{n}"),
        Way(
            "move it there",
            "mv {d}.txt site/",
            "mkdir site",
            "ls: cannot access '{d}.txt': No such file or directory\n1 644 regular file\n{n}",
        ),
        Way("link it hard", "ln {d}.txt site/", "mkdir site", "{d}.txt\n2 644 regular file\n{n}"),
        Way("link it soft", 'ln -s "$PWD/{d}.txt" site/', "mkdir site", "{d}.txt\n1 777 symbolic link\n{n}"),
        Way("install it for all", "install -m 755 {d}.txt site/", "mkdir site", "{d}.txt\n1 755 regular file\n{n}"),
        Way(
            "install it for the owner", "install -m 600 {d}.txt site/", "mkdir site", "{d}.txt\n1 600 regular file\n{n}"
        ),
    ),
    setup="umask 022; echo {n} > {d}.txt && ",
    goal=_LS,
)


def _encoded(charset: str) -> Way:
    """Returns the way that reads a file in a charset, in which it is where it works."""
    return Way(
        f"read as {charset}",
        f"iconv -f {charset} -t UTF-8 {{d}}.csv > {{d}}.utf8",
        f"printf 'f\\303\\274r M\\303\\274ller {{n}}\\n' | iconv -f UTF-8 -t {charset} > {{d}}.csv",
    )


CONVERT = Kind(
    "convert",
    ("Convert {d}.csv to UTF-8", "Write {d}.csv as {d}.utf8", "{d}.csv is needed in UTF-8"),
    (
        *map(_encoded, ("LATIN1", "UTF-16", "CP850", "MACINTOSH", "CP500", "UTF-32")),
        Way("read as UTF-8", "iconv -f UTF-8 -t UTF-8 {d}.csv > {d}.utf8"),
        Way("read as ANSI", "iconv -f ANSI -t UTF-8 {d}.csv > {d}.utf8"),
    ),
    goal="cat {d}.utf8",
    answer="für Müller {n}",
)
READ_ONLY = Kind(
    "read_only",
    ("Publish {d}.txt in the archive", "Put {d}.txt into the archive", "{d}.txt belongs in the archive"),
    (
        Way("put it", "archive put {d}.txt"),
        Way("put it with --force", "archive put --force {d}.txt"),
        Way("add it", "archive add {d}.txt"),
        Way("store it", "archive store {d}.txt"),
        Way("name it alone", "archive {d}.txt"),
        Way("push it", "archive push {d}.txt"),
        Way("give it as input", "archive put < {d}.txt"),
    ),
    setup=(
        "echo {n} > {d}.txt; printf '#!/bin/sh\\necho archive: read-only until further notice >&2\\nexit 75\\n' "
        "> bin/archive; chmod +x bin/archive"
    ),
    goal="cat archive/{d}.txt",
    answer="{n}",
)
FILES = (BACKUP, COPY, REPLACE, PUBLISH, CONVERT, READ_ONLY)
