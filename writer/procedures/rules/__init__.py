"""Rule-based learners, which need no language model: analyst, abstractor and reviser."""
