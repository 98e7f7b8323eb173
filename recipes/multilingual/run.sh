#!/usr/bin/env bash
# Train one model from English into German, French, Spanish, Czech and Swedish, and five models for one language each,
# for the same number of updates.
set -euo pipefail
here=$(dirname "$0")
languages=(de fr es cs sv)
tiny=(model=tiny model.encoder_layers=2 model.decoder_layers=2 model.norm=pre model.dropout=0.1 seed=1
    optim.schedule=linear optim.learning_rate=2.5e-3 optim.warmup=300 batching.tokens_per_update=1000 batching.micro_batches=1
    trainer.max_steps=2000 checkpoints.every_steps=100 checkpoints.average=all validation.every_steps=500 validation.bleu_sentences=50
    trainer.precision=32-true)

nmt preprocess --config-dir "$here" data=multilingual tokenizer=bpe8k seed=1
nmt train data/multilingual "${tiny[@]}" name=multilingual/all
for language in "${languages[@]}"; do
    nmt preprocess data=quickstart "data.target=$language" data.valid_size=100 data.test_size=500 tokenizer=bpe4k seed=1
    nmt train "data/quickstart_en_$language" "${tiny[@]}" "name=multilingual/$language"
done

for language in "${languages[@]}"; do
    test=data/quickstart_en_$language/test
    cmp "$test.en" "data/multilingual/test.$language.en"
    nmt translate overwrite=true runs/multilingual/all protect=none "target=$language" "input=$test.en" "output=runs/multilingual/all/$language.txt"
    nmt translate overwrite=true "runs/multilingual/$language" protect=none "input=$test.en" "output=runs/multilingual/$language/$language.txt"
    for run in all "$language"; do
        echo "== $run into $language"
        nmt score "hypothesis=runs/multilingual/$run/$language.txt" "reference=$test.$language" metrics=[bleu,chrf]
    done
    python "$here/wrong_language.py" "$language" \
        "$test.$language" "runs/multilingual/all/$language.txt" "runs/multilingual/$language/$language.txt"
done
