"""What is cited of a model, in a bundle that others can verify."""
