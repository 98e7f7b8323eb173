"""Translation over HTTP: one process answers clients, and each model has a process of its own.

So a model's memory is really free when it is unloaded, and a crash takes down no other model.
"""
