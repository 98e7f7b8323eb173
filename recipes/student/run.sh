#!/usr/bin/env bash
# A teacher on Multi30k, a student of it in int8, and one that learns from people: run.sh FOLDER, where FOLDER holds
# train, val and test_2016_flickr (.en and .de), uncompressed.
set -euo pipefail
corpus=${1:?usage: run.sh FOLDER_OF_MULTI30K}
data=data/multi30k_en_de
held_out=("data.valid=$corpus/val" "data.test=$corpus/test_2016_flickr")
training=(
    experiment=multi30k optim.optimizer=muon optim.schedule=linear optim.learning_rate=0.004 optim.factor=1
    optim.warmup=500 model.dropout=0.1 batching.tokens_per_update=1000 trainer.precision=bf16-mixed
    checkpoints.every_steps=100 validation.bleu_sentences=0 logger=csv
)
student=(trainer.max_steps=2500 model.encoder_layers=6 model.decoder_layers=1)
search=(decode.length_penalty_kind=marian decode.length_penalty=1)

nmt preprocess experiment=multi30k "data.train=$corpus/train" "${held_out[@]}"
nmt train $data "${training[@]}" trainer.max_steps=6000 name=student/teacher
nmt train $data "${training[@]}" "${student[@]}" name=student/alone

nmt export runs/student/teacher
synthesis=(engine=ctranslate2 protect=none "${search[@]}" output=synthetic/student kind=distillation)
nmt synthesise "$corpus/train.en" runs/student/teacher "${synthesis[@]}"
nmt preprocess experiment=multi30k data.name=student data.train=synthetic/student/train "${held_out[@]}"
nmt train data/student "${training[@]}" "${student[@]}" name=student/distilled
longer=(optim.learning_rate=0.003 optim.warmup=100 trainer.max_steps=3500)
nmt train data/student "${training[@]}" "${longer[@]}" init=runs/student/distilled name=student/longer
nmt train $data "${training[@]}" "${longer[@]}" init=runs/student/alone name=student/alone_longer

# Sentences/s and memory, in float32 and int8, on one and two threads, by beams and greedy.
models=(runs/student/teacher runs/student/longer)
for threads in 1 2; do
    for precision in float32 int8; do
        engine=(engine=ctranslate2 precision=$precision threads=$threads output=null)
        told=$precision.$threads.txt
        nmt compare "${models[@]}" "${engine[@]}" "${search[@]}" > runs/student/beam4.$told
        nmt compare "${models[@]}" "${engine[@]}" "${search[@]}" decode.beam_size=2 > runs/student/beam2.$told
        nmt compare "${models[@]}" "${engine[@]}" decode=greedy > runs/student/greedy.$told
    done
done

# The students as they are to be used, in int8, beside the teacher as it was trained.
nmt translate runs/student/teacher protect=none "${search[@]}" input=$data/test.en output=runs/student/teacher.de
int8=(engine=ctranslate2 precision=int8 protect=none "${search[@]}" "input=$data/test.en")
nmt translate runs/student/alone "${int8[@]}" output=runs/student/alone.de
nmt translate runs/student/distilled "${int8[@]}" output=runs/student/distilled.de
nmt translate runs/student/longer "${int8[@]}" output=runs/student/longer.de
nmt translate runs/student/alone_longer "${int8[@]}" output=runs/student/alone_longer.de
cd runs/student
nmt compare teacher.de longer.de distilled.de alone.de "source=../../$data/test.en" "reference=../../$data/test.de"
nmt compare longer.de alone_longer.de "source=../../$data/test.en" "reference=../../$data/test.de" output=null
nmt compare distilled.de alone.de "source=../../$data/test.en" "reference=../../$data/test.de" output=null
