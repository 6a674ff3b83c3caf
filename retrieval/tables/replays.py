"""The table of replays: for each profile, the results of ``policy.replay`` on its own runs."""

from sqlalchemy import Double, Integer, LargeBinary, Text
from sqlalchemy.dialects.postgresql import JSONB

from retrieval.tables.columns import TIME, needed, optional, refers, user_table

replays = user_table(
    "replays",
    ("agent_key",),
    needed("agent_key", Text),
    needed("runs", Integer, "newest cases that were replayed"),
    needed("questions", Integer, "runs that went well and that an earlier one answers"),
    needed("serves", Text, "the order that ranks from now on"),
    needed("tallies", JSONB, "by order: first place right, nDCG@4, faded charges"),
    needed("fit", LargeBinary, "safetensors: weights of terms, channels and moves"),
    optional("unlike", Double, "mean similarity of the vectors of unlike cases; null: too few are unlike"),
    needed("newest", TIME, "creation of the newest case that was replayed"),
    refers("profiles", agent_key="agent_key"),
    comment="what a profile's own runs say about the order that ranks them",
)
