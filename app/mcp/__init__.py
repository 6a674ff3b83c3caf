"""The memory tools over the Model Context Protocol; needs the extra ``casebank[mcp]``."""
