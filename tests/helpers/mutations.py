"""Damage to files: to their bytes, to the values in them, and to their place in the file system."""

import copy
import csv
import io
import json
import os
import shutil
import struct
import zipfile
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pyarrow as pa
import torch
import yaml

DEEP = "[" * 5000 + "]" * 5000
BOMB = "a: &a [x, x]\n" + "".join(
    f"{chr(n + 1)}: &{chr(n + 1)} [*{chr(n)}, *{chr(n)}]\n" for n in range(97, 121)
)
RAW = {
    "@deep": DEEP,
    "@digits": "9" * 5000,
    "@large": "1" + "0" * 300,
    "@nan": "NaN",
    "@infinity": "-Infinity",
}
"""What JSON's writer would not write."""
VALUES: list[Any] = [
    *(
        None,
        True,
        False,
        -1,
        0,
        1,
        3,
        10**9,
        2**63,
        -(2**31),
        1e308,
        -0.5,
        "",
        "abc",
        "x" * 20000,
        "\x00",
        "é\u2028",
    ),
    *(
        [],
        {},
        [[]],
        [1, "a", None],
        {"a": {"b": [1]}},
        "<script>alert(1)</script>",
        "a\nb",
        "../../outside/secret.txt",
    ),
    *(
        "x; touch ../outside/written |",
        ["x; touch ../outside/written |"] * 2,
        "/etc/passwd",
        "${oc.env:HOME}",
    ),
    *("1e999", "nan", list(range(3000)), *RAW),
]
LINES = [
    b"",
    b"\xff\xfe\x00",
    b"a" * 1000,
    b"\t\t\t",
    b"((((",
    b")" * 300,
    b"(" * 1000,
    b"\xe2\x80\xa8",
    b"nan",
]
LINES += [
    b'{"source": 1}',
    b'{"source": {}, "target": []}',
    DEEP.encode(),
    b"\r\n\r",
    b"|" * 999,
    b"\0",
]


def flipped(content: bytes, random: Random) -> bytes:
    changed = bytearray(content or b"\0")
    for _ in range(random.choice((1, 1, 4, 32))):
        changed[random.randrange(len(changed))] ^= 1 << random.randrange(8)
    return bytes(changed)


def overwritten(content: bytes, random: Random) -> bytes:
    """Sizes and offsets become huge or negative where this meets them."""
    place = random.randrange(len(content) + 1)
    new = random.choice((b"\xff" * 8, b"\xff\xff\xff\x7f", b"\0" * 8, b"\xff" * 4, b"\n\n"))
    return content[:place] + new + content[place + 8 :]


def cut(content: bytes, random: Random) -> bytes:
    return content[: random.randrange(len(content) + 1)]


def spliced(content: bytes, random: Random) -> bytes:
    return cut(content, random) + content[random.randrange(len(content) + 1) :]


def replaced(content: bytes, random: Random) -> bytes:
    return random.choice((b"", random.randbytes(40), random.randbytes(5000), content * 2))


BYTES = [flipped, flipped, overwritten, overwritten, cut, cut, replaced, replaced, spliced]


def places(tree: Any) -> list[tuple[Any, Any]]:
    """Every (container, key) in a tree."""
    items = (
        list(tree.items())
        if isinstance(tree, dict)
        else list(enumerate(tree))
        if isinstance(tree, list)
        else []
    )
    return [(tree, key) for key, _ in items] + [
        place for _, value in items for place in places(value)
    ]


def changed_tree(tree: Any, random: Random) -> Any:
    """A tree of which one or two values are others, missing, or under another name."""
    for _ in range(random.choice((1, 1, 2))):
        everywhere, done = places(tree), random.random()
        if not everywhere or random.random() < 0.03:
            return random.choice(VALUES)
        container, key = random.choice(everywhere)
        if done < 0.15:
            del container[key]
        elif done < 0.2 and isinstance(container, dict):
            container[random.choice(("unknown", "", "a" * 300))] = container.pop(key)
        else:
            container[key] = copy.deepcopy(
                random.choice([c[k] for c, k in everywhere] if done < 0.3 else VALUES)
            )
    return tree


def written(tree: Any) -> bytes:
    text = json.dumps(tree)
    for name, raw in RAW.items():
        text = text.replace(f'"{name}"', raw)
    return text.encode()


def json_values(content: bytes, random: Random) -> bytes:
    return written(changed_tree(json.loads(content), random))


def yaml_values(content: bytes, random: Random) -> bytes:
    if random.random() < 0.1:
        hostile = (BOMB, DEEP, "a: " * 3000, "!!python/object/apply:os.system [ls]", "- &a [*a]")
        return random.choice(hostile).encode()
    tree = changed_tree(yaml.safe_load(content), random)
    return written(tree) if random.random() < 0.5 else yaml.safe_dump(tree).encode()


def npz_settings(content: bytes, random: Random) -> bytes:
    """Of a model of Marian: its settings, and options that write files or run commands."""
    arrays, file = dict(np.load(io.BytesIO(content))), io.BytesIO()
    tree = yaml.safe_load(arrays["special:model.yml"].tobytes().rstrip(b"\0"))
    outside = dict.fromkeys(("log", "output", "dump-config", "shortlist"), "../outside/written")
    tree = tree | outside if random.random() < 0.3 else changed_tree(tree, random)
    arrays["special:model.yml"] = np.frombuffer(written(tree) + b"\0", np.int8)
    np.savez(file, **arrays)
    return file.getvalue()


def csv_cells(content: bytes, random: Random) -> bytes:
    rows, text = list(csv.reader(content.decode().splitlines())), io.StringIO()
    cells = (
        "",
        "nan",
        "-inf",
        "1e308",
        "-1e308",
        "9" * 5000,
        "abc",
        "-1",
        "1e-300",
        "x" * 200_000,
        '"',
        "\0",
        "٣",
    )
    for _ in range(random.choice((1, 3))):
        row = random.choice(rows)
        row[random.randrange(len(row))] = random.choice(cells)
    csv.writer(text).writerows(rows)
    return text.getvalue().encode()


def lines(content: bytes, random: Random) -> bytes:
    changed = content.split(b"\n")
    for _ in range(random.choice((1, 5))):
        changed[random.randrange(len(changed))] = random.choice(LINES)
    return b"\n".join(changed)


def tensors_header(content: bytes, random: Random) -> bytes:
    """Of a safetensors file: shapes, types, offsets, names and notes."""
    start = 8 + struct.unpack("<Q", content[:8])[0]
    header = json_values(content[8:start], random)
    return (
        struct.pack("<Q", random.choice((len(header),) * 9 + (2**60,))) + header + content[start:]
    )


def tensors_numbers(content: bytes, random: Random) -> bytes:
    start = 8 + struct.unpack("<Q", content[:8])[0]
    count = random.choice((1, 100, (len(content) - start) // 4))
    place = start + 4 * random.randrange((len(content) - start) // 4 - count + 1)
    numbers = struct.pack("<f", random.choice((float("nan"), float("inf"), 3e38, -1e30))) * count
    return content[:place] + numbers + content[place + len(numbers) :]


def checkpoint_values(content: bytes, random: Random) -> bytes:
    tree, file, done = (
        torch.load(io.BytesIO(content), weights_only=True),
        io.BytesIO(),
        random.random(),
    )
    strange = [
        torch.zeros(3),
        torch.tensor(float("nan")),
        torch.zeros(1).expand(2**40),
        torch.zeros(2).to(torch.int8),
    ]
    strange += [value for value in VALUES if not (isinstance(value, str) and value in RAW)]
    container, key = random.choice(places(tree))
    if done < 0.25:
        del container[key]
    elif (
        isinstance(container[key], torch.Tensor)
        and done < 0.5
        and container[key].is_floating_point()
    ):
        container[key].view(-1)[0] = random.choice((float("nan"), float("inf")))
    else:
        container[key] = random.choice(strange)
    torch.save(tree, file)
    return file.getvalue()


def archive(
    content: bytes, random: Random, part: str, changed: Callable[[bytes, Random], bytes], kinds: Any
) -> bytes:
    """Another content in a member with `part` in its name, mostly, and compression of one of these kinds."""
    file = io.BytesIO()
    with (
        zipfile.ZipFile(io.BytesIO(content)) as old,
        zipfile.ZipFile(file, "w", random.choice(kinds)) as new,
    ):
        names = old.namelist()
        changed_name = random.choice([name for name in names if part in name] * 3 + names)
        gone = random.choice(names) if random.random() < 0.1 else None
        for name in names:
            if name != gone:
                new.writestr(
                    name,
                    changed(old.read(name), random) if name == changed_name else old.read(name),
                )
    return file.getvalue()


def checkpoint_archive(content: bytes, random: Random) -> bytes:
    """Its pickle with other bytes but a right check sum; its members compressed or missing."""
    return archive(
        content, random, "data.pkl", flipped, (zipfile.ZIP_STORED,) * 4 + (zipfile.ZIP_DEFLATED,)
    )


def wheel_members(content: bytes, random: Random) -> bytes:
    new = (DEEP.encode(), b"", b"3", b'"a"', b"\xff", b"{" + b'"a":{' * 2000, b"0" * 10**7)
    return archive(
        content,
        random,
        "/translations/",
        lambda old, random: random.choice(new),
        (zipfile.ZIP_DEFLATED,),
    )


def table_values(content: bytes, random: Random) -> bytes:
    """Of an Arrow stream: ids, lengths, lines and columns that lie."""
    table, file = pa.ipc.open_stream(content).read_all(), pa.BufferOutputStream()
    rows, names = table.to_pylist(), table.schema.names
    name, lie = random.choice(names), random.choice((0, 1, -1, 2**31 - 1, 10**6))
    for row in rows if random.random() < 0.3 else [random.choice(rows)]:
        row[name] = random.choice(([lie], [], [lie] * 3000)) if isinstance(row[name], list) else lie
    table = pa.Table.from_pylist(rows, schema=table.schema)
    others = [
        table.drop_columns([name]),
        table.rename_columns([*names[1:], names[0]]),
        table.slice(0, 0),
    ]
    table = random.choice([*others, *[table] * 7])
    options = pa.ipc.IpcWriteOptions(compression=random.choice((None, None, "zstd")))
    with pa.ipc.new_stream(file, table.schema, options=options) as writer:
        writer.write_table(table)
    return file.getvalue().to_pybytes()


VALUE_MUTATIONS = {
    "model.npz": (npz_settings,),
    "metrics.csv": (csv_cells,),
    ".json": (json_values,),
    ".safetensors": (tensors_header, tensors_header, tensors_numbers),
    ".ckpt": (checkpoint_values, checkpoint_values, checkpoint_archive),
    ".arrow": (table_values,),
    ".whl": (wheel_members,),
    **dict.fromkeys((".yml", ".yaml"), (yaml_values,)),
    **dict.fromkeys((".txt", ".tsv", ".jsonl", ".mrg", ".trees", ".en", ".de", ".md"), (lines,)),
}


def moved(path: Path, random: Random, named: bool = False) -> str:
    """Put something else in the place of a file or folder, no pipe if the user has `named` it: what was done."""
    kinds = [
        "link",
        "link",
        "folder",
        "nothing",
        *(() if path.is_dir() else ("other",)),
        *(() if named else ("pipe",)),
    ]
    kind = random.choice(kinds)
    outside = next(parent / "outside" for parent in path.parents if (parent / "outside").is_dir())
    others = [other for other in path.parent.iterdir() if other.is_file() and other != path]
    if kind == "link" and not (outside / path.name).exists():
        shutil.move(path, outside / path.name)
    elif kind != "other":
        shutil.rmtree(path) if path.is_dir() and not path.is_symlink() else path.unlink()
    if (
        kind == "link"
    ):  # to something of the same kind, the secret, a device without end, nothing, or itself
        targets = (outside / path.name,) * 2 + (
            outside / "secret.txt",
            Path("/dev/zero"),
            outside / "no",
            path,
        )
        path.symlink_to(random.choice(targets))
    elif kind == "pipe":
        os.mkfifo(path)
    elif kind == "folder":
        path.mkdir()
        (path / "file").touch()
    elif kind == "other" and others:
        path.write_bytes(random.choice(others).read_bytes())
    return kind


def mutate(path: Path, random: Random, named: bool) -> str:
    """Change a file or folder in some way: what was done."""
    values = VALUE_MUTATIONS.get(path.name) or VALUE_MUTATIONS.get(path.suffix) or BYTES
    if path.is_dir() or random.random() < 0.2:
        return moved(path, random, named)
    mutation = random.choice(random.choices((values, BYTES), (5, 3))[0])
    path.write_bytes(mutation(path.read_bytes(), random))
    return mutation.__name__
