"""Training: the loss, the schedule, the Lightning module, its callbacks, and checkpoint averaging."""
