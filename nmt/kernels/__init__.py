"""Fast training and search on a processor: linear maps by oneDNN, dropout, memory; no Transformer in it."""
