"""Extraction of findings from the outputs of tools, in the forms in which tools answer."""

from typing import Any

import pytest

from writer.findings.extract import Finding, extract


def found(tool: str, given: Any, output: Any) -> Finding:
    (finding,) = extract({"tool": tool, "input": given, "output": output, "status": None}, {})
    return finding


@pytest.mark.parametrize(
    ("output", "fact"),
    [
        ("Found 3 files:\nsrc/a.ts\nsrc/b.ts\nsrc/c.ts", "Found 3 files: src/a.ts, src/b.ts, src/c.ts"),
        ("Found 3 files\nsrc/a.ts\nsrc/b.ts\nsrc/c.ts", "Found 3 files: src/a.ts, src/b.ts, src/c.ts"),
        ("Found 2 files: a.ts, b.ts", "Found 2 files: a.ts, b.ts"),
        ("Found 1 match(es) in 1 file:\na.ts:3: x", "Found 1 match: a.ts"),
        ("a.ts:3: x\nb.ts:4: x\n2 matches found", "Found 2 matches: a.ts, b.ts"),
        ("Found 120 results (showing 2):\na.ts:3: x\nb.ts:4: x", "Found 120 matches: a.ts, b.ts"),
        ("No matches found.", "Found 0 matches"),
        ("Found 0 files", "Found 0 matches"),
        ("src/a.ts", "Found 1 file: src/a.ts"),
        ("a.ts:1:3 files are read", "Found 1 match: a.ts"),
        ('{"matches": ["src/a.ts"], "total": 3}', "Found 3 files: src/a.ts"),
        ({"matches": [{"path": "a.ts", "line": 3}, {"path": "a.ts", "line": 9}]}, "Found 2 matches: a.ts"),
        ([{"type": "text", "text": "Found 1 file\na.ts"}], "Found 1 file: a.ts"),
        ({"content": [{"type": "text", "text": '["a.ts", "b.ts"]'}]}, "Found 2 files: a.ts, b.ts"),
    ],
)
def test_a_search_counts_its_results_and_not_the_line_that_counts_them(output: Any, fact: str):
    assert found("fs:search", {"query": "x"}, output).fact == fact


@pytest.mark.parametrize(
    ("output", "fact"),
    [
        ('{"answer": "It stores vectors."}', "It stores vectors."),
        ('  {"sources": [], "result": "In a store."}', "In a store."),
        ('"In a store."', "In a store."),
        ({"answer": "In a store."}, "In a store."),
        ([{"type": "text", "text": '{"answer": "In a store."}'}], "In a store."),
        ('{"answer": "In', '{"answer": "In'),
        ("[" * 5_000, "[" * 1_999 + "…"),
    ],
)
def test_an_answer_is_read_whether_it_comes_as_an_object_or_as_its_json(output: Any, fact: str):
    assert found("mind:rag-query", {"text": "where?"}, output).fact == fact


def test_a_file_is_read_out_of_json_around_it_and_a_json_file_is_itself():
    wrapped = found("fs:read", {"path": "a.ts"}, '{"content": "export class A {}\\n"}')
    assert (wrapped.fact, wrapped.content_hash) == (
        "File contains: classes A; 1 line",
        found("fs:read", {"path": "a.ts"}, "export class A {}\n").content_hash,
    )
    assert found("fs:read", {"path": "a.json"}, '{"content": "x\\ny"}').fact == "File contains: 1 line"


@pytest.mark.parametrize("given", ["src/", {"path": "src/"}, {"directory": "./src"}])
def test_a_listing_says_how_many_files_it_found(given: Any):
    assert found("fs:list", given, "a.ts\nb.ts\nc.ts").fact == "3 files found"


@pytest.mark.parametrize("name", ["file_path", "filePath", "filepath", "FilePath"])
def test_a_path_is_found_under_its_name_in_either_case(name: str):
    assert found("fs:read", {name: "a.ts"}, "x").aspect.path == "a.ts"


@pytest.mark.parametrize(
    ("given", "lines"),
    [
        ({"offset": "10", "limit": "20"}, (10, 29)),
        ({"offset": 10.0, "limit": 20.0}, (10, 29)),
        ({"view_range": ["10", "29"]}, (10, 29)),
        ({"view_range": [10, None]}, (10, 1_000_000_000)),
        ({"view_range": [10, -1]}, (10, 1_000_000_000)),
        ({"range": "10-29"}, (10, 29)),
        ({"lines": "10"}, (10, 10)),
        ({"offset": None, "limit": ""}, None),
        ({"tail": 0, "explanation": "to see it"}, None),
    ],
)
def test_the_lines_of_a_file_are_those_that_a_call_names_in_any_form(given: Any, lines: Any):
    aspect = found("fs:read", {"path": "a.ts", **given}, "x\n").aspect
    assert (aspect.kind, aspect.lines) == ("read", lines)


@pytest.mark.parametrize(
    "given",
    [{"tail": 50}, {"page": 2}, {"cell_id": "a1"}, {"offset": "half"}, {"view_range": [20, 10]}, {"lines": "a, b"}],
)
def test_a_part_of_a_file_that_is_no_range_of_lines_is_not_the_file(given: Any):
    aspect = found("fs:read", {"path": "a.ts", **given}, "x\n").aspect
    assert (aspect.kind, aspect.path) == ("other", "")


@pytest.mark.parametrize("paths", [["a.ts", "b.ts"], ["a.ts", "a.ts", "b.ts"]])
def test_a_call_that_reads_several_files_is_not_a_reading_of_the_first(paths: list[str]):
    assert found("fs:read", {"path": paths}, "x\n").aspect.kind != "read"
    assert found("fs:read", {"path": paths[:1]}, "x\n").aspect.kind == "read"
