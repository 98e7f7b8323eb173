#!/usr/bin/env bash
# Train a small parser of biomedical English: run.sh FOLDER, where split.sh wrote FOLDER.
set -euo pipefail
corpus=${1:?usage: run.sh FOLDER_OF_TREES}
options=(experiment=table4/laptop data.name=craft data.errors=skip "data.train=$corpus/train" "data.valid=$corpus/valid"
  "data.test=$corpus/valid")
data=data/craft
run=runs/table4-laptop

nmt preprocess "${options[@]}"
nmt train "${options[@]}"
nmt parse run=$run < $data/test.words > $run/test.trees
nmt score hypothesis=$run/test.trees reference=$data/test.trees metrics=[brackets]
