#!/usr/bin/env bash
# The quickstart, from nothing to a score: corpus, vocabulary, training, averaging, translation, BLEU.
set -euo pipefail
data=data/quickstart_en_de
run=runs/quickstart

nmt preprocess experiment=quickstart
nmt train experiment=quickstart
nmt translate run=$run protect=none < $data/test.en > $run/test.de
nmt score hypothesis=$run/test.de reference=$data/test.de source=$data/test.en examples=10
