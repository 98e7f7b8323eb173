#!/usr/bin/env bash
# Train on one half of a corpus and on the German side of the other half: run.sh NAME TRAIN VALID TEST UPDATES, where
# TRAIN, VALID and TEST are paths without .en and .de.
set -euo pipefail
usage="run.sh NAME TRAIN VALID TEST UPDATES: run.sh multi30k F/train F/val F/test_2016_flickr 4000"
name=backtranslation_${1:?$usage} train=${2:?$usage} updates=${5:?$usage}
held_out=("data.valid=$3" "data.test=$4")
work=data/$name-text
sources="data.sources=[{name:real,train:$work/half},{name:bt,train:synthetic/$name/train,tag:'<BT>'}]"
training=(
    experiment=multi30k optim.optimizer=muon optim.schedule=linear optim.learning_rate=0.004 optim.factor=1
    optim.warmup=500 model.dropout=0.1 batching.tokens_per_update=1000 trainer.precision=bf16-mixed
    trainer.max_steps=$updates checkpoints.every_steps=100 checkpoints.average=all validation.bleu_sentences=0 logger=csv
)
search=(protect=none decode.length_penalty_kind=marian decode.length_penalty=1)
mkdir -p $work
half=$(($(wc -l < "$train.de") / 2))
for side in en de; do head -n $half "$train.$side" > $work/half.$side; done
tail -n +$((half + 1)) "$train.de" > $work/mono.de

# A model for the other direction, then its translations of the German text.
real=(experiment=multi30k data.train=$work/half "${held_out[@]}")
nmt preprocess "${real[@]}" data.name=$name-de_en data.source=de data.target=en
nmt train data/$name-de_en "${training[@]}" name=$name/reverse
synthesis=(engine=ctranslate2 "${search[@]}" drop=0.1)
nmt synthesize $work/mono.de runs/$name/reverse output=synthetic/$name "${synthesis[@]}"

# English to German, with and without these translations, with two seeds each.
nmt preprocess experiment=multi30k data.name=$name-with "$sources" "${held_out[@]}"
nmt preprocess "${real[@]}" data.name=$name-without
for seed in 1 2; do
    seeded=("${training[@]}" seed=$seed)
    for kind in with without; do
        run=$name/$kind$seed
        nmt train data/$name-$kind "${seeded[@]}" name=$run
        nmt translate overwrite=true runs/$run "${search[@]}" "input=$4.en" output=runs/$run.de
    done
done
both=("with=[runs/$name/with1.de,runs/$name/with2.de]" "without=[runs/$name/without1.de,runs/$name/without2.de]")
nmt compare "${both[@]}" "source=$4.en" "reference=$4.de" output=runs/$name/compare.html
