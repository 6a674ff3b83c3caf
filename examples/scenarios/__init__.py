"""Five stories of agents with memory, each told against a running casebank and checked at its end."""
