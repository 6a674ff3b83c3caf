"""A run whose failure was put right, and what a language model might say of it."""

from writer.analysis.calls import StoredRun

FIXED = StoredRun(
    task="Add a last_name column to the users table",
    outcome="success",
    tool_traces=[
        {
            "tool": "sql",
            "input": {"q": "ALTER TABLE users ADD last_name;"},
            "output": "syntax error",
            "status": "error",
        },
        {"tool": "sql", "input": {"q": "ALTER TABLE users ADD last_name text;"}, "output": "ALTER TABLE"},
    ],
)
RECORD = {
    "procedure_name": "Add a column with its type",
    "semantic_description": "How to add a column.",
    "initial_failure_summary": "The statement had no type.",
    "identified_root_cause": "A column needs a type.",
    "successful_intervention": "The type was added.",
    "learned_procedure_steps": ["Call sql with ALTER TABLE <table> ADD <column> <type>;"],
    "critical_contextual_cues": ["syntax error"],
    "example_scenario_abstract": "Adding <column> to <table>.",
}
LEARNED = {"status": "procedure_learned", "data": RECORD}
