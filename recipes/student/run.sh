#!/usr/bin/env bash
# Train a teacher on Multi30k, students of this teacher, and the same models on human translations: run.sh FOLDER, where
# FOLDER contains train, val and test_2016_flickr (.en and .de), uncompressed.
set -euo pipefail
corpus=${1:?usage: run.sh FOLDER_OF_MULTI30K}
data=data/multi30k_en_de
held_out=("data.valid=$corpus/val" "data.test=$corpus/test_2016_flickr")
training=(
    experiment=multi30k optim.optimizer=muon optim.schedule=linear optim.learning_rate=0.004 optim.factor=1
    optim.warmup=500 model.dropout=0.1 batching.tokens_per_update=1000 trainer.precision=bf16-mixed
    trainer.max_steps=6000 checkpoints.every_steps=100 checkpoints.average=all validation.bleu_sentences=0 logger=csv
)
search=(decode.length_penalty_kind=marian decode.length_penalty=1)

nmt preprocess experiment=multi30k "data.train=$corpus/train" "${held_out[@]}"
nmt train $data "${training[@]}" name=student/teacher

# The teacher's translations of the training text: the best one, and the one of eight most similar to the reference.
teaching=("$corpus/train.en" runs/student/teacher engine=ctranslate2 protect=none "${search[@]}")
nmt synthesize "${teaching[@]}" output=synthetic/best
closest=("reference=$corpus/train.de" metric=bleu decode.beam_size=8 decode.n_best=8)
nmt synthesize "${teaching[@]}" "${closest[@]}" output=synthetic/closest
sources="data.sources=[{name:best,train:synthetic/best/train},{name:closest,train:synthetic/closest/train}]"
nmt preprocess experiment=multi30k data.name=student "$sources" "${held_out[@]}"

# Students trained on these translations and on the references, with two seeds each.
for seed in 1 2; do
    student=(model.encoder_layers=6 model.decoder_layers=1 seed=$seed)
    nmt train data/student "${training[@]}" "${student[@]}" name=student/distilled$seed
    nmt train $data "${training[@]}" "${student[@]}" name=student/alone$seed
done

# Compare the students in int8 with a beam of 2, as intended for use, with the teacher in float32 with a beam of 4.
nmt translate overwrite=true runs/student/teacher protect=none "${search[@]}" input=$data/test.en output=runs/student/teacher.de
int8=(engine=ctranslate2 precision=int8 protect=none "${search[@]}" decode.beam_size=2 input=$data/test.en)
for name in distilled1 distilled2 alone1 alone2; do
    nmt translate overwrite=true runs/student/$name "${int8[@]}" output=runs/student/$name.de
done
cd runs/student
same=(source=../../$data/test.en reference=../../$data/test.de)
nmt compare teacher.de distilled1.de distilled2.de alone1.de alone2.de "${same[@]}"
nmt compare 'distilled=[distilled1.de,distilled2.de]' 'alone=[alone1.de,alone2.de]' "${same[@]}" output=seeds.html

# Sentences/s and memory in float32 and int8, on one and two threads, with beam and greedy search.
for threads in 1 2; do
    for precision in float32 int8; do
        for beam in 4 2 1; do
            engine=(engine=ctranslate2 precision=$precision threads=$threads decode.beam_size=$beam output=null)
            nmt compare teacher distilled1 protect=none "${engine[@]}" "${search[@]}" | tee beam$beam.$precision.$threads.txt
        done
    done
done
