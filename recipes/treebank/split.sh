#!/usr/bin/env bash
# Select this recipe's training and validation articles of the CRAFT corpus: split.sh CRAFT FOLDER copies the articles
# listed in train.txt and valid.txt from a clone of github.com/UCDenver-ccp/CRAFT to FOLDER/train and FOLDER/valid.
set -euo pipefail
craft=${1:?usage: split.sh CLONE_OF_CRAFT FOLDER}
folder=${2:?usage: split.sh CLONE_OF_CRAFT FOLDER}

for part in train valid; do
  mkdir -p "$folder/$part"
  while read -r article; do
    cp "$craft/structural-annotation/treebank/penn/$article.tree" "$folder/$part"
  done < "$(dirname "$0")/$part.txt"
done
