"""Constituency trees: treebanks, brackets and scores (section 6.3)."""
