#!/usr/bin/env bash
# English-Japanese from nothing to a score; run.sh zh_CN trains for another language of Debian's translations.
set -euo pipefail
language=${1:-ja}
text=data/debian-text-$language
data=data/debian_en_$language
run=runs/debian_en_$language
corpora=(data.train=$text/train data.valid=$text/valid data.test=$text/test data.source=en data.target=$language)
training=(trainer.max_steps=4500 checkpoints.every_steps=250)

python recipes/english_japanese/corpus.py $language $text
nmt preprocess experiment=laptop data.name=debian_en_$language "${corpora[@]}"
nmt train data/debian_en_$language experiment=laptop name=debian_en_$language "${training[@]}"
nmt translate run=$run protect=none < $data/test.en > $run/test.$language
nmt score hypothesis=$run/test.$language reference=$data/test.$language source=$data/test.en examples=10
