"""Kinds of tools, such as a search: from the profile's settings, or else from tool names that many agents have."""

import re
from collections.abc import Mapping
from functools import lru_cache
from typing import cast

from retrieval.tables.kinds import ToolKind

_NAMES: dict[ToolKind, str] = {
    "read": """
        cat file_read fs_read get_file get_file_contents head load_file notebook_read open open_file read read_document
        read_file read_file_content read_files read_text_file readfile show_file tail view view_file
    """,
    "search": """
        ag code_search codebase_search directory_tree fd file_search find find_file find_files find_string fs_list
        fs_search glob glob_search grep grep_search list list_dir list_directory list_files ls rg ripgrep search
        search_code search_codebase search_dir search_file search_files search_repo search_text semantic_search tree
    """,
    "answer": """
        answer ask ask_docs ask_question deepwiki fetch fetch_url google_search knowledge_search lookup mind_rag_query
        qa query_docs query_knowledge query_knowledge_base rag rag_query rag_search retrieve_docs search_docs
        search_web web_fetch web_search wikipedia
    """,
    "write": """
        append append_to_file apply_diff apply_edit copy_file create create_directory create_file delete delete_file
        edit edit_file edit_notebook fs_delete fs_edit fs_write insert insert_edit_into_file make_directory mkdir
        move_file multi_edit multiedit multi_replace notebook_edit overwrite_file patch_file remove_file rename_file
        replace replace_in_file replace_string_in_file save_file search_replace str_replace str_replace_based_edit_tool
        str_replace_editor update_file write write_file write_to_file
    """,
    "shell": """
        bash cmd command console exec exec_command execute execute_bash execute_command local_shell run run_bash
        run_command run_in_terminal run_shell run_shell_command run_terminal_cmd run_terminal_command sh shell
        shell_command shell_exec terminal
    """,
    "other": """
        ask_followup_question ask_user calculate calculator exit_plan_mode get_time now plan sleep sequentialthinking
        think thinking todo_read todo_write todoread todowrite update_plan wait
    """,
}
DEFAULTS = {name: kind for kind, names in _NAMES.items() for name in names.split()}
_READS_ONLY = re.compile(r"(?:get|find|list|search|check|read|describe|show|fetch|lookup|query|view|count)_")
_CAPITAL = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")
_BETWEEN = re.compile(r"[^a-z0-9]+")
_NAMESPACE = re.compile(r".*(?:__|[:./])", re.DOTALL)


def kind_of(tool: str, settings: Mapping[str, str]) -> ToolKind | None:
    """Returns the kind of a tool, or None for a tool that may do anything."""
    if tool in settings:
        return cast("ToolKind", settings[tool])
    whole, own = plain_name(tool), plain_name(_NAMESPACE.sub("", tool))
    if (kind := DEFAULTS.get(whole) or DEFAULTS.get(own)) is not None:
        return kind
    return "other" if _READS_ONLY.match(own) else None


@lru_cache(maxsize=4096)  # the same few names come with every step
def plain_name(name: str) -> str:
    """Returns a name in lower case with underscores: `readFile` is `read_file`."""
    return _BETWEEN.sub("_", _CAPITAL.sub("_", name).lower()).strip("_")
