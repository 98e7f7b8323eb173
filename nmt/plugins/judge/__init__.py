"""Judging translations without references: flags of likely failures, and the log probability by a model."""
