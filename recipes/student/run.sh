#!/usr/bin/env bash
# A student of the Multi30k recipe's model, beside one that learns from people: run.sh FOLDER, where FOLDER holds train,
# val and test_2016_flickr (.en and .de) as for recipes/multi30k/run.sh, which trains the teacher if it is not there.
set -euo pipefail
corpus=${1:?usage: run.sh FOLDER_OF_MULTI30K}
test -d runs/multi30k/model || "$(dirname "$0")/../multi30k/run.sh" "$corpus"
data=data/multi30k_en_de
student=(experiment=multi30k model.encoder_layers=6 model.decoder_layers=1)
held_out=("data.valid=$corpus/val" "data.test=$corpus/test_2016_flickr")

nmt synthesise "$corpus/train.en" runs/multi30k output=synthetic/student kind=distillation
nmt preprocess experiment=multi30k data.name=student data.train=synthetic/student/train "${held_out[@]}"
nmt train data/student "${student[@]}" name=student/distilled
nmt train $data "${student[@]}" name=student/alone
for run in multi30k student/distilled student/alone; do
    nmt export "runs/$run" precision=int8
    nmt translate "runs/$run" engine=ctranslate2 precision=int8 "input=$data/test.en" "output=runs/$run/test.int8.de"
    nmt score "hypothesis=runs/$run/test.int8.de" "reference=$data/test.de" > "runs/$run/scores.txt"
done
nmt compare runs/student/distilled runs/student/alone runs/multi30k output=runs/student/compare.html
