#!/usr/bin/env bash
# Half of Multi30k with its English, the other half as German text alone: run.sh FOLDER, where FOLDER holds train, val
# and test_2016_flickr (.en and .de), uncompressed, as for recipes/multi30k/run.sh.
set -euo pipefail
corpus=${1:?usage: run.sh FOLDER_OF_MULTI30K}
work=data/backtranslation
sources="data.sources=[{name:real,train:$work/half},{name:bt,train:synthetic/bt/train,tag:'<BT>'}]"
held_out=("data.valid=$corpus/val" "data.test=$corpus/test_2016_flickr")
training=(
    experiment=multi30k optim.optimizer=muon optim.schedule=linear optim.learning_rate=0.004 optim.factor=1
    optim.warmup=500 model.dropout=0.1 batching.tokens_per_update=1000 trainer.precision=bf16-mixed
    trainer.max_steps=4000 checkpoints.every_steps=100 validation.bleu_sentences=0 logger=csv
)
search=(protect=none decode.length_penalty_kind=marian decode.length_penalty=1)
mkdir -p $work
for side in en de; do head -n 14500 "$corpus/train.$side" > $work/half.$side; done
tail -n +14501 "$corpus/train.de" > $work/mono.de

# The other direction, then its translations of the German text.
half=(experiment=multi30k data.train=$work/half "${held_out[@]}")
nmt preprocess "${half[@]}" data.name=half_de_en data.source=de data.target=en
nmt train data/half_de_en "${training[@]}" name=backtranslation/reverse
nmt export runs/backtranslation/reverse
synthesis=(engine=ctranslate2 "${search[@]}" output=synthetic/bt tag=BT drop=0.1)
nmt synthesise $work/mono.de runs/backtranslation/reverse "${synthesis[@]}"

# English to German, with that and without.
nmt preprocess experiment=multi30k data.name=half_and_bt "$sources" "${held_out[@]}"
nmt train data/half_and_bt "${training[@]}" name=backtranslation/with
nmt preprocess "${half[@]}" data.name=half_en_de
nmt train data/half_en_de "${training[@]}" name=backtranslation/without
for run in with without; do
    own=(runs/backtranslation/$run output=runs/backtranslation/$run.de)
    nmt translate "${own[@]}" "${search[@]}" input=data/half_en_de/test.en
done
cd runs/backtranslation
nmt compare with.de without.de source=../../data/half_en_de/test.en reference=../../data/half_en_de/test.de
