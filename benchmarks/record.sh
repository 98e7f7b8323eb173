#!/usr/bin/env bash
# Records what a change of structure must keep to the bit: prepared corpora, weights, translations, scores.
#   benchmarks/record.sh FOLDER CORPUS    with `nmt` on the PATH; about 15 minutes on one core
#   CORPUS has train, val and test_2016_flickr, each .en and .de (Multi30k)
#   diff -r BEFORE/weights AFTER/weights, and so for texts and corpora
set -euo pipefail
out=$(realpath -m "$1") text=$(realpath "$2")
export OMP_NUM_THREADS=1 XDG_CACHE_HOME=$out/scratch/cache
mkdir -p "$out/scratch" "$out/weights" "$out/texts" "$out/corpora"
cd "$out/scratch"
common=(trainer.max_steps=600 validation.every_steps=300 validation.bleu_sentences=20 checkpoints.every_steps=200 trainer.accelerator=cpu trainer.devices=1 trainer.precision=32-true trainer.log_every_n_steps=100)
head -n 8000 "$text/train.en" > train.en; head -n 8000 "$text/train.de" > train.de
printf 'house\tHaus\ndog\tHund\nman\tMann\nshirt\tHemd\n' > glossary.tsv
files=(data=files data.train=train "data.valid=$text/val" "data.test=$text/test_2016_flickr" model=tiny model.encoder_layers=2 model.decoder_layers=2 batching.tokens_per_update=700 batching.micro_batches=2 optim.warmup=200)
keep() { cp "runs/$1/model/model.safetensors" "$out/weights/$1.safetensors"; }

nmt preprocess experiment=quickstart prepared=data/quick
nmt train experiment=quickstart name=quick prepared=data/quick "${common[@]}"; keep quick
nmt preprocess "${files[@]}" tokenizer=bpe4k prepared=data/bpe
nmt preprocess "${files[@]}" tokenizer=unigram32k tokenizer.vocabulary_size=2000 prepared=data/unigram workers=1
nmt preprocess "${files[@]}" tokenizer=wordpiece32k tokenizer.vocabulary_size=3000 prepared=data/wordpiece
nmt train "${files[@]}" tokenizer=bpe4k prepared=data/bpe name=post "${common[@]}"; keep post
nmt train "${files[@]}" tokenizer=bpe4k prepared=data/bpe name=bf16 "${common[@]}" trainer.max_steps=100 trainer.precision=bf16-mixed; keep bf16
nmt train "${files[@]}" tokenizer=bpe4k prepared=data/bpe name=two "${common[@]}" trainer.max_steps=100 trainer.devices=2; keep two
mixed=(data.sources='[{name: a, train: train},{name: b, train: train, weight: 2}]' tokenizer=bpe4k prepared=data/mixed)
nmt preprocess "${files[@]}" "${mixed[@]}"
nmt train "${files[@]}" "${mixed[@]}" name=mixed "${common[@]}" trainer.max_steps=200 model.norm=pre optim.optimizer=muon optim.learning_rate=0.004 optim.schedule=linear optim.warmup=50 data.noise.typos=0.1 data.noise.bpe_dropout=0.1; keep mixed

head -n 300 "$text/test_2016_flickr.en" > lines.en; head -n 300 "$text/test_2016_flickr.de" > lines.de
printf 'Open %%s at https://example.org/a?b=1 in 3.5 km.\nThe <b>man</b> has {name} and 12:30.\nTwo dogs. Three men! One house?\n\n東京 is a city.\n' > odd.en
t() { name=$1; shift; nmt translate overwrite=true runs/post decode.batch_tokens=2000 "$@" output="$out/texts/$name" < lines.en; }
for e in torch ctranslate2; do
  t $e.txt engine=$e; t $e.jsonl engine=$e format=jsonl; t $e.tsv engine=$e format=tsv decode.n_best=3
  t $e.greedy engine=$e decode=greedy
  nmt translate overwrite=true runs/post engine=$e format=jsonl input=odd.en output="$out/texts/$e.odd.jsonl"
done
t int8.txt engine=ctranslate2 precision=int8
t sampling.txt engine=torch decode.do_sample=true
t glossary.txt engine=torch glossary=glossary.tsv
t unprotected.txt engine=torch protect=none
nmt translate overwrite=true run="[runs/post,runs/two]" engine=torch input=lines.en output="$out/texts/ensemble.txt"
nmt score "$out/texts/torch.txt" lines.de metrics='[bleu,chrf,ter,tokenized,split]' language=de format=json > "$out/texts/score.json"
nmt score "$out/texts/torch.txt" lines.de source=lines.en flags=true format=json > "$out/texts/flags.json"
nmt score runs/post source=lines.en hypothesis=lines.de format=tsv > "$out/texts/likelihood.tsv"
nmt compare "A=[$out/texts/torch.txt]" "B=[$out/texts/torch.greedy]" source=lines.en reference=lines.de --json > "$out/texts/compare.json" || true
for c in quick bpe unigram wordpiece mixed; do (cd data/$c; find . -type f ! -name manifest.json ! -name '*.lock' -exec sha256sum {} + | sort -k2) > "$out/corpora/$c"; done
