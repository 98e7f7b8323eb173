"""Translation over HTTP: one process answers clients, one per model translates, and two parse documents."""
