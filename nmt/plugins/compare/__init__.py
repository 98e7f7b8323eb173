"""Several systems on one test set: scores, tests of significance, and where they differ."""
