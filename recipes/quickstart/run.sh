#!/usr/bin/env bash
# The quickstart, from nothing to a score: corpus, vocabulary, training, averaging, translation, BLEU.
set -euo pipefail
nmt demo "$@"
