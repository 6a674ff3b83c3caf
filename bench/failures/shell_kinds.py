"""Kinds of tasks in a shell that read files, each with the command lines that one would try; several read alike."""

from bench.failures.kinds import Kind, Names, Way

TOPICS: tuple[Names, ...] = tuple(
    {"d": d, "word": word}
    for d, word in (
        ("photos", "amber"), ("invoices", "birch"), ("letters", "cobalt"), ("songs", "delta"), ("reports", "ember"),
        ("maps", "fjord"), ("recipes", "garnet"), ("drawings", "harbor"), ("minutes", "indigo"), ("surveys", "juniper"),
    )
)  # fmt: skip
VALUES = {
    "code": ("a17", "b20", "c31", "d48", "e52", "f66", "g73", "h89"),
    "n": ("12", "25", "31", "48", "57", "64", "79", "93"),
    "port": ("8080", "5432", "9000", "3306", "6379"),
}


def _packed(title: str, unpack: str, pack: str) -> Way:
    """Returns the way that unpacks what was packed in its format."""
    return Way(title, unpack, f"{pack} && rm -r {{d}}")


UNPACK = Kind(
    "unpack",
    ("Unpack {d}.pack", "Extract the files of {d}.pack", "{d}.pack: unpack it here"),
    (
        _packed("unpack with gzip", "tar -xzf {d}.pack", "tar -czf {d}.pack {d}"),
        _packed("unpack with bzip2", "tar -xjf {d}.pack", "tar -cjf {d}.pack {d}"),
        _packed("unpack with xz", "tar -xJf {d}.pack", "tar -cJf {d}.pack {d}"),
        _packed("unpack as it is", "tar -xf - < {d}.pack", "tar -cf {d}.pack {d}"),
        _packed("unpack a zip", "python3 -m zipfile -e {d}.pack .", "python3 -m zipfile -c {d}.pack {d}"),
        _packed("decode base64 first", "base64 -d {d}.pack | tar -xzf -", "tar -czf - {d} | base64 > {d}.pack"),
        _packed("gunzip first", "gunzip < {d}.pack | tar -xzf -", "tar -czf - {d} | gzip > {d}.pack"),
    ),
    setup="mkdir {d} && echo {n} > {d}/{code}.txt && ",
    goal="cat {d}/{code}.txt",
    answer="{n}",
)

SEARCH = Kind(
    "search",
    ("Which files of {d} mention {word}?", "List the files in {d} that speak of {word}", "{d}: where is {word}?"),
    (
        Way("search with -r", "grep -rl {word} {d} | sort", "", "{d}/a.txt\n{d}/b.txt\n{d}/c.md\n{d}/sub/d.txt"),
        Way("search whole words", "grep -rlw {word} {d} | sort", "", "{d}/a.txt\n{d}/c.md\n{d}/sub/d.txt"),
        Way(
            "search without regard to case",
            "grep -ril {word} {d} | sort",
            "",
            "{d}/a.txt\n{d}/b.txt\n{d}/c.md\n{d}/e.txt\n{d}/sub/d.txt",
        ),
        Way(
            "search .txt alone",
            "grep -rl --include='*.txt' {word} {d} | sort",
            "",
            "{d}/a.txt\n{d}/b.txt\n{d}/sub/d.txt",
        ),
        Way("search the top folder alone", "grep -sl {word} {d}/* | sort", "", "{d}/a.txt\n{d}/b.txt\n{d}/c.md"),
        Way("search the names", "find {d} -name '*{word}*'", "", "{d}/{word}.txt"),
        Way("search the folder", "grep -l {word} {d}"),
        Way("search with --recurse", "grep --recurse -l {word} {d}"),
    ),
    setup=(
        "mkdir -p {d}/sub && echo {word} | tee {d}/a.txt {d}/c.md {d}/sub/d.txt && echo {word}s > {d}/b.txt && "
        "echo {word} | tr a-z A-Z > {d}/e.txt && touch {d}/{word}.txt"
    ),
)


def _script(title: str, run: str, text: str) -> Way:
    """Returns the way that runs a file with its interpreter."""
    return Way(title, run, f"cat > {{d}}/job <<'END'\n{text}\nEND")


RUN = Kind(
    "run",
    ("Run {d}/job", "Start the job of {d}", "{d}: run its job"),
    (
        _script("run with bash", "bash {d}/job", "a=({n} 1); echo ${{a[0]}}"),
        _script("run with python3", "python3 {d}/job", 'print(f"{n}")'),
        _script("run with perl", "perl {d}/job", 'my $x = {n}; print "$x\\n";'),
        _script("run with awk", "awk -f {d}/job", "BEGIN {{ x = {n}; print x + 0 }}"),
        _script("run with sed", "sed -n -f {d}/job {d}/list", "1s/.*/{n}/p"),
        Way("run it directly", "./{d}/job"),
        Way("run with sh", "sh {d}/job"),
        Way("source it", "source {d}/job"),
    ),
    setup="mkdir {d} && echo one > {d}/list && ",
    answer="{n}",
)


def _separated(title: str, option: str, separator: str) -> Way:
    """Returns the way that sorts by the second field behind a separator."""
    rows = [f"{name}{separator}{number}" for name, number in (("x", 9), ("a", "{n}"), ("k", 100))]
    words = " ".join(f"'{row}'" for row in rows)
    return Way(
        title,
        f"sort {option}-k2,2nr {{d}}.list",
        f"printf '%s\\n' {words} > {{d}}.list",
        "\n".join((rows[2], rows[1], rows[0])),
    )


SORT = Kind(
    "sort",
    (
        "Sort {d}.list by number, largest first",
        "{d}.list: largest number first",
        "Order {d}.list by its numbers, falling",
    ),
    (
        _separated("separate by blanks", "", " "),
        _separated("separate by commas", "-t, ", ","),
        _separated("separate by semicolons", "-t';' ", ";"),
        _separated("separate by bars", "-t'|' ", "|"),
        _separated("separate by colons", "-t: ", ":"),
        _separated("separate by equals signs", "-t= ", "="),
        Way("sort with --largest", "sort --largest {d}.list"),
        Way("sort in reverse", "sort -r {d}.list"),
    ),
)


def _python(title: str, imports: str, value: str, text: str) -> Way:
    """Returns the way that reads a configuration with a module of Python."""
    return Way(title, f"python3 -c 'import {imports}; print({value})'", f"cat > {{d}}.conf <<'END'\n{text}\nEND")


def _line(title: str, begin: str) -> Way:
    """Returns the way that reads a line of a configuration by its beginning."""
    return Way(title, f"sed -n 's|^{begin}||p' {{d}}.conf", f"echo '{begin}{{port}}' > {{d}}.conf")


PORT = Kind(
    "port",
    ("Which port does {d} use?", "{d}: what is the port in its configuration?", "Name the port in {d}.conf"),
    (
        _python("read as JSON", "json", 'json.load(open("{d}.conf"))["port"]', '{{"port": {port}}}'),
        _python(
            "read as TOML",
            "tomllib",
            'tomllib.load(open("{d}.conf", "rb"))["server"]["port"]',
            '[server]\nport = {port}\nnames = [\n"{d}",\n]',
        ),
        _python(
            "read as INI",
            'configparser as c; p = c.ConfigParser(); p.read_file(open("{d}.conf"))',
            'p["server"]["port"]',
            "[server]\nport = {port}\nname = the {d}",
        ),
        _python(
            "read as XML",
            "xml.etree.ElementTree as e",
            'e.parse("{d}.conf").find("port").text',
            "<server><port>{port}</port></server>",
        ),
        _line("read a line port:", "port: "),
        _line("read a line PORT=", "PORT="),
        _line("read a line listen", "listen "),
    ),
    answer="{port}",
)


def _summed(program: str) -> Way:
    """Returns the way that checks sums with the program that made them."""
    return Way(f"check with {program}", f"{program} -c {{d}}.sums", f"{program} {{d}}.txt > {{d}}.sums")


VERIFY = Kind(
    "verify",
    ("Check {d}.txt against its sums", "Verify {d}.sums", "{d}: are its sums right?"),
    tuple(map(_summed, ("md5sum", "sha1sum", "sha224sum", "sha256sum", "sha384sum", "sha512sum", "b2sum"))),
    setup="echo {n} > {d}.txt && ",
    answer="{d}.txt: OK",
)
READS = (UNPACK, SEARCH, RUN, SORT, PORT, VERIFY)
