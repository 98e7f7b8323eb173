"""Constituency trees: treebanks, brackets, scores (section 6.3)."""
