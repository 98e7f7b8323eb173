"""What makes a processor fast: linear maps by oneDNN, dropout, memory; no Transformer in it."""
