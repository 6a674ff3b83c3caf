"""Entries are read from JSON lines and Markdown, and a bad line is named with its number and quoted nowhere."""

from pathlib import Path

import pytest

from writer.knowledge.file import LinesRefused, read_entries

SECRET = "ghp_" + "aB3dE5gH7jK9mN1pQ3sT5vW7yZ9bC1dE3fG5"
RULES = {"type": "rule"}


def read(
    folder: Path, name: str, text: str, defaults: dict[str, str] = RULES
) -> list[tuple[str, str, str | None, str]]:
    (path := folder / name).write_text(text, encoding="utf-8")
    return [(each.category, each.type, each.title, each.text) for each in read_entries(path, "bank", **defaults)]


MARKDOWN = """\
# Savings

Every account has an owner.

## Overnight rate
2.1 percent.

```
# no heading
```

### Of children

3 percent.

Loans
=====

## Terms
"""


def test_headings_of_markdown_become_categories_and_titles(tmp_path: Path):
    assert read(tmp_path, "a.md", MARKDOWN) == [
        ("Savings", "rule", None, "Every account has an owner."),
        ("Savings", "rule", "Overnight rate", "2.1 percent.\n\n```\n# no heading\n```"),
        ("Savings", "rule", "Of children", "3 percent."),
    ]


def test_a_text_stays_below_its_heading_whatever_signs_break_its_lines(tmp_path: Path):
    text = "\ufeff# Savings\n\nOne\u2028two\x0cthree\x85four.\n\n## Rate\n\n2.1 percent.\n\n# Loans\n\nNone.\n"
    assert read(tmp_path, "a.md", text) == [
        ("Savings", "rule", None, "One\u2028two\x0cthree\x85four."),
        ("Savings", "rule", "Rate", "2.1 percent."),
        ("Loans", "rule", None, "None."),
    ]


def test_an_entry_that_a_later_one_of_the_file_would_replace_is_refused(tmp_path: Path):
    text = "# Savings\n## A\n### Notes\nfirst\n## B\n### notes\nsecond\n## C\n### D\nsame\n## E\n### D\nsame\n"
    with pytest.raises(LinesRefused, match=r"^line 6: [^;]* line 3$"):
        read(tmp_path, "a.md", text)


def test_markdown_without_a_first_heading_needs_a_category(tmp_path: Path):
    with pytest.raises(LinesRefused, match="line 1: category"):
        read(tmp_path, "a.md", "## Rate\n2.1 percent.\n")
    found = read(tmp_path, "a.md", "## Rate\n2.1 percent.\n", {"category": "money"})
    assert found == [("money", "fact", "Rate", "2.1 percent.")]


def test_json_lines_say_what_they_are_and_leave_the_rest_to_the_defaults(tmp_path: Path):
    lines = (
        '{"category": "money", "title": "Rate", "text": "2.1"}\n\n{"category": "law", "type": "term", "text": "x"}\n'
    )
    assert read(tmp_path, "a.jsonl", lines) == [("money", "rule", "Rate", "2.1"), ("law", "term", None, "x")]


def test_every_bad_line_is_named_with_its_number_and_quoted_nowhere(tmp_path: Path):
    good = '{"category": "money", "text": "x"}'
    bad = f'{good}\nnonsense {SECRET}\n{good}\n{{"category": "m"}}\n{{"category": "{SECRET}", "text": "x"}}\n'
    with pytest.raises(LinesRefused) as refused:
        read(tmp_path, "a.jsonl", bad + '{"agent": "other", "category": "m", "text": "x"}\n')
    assert [part.split(":")[0] for part in str(refused.value).split("; ")] == ["line 2", "line 4", "line 5", "line 6"]
    assert SECRET not in str(refused.value)


def test_what_looks_like_a_secret_is_taken_out(tmp_path: Path):
    ((_, _, title, text),) = read(tmp_path, "a.md", f"# Keys\n## Of {SECRET}\nIt is {SECRET}.\n")
    assert SECRET not in f"{title}{text}"


def test_a_secret_below_the_heading_that_tells_of_it_is_taken_out(tmp_path: Path):
    text = "# Ops\n## Staging DB password\nS3cretPw9x\n# Passwords\n## Staging\nS3cretPw9x\n"
    assert [text for _, _, _, text in read(tmp_path, "a.md", text)] == ["[REDACTED:password]"] * 2


def test_a_line_that_is_no_json_object_is_refused_with_that_reason_alone(tmp_path: Path):
    (tmp_path / "terms.jsonl").write_text('[{"category": "terms", "text": "a term"}]\n{"category": \n')
    with pytest.raises(LinesRefused) as refused:
        read_entries(tmp_path / "terms.jsonl", "support")
    assert str(refused.value) == "line 1: is no JSON object; line 2: is no JSON object"


def test_a_file_in_another_encoding_is_refused(tmp_path: Path):
    (path := tmp_path / "a.md").write_bytes("# Zins\n\nfür Überziehung\n".encode("latin-1"))
    with pytest.raises(LinesRefused, match=r"a\.md must be text in UTF-8"):
        read_entries(path, "bank")


@pytest.mark.parametrize(("name", "text"), [("a.txt", "x"), ("a.jsonl", "\n"), ("a.md", "# only a heading\n")])
def test_a_file_without_an_entry_is_refused(name: str, text: str, tmp_path: Path):
    with pytest.raises(LinesRefused, match=r"a\.(txt|jsonl|md)"):
        read(tmp_path, name, text)
