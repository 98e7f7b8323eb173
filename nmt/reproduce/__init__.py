"""The paper's tables, each from one command: what it printed beside what is measured here."""
