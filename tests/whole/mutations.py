"""What a stranger may do to a file: to its bytes, to the values in it, and to its place in the file system."""

import copy
import csv
import io
import json
import os
import random
import shutil
import struct
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import torch
import yaml

Mutation = Callable[[Path, random.Random], None]
DEEP = "[" * 5000 + "]" * 5000
BOMB = "a: &a [x, x, x, x, x, x, x, x, x]\n" + "".join(
    f"{chr(98 + n)}: &{chr(98 + n)} [{', '.join(['*' + chr(97 + n)] * 9)}]\n" for n in range(9)
)
RAW = {"@deep": DEEP, "@digits": "9" * 5000, "@large": "1" + "0" * 300, "@nan": "NaN", "@infinity": "-Infinity"}
"""What JSON's writer would not write."""
VALUES: list[Any] = [
    *(None, True, False, -1, 0, 1, 3, 10**9, 2**63, -(2**31), 1e308, -0.5, "", "abc", "x" * 20000, "\x00", "é\u2028"),
    *([], {}, [[]], [1, "a", None], {"a": {"b": [1]}}, "<script>alert(1)</script>", "a\nb", "../../outside/secret.txt"),
    *(
        "x; touch ../outside/written |",
        ["x; touch ../outside/written |"] * 2,
        "/etc/passwd",
        "${oc.env:HOME}",
        "1e999",
        "nan",
        list(range(3000)),
        *RAW,
    ),
]


def flip(path: Path, random: random.Random) -> None:
    content = bytearray(path.read_bytes()) or bytearray(1)
    for _ in range(random.choice((1, 1, 4, 32))):
        content[random.randrange(len(content))] ^= 1 << random.randrange(8)
    path.write_bytes(content)


def truncate(path: Path, random: random.Random) -> None:
    content = path.read_bytes()
    path.write_bytes(content[: random.randrange(len(content) + 1)])


def empty(path: Path, random: random.Random) -> None:
    path.write_bytes(b"")


def noise(path: Path, random: random.Random) -> None:
    path.write_bytes(random.randbytes(random.choice((1, 40, 5000))))


def overwrite(path: Path, random: random.Random) -> None:
    """Sizes and offsets become huge or negative where this meets them."""
    content = bytearray(path.read_bytes())
    place = random.randrange(max(len(content), 1))
    content[place : place + 8] = random.choice((b"\xff" * 8, b"\xff\xff\xff\x7f", b"\0" * 8, b"\xff" * 4, b"\n\n"))
    path.write_bytes(content)


def twice(path: Path, random: random.Random) -> None:
    path.write_bytes(path.read_bytes() * 2)


def spliced(path: Path, random: random.Random) -> None:
    content = path.read_bytes()
    start, end = sorted(random.randrange(len(content) + 1) for _ in range(2))
    path.write_bytes(content[:end] + content[start:])


BYTES = [flip, flip, truncate, truncate, empty, noise, overwrite, overwrite, twice, spliced]


def linked(path: Path, random: random.Random) -> None:
    """A link to something of the same kind outside, to the secret, to a device without end, to nothing, to itself."""
    outside = next(parent / "outside" for parent in path.parents if (parent / "outside").is_dir())
    copy = outside / path.name
    shutil.move(path, copy) if not copy.exists() else remove(path)
    path.symlink_to(random.choice((copy, copy, outside / "secret.txt", Path("/dev/zero"), outside / "no", path)))


def pipe(path: Path, random: random.Random) -> None:
    remove(path)
    os.mkfifo(path)


def folder(path: Path, random: random.Random) -> None:
    remove(path)
    path.mkdir()
    (path / "file").touch()


def missing(path: Path, random: random.Random) -> None:
    remove(path)


def swapped(path: Path, random: random.Random) -> None:
    others = [other for other in path.parent.iterdir() if other.is_file() and other != path]
    if others:
        path.write_bytes(random.choice(others).read_bytes())


def remove(path: Path) -> None:
    shutil.rmtree(path) if path.is_dir() and not path.is_symlink() else path.unlink()


PLACES = [linked, linked, pipe, folder, missing, swapped]


def places(tree: Any) -> list[tuple[Any, Any]]:
    """Every (container, key) in a tree."""
    items = list(tree.items()) if isinstance(tree, dict) else list(enumerate(tree)) if isinstance(tree, list) else []
    return [(tree, key) for key, _ in items] + [place for _, value in items for place in places(value)]


def change(tree: Any, random: random.Random) -> Any:
    """A tree of which one or two values are others, missing, or under another name."""
    for _ in range(random.choice((1, 1, 2))):
        found = places(tree)
        if not found or random.random() < 0.03:
            return random.choice(VALUES)
        container, key = random.choice(found)
        done = random.random()
        if done < 0.15:
            del container[key]
        elif done < 0.2 and isinstance(container, dict):
            container[random.choice(("unknown", "", "a" * 300))] = container.pop(key)
        elif done < 0.3:
            container[key] = copy.deepcopy(random.choice([c[k] for c, k in found]))
        else:
            container[key] = copy.deepcopy(random.choice(VALUES))
    return tree


def written(tree: Any) -> str:
    text = json.dumps(tree)
    for name, raw in RAW.items():
        text = text.replace(f'"{name}"', raw)
    return text


def json_values(path: Path, random: random.Random) -> None:
    path.write_text(written(change(json.loads(path.read_text()), random)))


def yaml_values(path: Path, random: random.Random) -> None:
    if random.random() < 0.1:
        path.write_text(random.choice((BOMB, DEEP, "a: " * 3000, "!!python/object/apply:os.system [ls]", "- &a [*a]")))
        return
    tree = change(yaml.safe_load(path.read_text()), random)
    path.write_text(written(tree) if random.random() < 0.5 else yaml.safe_dump(tree))


def npz_settings(path: Path, random: random.Random) -> None:
    """Of a model of Marian: its settings, and options that write files or run commands."""
    with np.load(path) as stored:
        arrays = {name: stored[name] for name in stored}
    tree = yaml.safe_load(arrays["special:model.yml"].tobytes().rstrip(b"\0"))
    if random.random() < 0.3:
        tree |= dict.fromkeys(("log", "output", "dump-config", "shortlist"), "../outside/written")
    else:
        tree = change(tree, random)
    arrays["special:model.yml"] = np.frombuffer(written(tree).encode() + b"\0", np.int8)
    np.savez(path, **arrays)


def csv_cells(path: Path, random: random.Random) -> None:
    rows = list(csv.reader(path.read_text().splitlines()))
    for _ in range(random.choice((1, 3))):
        row = random.choice(rows)
        row[random.randrange(len(row))] = random.choice(
            ("", "nan", "-inf", "1e308", "-1e308", "9" * 5000, "abc", "-1", "1e-300", "x" * 200_000, '"', "\0", "٣")
        )
    text = io.StringIO()
    csv.writer(text).writerows(rows)
    path.write_text(text.getvalue())


def lines(path: Path, random: random.Random) -> None:
    content = path.read_bytes().split(b"\n")
    for _ in range(random.choice((1, 5))):
        content[random.randrange(len(content))] = random.choice(
            [
                *(b"", b"\xff\xfe\x00", b"a" * 1000, b"\t\t\t", b"((((", b")" * 300, b"(" * 1000, b"\xe2\x80\xa8"),
                *(
                    b'{"source": 1}',
                    b'{"source": {}, "target": []}',
                    DEEP.encode(),
                    b"nan",
                    b"\r\n\r",
                    b"|" * 999,
                    b"\0",
                ),
            ]
        )
    path.write_bytes(b"\n".join(content))


def markdown(path: Path, random: random.Random) -> None:
    text = path.read_text()
    digits = [place for place, letter in enumerate(text) if letter.isdigit()]
    place = random.choice(digits or [0])
    path.write_text(text[:place] + random.choice(("9" * 5000, "-", "nan", ",", "٣", "|")) + text[place + 1 :])


def tensors_header(path: Path, random: random.Random) -> None:
    """Of a safetensors file: shapes, types, offsets, names and notes."""
    content = path.read_bytes()
    (length,) = struct.unpack("<Q", content[:8])
    header = written(change(json.loads(content[8 : 8 + length]), random)).encode()
    claimed = random.choice((len(header),) * 9 + (2**60,))
    path.write_bytes(struct.pack("<Q", claimed) + header + content[8 + length :])


def tensors_numbers(path: Path, random: random.Random) -> None:
    content = bytearray(path.read_bytes())
    (length,) = struct.unpack("<Q", content[:8])
    number = struct.pack("<f", random.choice((float("nan"), float("inf"), 3e38, -1e30)))
    count = random.choice((1, 100, (len(content) - 8 - length) // 4))
    start = 8 + length + 4 * random.randrange((len(content) - 8 - length) // 4 - count + 1)
    content[start : start + 4 * count] = number * count
    path.write_bytes(content)


def checkpoint_values(path: Path, random: random.Random) -> None:
    tree = torch.load(path, weights_only=True)
    strange = [
        torch.zeros(3),
        torch.tensor(float("nan")),
        torch.zeros(1).expand(2**40),
        torch.zeros(2, dtype=torch.int8),
    ]
    container, key = random.choice(places(tree))
    done = random.random()
    if done < 0.25:
        del container[key]
    elif isinstance(container[key], torch.Tensor) and done < 0.5 and container[key].is_floating_point():
        container[key].view(-1)[0] = random.choice((float("nan"), float("inf")))
    else:
        container[key] = random.choice(
            [*strange, *(value for value in VALUES if not (isinstance(value, str) and value in RAW))]
        )
    torch.save(tree, path)


def checkpoint_archive(path: Path, random: random.Random) -> None:
    """Its pickle with other bytes but a right check sum; its members compressed, doubled or renamed."""
    with zipfile.ZipFile(path) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    name = random.choice([name for name in members if name.endswith("data.pkl")] * 3 + list(members))
    content = bytearray(members[name]) or bytearray(1)
    for _ in range(random.choice((1, 3))):
        content[random.randrange(len(content))] = random.choice((random.randrange(256), 0xFF, *b"cRQb.(t\x94h"))
    members[name] = bytes(content)
    if random.random() < 0.2:
        del members[random.choice(list(members))]
    with zipfile.ZipFile(path, "w", random.choice((zipfile.ZIP_STORED,) * 4 + (zipfile.ZIP_DEFLATED,))) as archive:
        for member, value in members.items():
            archive.writestr(member, value)


def table_values(path: Path, random: random.Random) -> None:
    """Of an Arrow stream: ids, lengths, lines and columns that lie."""
    with pa.ipc.open_stream(path.read_bytes()) as reader:
        table = reader.read_all()
    rows, schema = table.to_pylist(), table.schema
    row = random.choice(rows)
    name = random.choice(schema.names)
    lie = random.choice((0, 1, -1, 2**31 - 1, 10**6))
    for other in rows if random.random() < 0.3 else [row]:
        other[name] = random.choice(([lie], [], [lie] * 3000)) if isinstance(other[name], list) else lie
    table = pa.Table.from_pylist(rows, schema=schema)
    done = random.random()
    if done < 0.1:
        table = table.drop_columns([name])
    elif done < 0.2:
        table = table.rename_columns([*schema.names[1:], schema.names[0]])
    elif done < 0.3:
        table = table.slice(0, 0)
    options = pa.ipc.IpcWriteOptions(compression=random.choice((None, None, "zstd")))
    with pa.OSFile(str(path), "wb") as file, pa.ipc.new_stream(file, table.schema, options=options) as writer:
        writer.write_table(table)


def wheel_members(path: Path, random: random.Random) -> None:
    with zipfile.ZipFile(path) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    name = random.choice([name for name in members if "/translations/" in name])
    members[name] = random.choice((DEEP.encode(), b"", b"3", b'"a"', b"\xff", b"{" + b'"a":{' * 2000, b"0" * 10**7))
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for member, value in members.items():
            archive.writestr(member, value)


VALUE_MUTATIONS: dict[str, list[Mutation]] = {
    "config.json": [json_values],
    "manifest.json": [json_values],
    "environment.json": [json_values],
    "dataset_info.json": [json_values],
    "state.json": [json_values],
    "nmt.json": [json_values],
    "shared_vocabulary.json": [json_values],
    "model.npz": [npz_settings],
    "decoder.yml": [yaml_values],
    "config.yaml": [yaml_values],
    "mine.yaml": [yaml_values],
    "metrics.csv": [csv_cells],
    "README.md": [markdown],
    "model.safetensors": [tensors_header, tensors_header, tensors_numbers],
    ".ckpt": [checkpoint_values, checkpoint_values, checkpoint_archive],
    ".arrow": [table_values],
    ".whl": [wheel_members],
    ".json": [json_values],
    ".txt": [lines],
    ".tsv": [lines],
    ".jsonl": [lines],
    ".mrg": [lines],
    ".trees": [lines],
    ".en": [lines],
    ".de": [lines],
}


def mutate(path: Path, random: random.Random, named: bool = False) -> str:
    """Change a file in some way, not into a pipe where it is `named` by the user; what was done."""
    own = VALUE_MUTATIONS.get(path.name) or VALUE_MUTATIONS.get(path.suffix) or BYTES
    elsewhere = [mutation for mutation in PLACES if not (named and mutation is pipe)]
    chosen = random.choice(random.choices((own, BYTES, elsewhere), (5, 3, 2))[0])
    chosen(path, random)
    return chosen.__name__
