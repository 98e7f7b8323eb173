#!/usr/bin/env bash
# English-Japanese (or another language of Debian's translations: run.sh zh_CN), from nothing to a score.
set -euo pipefail
language=${1:-ja}
text=data/debian-text-$language
data=data/debian_en_$language
run=runs/debian_en_$language

python "$(dirname "$0")/corpus.py" "$language" $text
nmt preprocess $text/train.en "$text/train.$language" experiment=laptop "data.name=$(basename "$data")" \
    data.valid=$text/valid data.test=$text/test
nmt train "$data" experiment=laptop trainer.max_steps=4500 checkpoints.every_steps=250 "name=$(basename "$run")"
nmt translate "run=$run" protect=none < "$data/test.en" > "$run/test.$language"
nmt score "hypothesis=$run/test.$language" "reference=$data/test.$language" "source=$data/test.en" examples=10
