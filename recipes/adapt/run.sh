#!/usr/bin/env bash
# Adapt a general translator to a domain, with and without replay: run.sh FOLDER, where FOLDER contains train and valid
# (.en and .de) of Tatoeba English-German. The domain corpus is the quickstart's user interface strings.
set -euo pipefail
corpus=${1:?usage: run.sh FOLDER_OF_TATOEBA}
tiny=(model=tiny model.norm=pre model.dropout=0.1 batching.tokens_per_update=1000 batching.micro_batches=1
    validation.bleu_sentences=100 seed=1 trainer.precision=32-true)
general=(data=files data.name=tatoeba "data.train=$corpus/train" "data.valid=$corpus/valid")
domain=(experiment=quickstart name=adapt/domain batching.tokens_per_update=1000 trainer.max_steps=1200
    model.dropout=0.1 optim.optimizer=adam optim.schedule=linear optim.learning_rate=2e-3 optim.warmup=300 checkpoints.every_steps=100 checkpoints.average=all
    trainer.precision=32-true)

# The general translator and, for comparison, one trained on the domain alone.
nmt preprocess "${general[@]}" tokenizer=bpe8k
nmt train data/tatoeba "${tiny[@]}" optim.warmup=1000 trainer.max_steps=2500 checkpoints.every_steps=200 checkpoints.average=all name=adapt/general
nmt preprocess experiment=quickstart
nmt train "${domain[@]}"

# The domain in the general translator's vocabulary, alone and mixed with general text. The learning rate of optim=adapt
# is meant for larger models; a tiny one would learn little at it.
adapt=(init=runs/adapt/general optim=adapt optim.learning_rate=1.5e-3 batching.tokens_per_update=1000 batching.micro_batches=1
    validation.every_steps=400 validation.bleu_sentences=100 checkpoints.every_steps=100 checkpoints.average=all trainer.max_steps=1200
    trainer.precision=32-true)
here=$(dirname "$0")
replay=(--config-dir "$here" data=replay "data.train=$corpus/train" "data.valid=$corpus/valid")
nmt preprocess data=quickstart data.name=domain init=runs/adapt/general
nmt train data/domain "${adapt[@]}" name=adapt/fine-tuned
nmt preprocess "${replay[@]}" init=runs/adapt/general
nmt train data/replay "${adapt[@]}" name=adapt/replay

for run in general domain fine-tuned replay; do
    # A test set drawn from the general text could overlap the replayed text, so test on its validation set.
    for test in "$corpus/valid" data/quickstart_en_de/test; do
        output=runs/adapt/$run/$(basename "$test").de
        nmt translate overwrite=true "runs/adapt/$run" protect=none "input=$test.en" "output=$output"
        echo "== $run on $test"
        nmt score "hypothesis=$output" "reference=$test.de" metrics=[bleu,chrf]
    done
done
