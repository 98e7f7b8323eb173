#!/usr/bin/env bash
# Teach a multilingual model a language: run.sh CORPORA. The folder contains en-de (train, valid), en-it and en-da (train,
# valid, test), each split as two files, such as train.en and train.da.
set -euo pipefail
corpora=${1:?usage: run.sh CORPORA}
here=$(dirname "$0")
runs=runs/new_language
few=data/new_language
general=$corpora/en-de/valid
start=(experiment=laptop optim.warmup=300 batching.tokens_per_update=2000 checkpoints.every_steps=100)
adapt=(experiment=adapt init=$runs/extended batching.tokens_per_update=2000 batching.micro_batches=1 checkpoints.every_steps=100)

# 1. A small model in NLLB's format that knows English, German and Italian. It takes the place of NLLB.
mkdir -p $runs $few
python "$here/random_model.py" $few/hub "$corpora"/en-de/train.{en,de} "$corpora"/en-it/train.{en,it}
nmt import path=$few/hub output=$runs/random overwrite=true
nmt preprocess --config-dir "$here" data=known "data.train=$corpora" init=$runs/random
nmt train data/new_language_known "${start[@]}" init=$runs/random trainer.max_steps=2500 name=new_language/known

# 2. Danish, of which there are few pairs: a tag, the letters æ, ø and å, and subwords.
for language in en da; do
    awk 'NR % 20 == 0' "$corpora/en-da/train.$language" > "$few/train.$language"
done
nmt extend $runs/known output=$runs/extended overwrite=true languages=[dan_Latn] like=[deu_Latn] text=[$few/train.da]

# 3. Train on Danish, mixed with German and Italian and, for comparison, without them.
danish=(data=files "data.train=$few/train" "data.valid=$corpora/en-da/valid" data.source=en data.target=da data.test_size=0
    data.filters.max_words=60)
nmt preprocess --config-dir "$here" data=taught "data.train=$corpora" init=$runs/extended
nmt train data/new_language_taught "${adapt[@]}" trainer.max_steps=2500 name=new_language/taught
nmt preprocess "${danish[@]}" data.name=new_language_danish init=$runs/extended
nmt train data/new_language_danish "${adapt[@]}" trainer.max_steps=1000 name=new_language/forgetful

# 4. A model of the same size that begins from nothing.
nmt preprocess "${danish[@]}" data.name=new_language_alone tokenizer=bpe4k
nmt train data/new_language_alone "${start[@]}" model.d_model=192 model.d_ff=768 trainer.max_steps=1000 name=new_language/alone

# 5. The new language, and the old ones before and after.
translate() { # RUN TARGET TEST [WORDS...]
    nmt translate overwrite=true "$runs/$1" protect=none "input=$3.en" "output=$runs/$1.$2" "${@:4}"
}
for run in extended forgetful taught; do
    translate $run da "$corpora/en-da/test" source=en target=da
done
translate alone da "$corpora/en-da/test"
for run in known forgetful taught; do
    translate $run de "$general" source=en target=de
    translate $run it "$corpora/en-it/test" source=en target=it
done
for run in extended alone forgetful taught; do
    echo "== $run, Danish"
    nmt score "hypothesis=$runs/$run.da" "reference=$corpora/en-da/test.da" metrics=[bleu,chrf]
done
echo "== German"
nmt compare $runs/{known,forgetful,taught}.de "source=$general.en" "reference=$general.de"
echo "== Italian"
nmt compare $runs/{known,forgetful,taught}.it "source=$corpora/en-it/test.en" "reference=$corpora/en-it/test.it"
