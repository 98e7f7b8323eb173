#!/usr/bin/env bash
# Multi30k English-German on a laptop: run.sh FOLDER, where FOLDER has train, val and test_2016_flickr (.en and .de)
# from https://github.com/multi30k/dataset (data/task1/raw, uncompressed or .gz).
set -euo pipefail
corpus=${1:?usage: run.sh FOLDER_OF_MULTI30K}
options=(experiment=multi30k "data.train=$corpus/train" "data.valid=$corpus/val" "data.test=$corpus/test_2016_flickr")
data=data/multi30k_en_de
run=runs/multi30k

nmt preprocess "${options[@]}"
nmt train "${options[@]}"
nmt translate run=$run protect=none < $data/test.en > $run/test.de
nmt score hypothesis=$run/test.de reference=$data/test.de source=$data/test.en examples=10
nmt score hypothesis=$run/test.de reference=$data/test.de metrics=[tokenized] lowercase=true
