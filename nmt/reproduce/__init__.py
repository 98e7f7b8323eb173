"""The paper's tables, measured here: stages that can be interrupted, results that say where they come from, pages."""
