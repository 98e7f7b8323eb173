"""`nmt train minutes=30`: settings that suit a corpus, this machine and a time."""
