"""The learners that need no model: failures explained, successes abstracted, procedures revised, all by rule."""
