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

Mutation = Callable[[bytes, Random], bytes]
"""Returns other content for a file."""


def nested_aliases() -> str:
    """YAML in which each of 25 names stands for two of the name before."""
    rows = ["a: &a [x, x]\n"]
    for number in range(ord("a"), ord("y")):
        inner = chr(number)
        outer = chr(number + 1)
        rows.append(f"{outer}: &{outer} [*{inner}, *{inner}]\n")
    return "".join(rows)


DEEP = "[" * 5000 + "]" * 5000
BOMB = nested_aliases()
RAW = {
    "@deep": DEEP,
    "@digits": "9" * 5000,
    "@large": "1" + "0" * 300,
    "@nan": "NaN",
    "@infinity": "-Infinity",
}
"""Text that Python's JSON encoder cannot write, by the string that stands for it."""
VALUES: list[Any] = [
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
    [],
    {},
    [[]],
    [1, "a", None],
    {"a": {"b": [1]}},
    "<script>alert(1)</script>",
    "a\nb",
    "../../outside/secret.txt",
    "x; touch ../outside/written |",
    ["x; touch ../outside/written |"] * 2,
    "/etc/passwd",
    "${oc.env:HOME}",
    "1e999",
    "nan",
    list(range(3000)),
    *RAW,
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
    b'{"source": 1}',
    b'{"source": {}, "target": []}',
    DEEP.encode(),
    b"\r\n\r",
    b"|" * 999,
    b"\0",
]
CELLS = [
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
]
YAML_FILES = [
    BOMB,
    DEEP,
    "a: " * 3000,
    "!!python/object/apply:os.system [ls]",
    "- &a [*a]",
]
WHEEL_MEMBERS = [
    DEEP.encode(),
    b"",
    b"3",
    b'"a"',
    b"\xff",
    b"{" + b'"a":{' * 2000,
    b"0" * 10**7,
]


def with_flipped_bits(content: bytes, random: Random) -> bytes:
    changed = bytearray(content or b"\0")
    for _ in range(random.choice((1, 1, 4, 32))):
        changed[random.randrange(len(changed))] ^= 1 << random.randrange(8)
    return bytes(changed)


def overwritten(content: bytes, random: Random) -> bytes:
    """Write a few bytes over others. A size or offset there becomes huge or negative."""
    place = random.randrange(len(content) + 1)
    new = random.choice((b"\xff" * 8, b"\xff\xff\xff\x7f", b"\0" * 8, b"\xff" * 4, b"\n\n"))
    return content[:place] + new + content[place + 8 :]


def cut(content: bytes, random: Random) -> bytes:
    return content[: random.randrange(len(content) + 1)]


def spliced(content: bytes, random: Random) -> bytes:
    return cut(content, random) + content[random.randrange(len(content) + 1) :]


def replaced(content: bytes, random: Random) -> bytes:
    return random.choice((b"", random.randbytes(40), random.randbytes(5000), content * 2))


BYTES = [
    with_flipped_bits,
    with_flipped_bits,
    overwritten,
    overwritten,
    cut,
    cut,
    replaced,
    replaced,
    spliced,
]
"""Mutations for any file. A mutation that is listed twice is chosen twice as often."""


def places(tree: Any) -> list[tuple[Any, Any]]:
    """Every container in a tree with each of its keys."""
    if isinstance(tree, dict):
        keys = list(tree)
    elif isinstance(tree, list):
        keys = list(range(len(tree)))
    else:
        keys = []
    found = [(tree, key) for key in keys]
    for key in keys:
        found += places(tree[key])
    return found


def changed_tree(tree: Any, random: Random) -> Any:
    """Change, remove or rename one or two values of a tree."""
    for _ in range(random.choice((1, 1, 2))):
        everywhere = places(tree)
        kind = random.random()
        if not everywhere or random.random() < 0.03:
            return random.choice(VALUES)
        container, key = random.choice(everywhere)
        if kind < 0.15:
            del container[key]
        elif kind < 0.2 and isinstance(container, dict):
            container[random.choice(("unknown", "", "a" * 300))] = container.pop(key)
        elif kind < 0.3:
            inner, inner_key = random.choice(everywhere)
            container[key] = copy.deepcopy(inner[inner_key])
        else:
            container[key] = copy.deepcopy(random.choice(VALUES))
    return tree


def as_json(tree: Any) -> bytes:
    text = json.dumps(tree)
    for name, raw in RAW.items():
        text = text.replace(f'"{name}"', raw)
    return text.encode()


def json_values(content: bytes, random: Random) -> bytes:
    return as_json(changed_tree(json.loads(content), random))


def yaml_values(content: bytes, random: Random) -> bytes:
    if random.random() < 0.1:
        return random.choice(YAML_FILES).encode()
    tree = changed_tree(yaml.safe_load(content), random)
    if random.random() < 0.5:
        return as_json(tree)
    return yaml.safe_dump(tree).encode()


def npz_settings(content: bytes, random: Random) -> bytes:
    """Change the settings in a model of Marian, or add options that write files or run commands."""
    arrays = dict(np.load(io.BytesIO(content)))
    tree = yaml.safe_load(arrays["special:model.yml"].tobytes().rstrip(b"\0"))
    if random.random() < 0.3:
        for option in ("log", "output", "dump-config", "shortlist"):
            tree[option] = "../outside/written"
    else:
        tree = changed_tree(tree, random)
    arrays["special:model.yml"] = np.frombuffer(as_json(tree) + b"\0", np.int8)
    file = io.BytesIO()
    np.savez(file, **arrays)
    return file.getvalue()


def csv_cells(content: bytes, random: Random) -> bytes:
    rows = list(csv.reader(content.decode().splitlines()))
    for _ in range(random.choice((1, 3))):
        row = random.choice(rows)
        row[random.randrange(len(row))] = random.choice(CELLS)
    text = io.StringIO()
    csv.writer(text).writerows(rows)
    return text.getvalue().encode()


def lines(content: bytes, random: Random) -> bytes:
    changed = content.split(b"\n")
    for _ in range(random.choice((1, 5))):
        changed[random.randrange(len(changed))] = random.choice(LINES)
    return b"\n".join(changed)


def tensors_header(content: bytes, random: Random) -> bytes:
    """Change the header of a safetensors file: shapes, types, offsets, names and metadata.

    One header in ten has a huge size.
    """
    (size,) = struct.unpack("<Q", content[:8])
    start = 8 + size
    header = json_values(content[8:start], random)
    sizes = [len(header)] * 9 + [2**60]
    return struct.pack("<Q", random.choice(sizes)) + header + content[start:]


def tensors_numbers(content: bytes, random: Random) -> bytes:
    """Make numbers in a safetensors file infinite, huge or not a number."""
    (size,) = struct.unpack("<Q", content[:8])
    start = 8 + size
    total = (len(content) - start) // 4
    count = random.choice((1, 100, total))
    place = start + 4 * random.randrange(total - count + 1)
    number = random.choice((float("nan"), float("inf"), 3e38, -1e30))
    numbers = struct.pack("<f", number) * count
    return content[:place] + numbers + content[place + len(numbers) :]


def checkpoint_values(content: bytes, random: Random) -> bytes:
    """Remove a value from a checkpoint, put a number that is not finite in a tensor, or replace a value."""
    tree = torch.load(io.BytesIO(content), weights_only=True)
    kind = random.random()
    container, key = random.choice(places(tree))
    value = container[key]
    is_float = isinstance(value, torch.Tensor) and value.is_floating_point()
    if kind < 0.25:
        del container[key]
    elif kind < 0.5 and is_float:
        value.view(-1)[0] = random.choice((float("nan"), float("inf")))
    else:
        container[key] = random.choice(checkpoint_replacements())
    file = io.BytesIO()
    torch.save(tree, file)
    return file.getvalue()


def checkpoint_replacements() -> list[Any]:
    values: list[Any] = [
        torch.zeros(3),
        torch.tensor(float("nan")),
        torch.zeros(1).expand(2**40),
        torch.zeros(2).to(torch.int8),
    ]
    for value in VALUES:
        stands_for_raw_text = isinstance(value, str) and value in RAW
        if not stands_for_raw_text:
            values.append(value)
    return values


def changed_archive(
    content: bytes, random: Random, part: str, change: Mutation, compression: int
) -> bytes:
    """Change one member of a ZIP file, in most cases one with `part` in its name.

    One archive in ten lacks a member.
    """
    file = io.BytesIO()
    with (
        zipfile.ZipFile(io.BytesIO(content)) as old,
        zipfile.ZipFile(file, "w", compression) as new,
    ):
        names = old.namelist()
        names_with_part = [name for name in names if part in name]
        changed_name = random.choice(names_with_part * 3 + names)
        missing_name = None
        if random.random() < 0.1:
            missing_name = random.choice(names)
        for name in names:
            if name == missing_name:
                continue
            member = old.read(name)
            if name == changed_name:
                member = change(member, random)
            new.writestr(name, member)
    return file.getvalue()


def checkpoint_archive(content: bytes, random: Random) -> bytes:
    """Change the pickle of a checkpoint but not the validity of its checksum, or another member.

    One checkpoint in five is compressed.
    """
    compression = random.choice([zipfile.ZIP_STORED] * 4 + [zipfile.ZIP_DEFLATED])
    return changed_archive(content, random, "data.pkl", with_flipped_bits, compression)


def wheel_members(content: bytes, random: Random) -> bytes:
    def change(member: bytes, random: Random) -> bytes:
        return random.choice(WHEEL_MEMBERS)

    return changed_archive(content, random, "/translations/", change, zipfile.ZIP_DEFLATED)


def table_values(content: bytes, random: Random) -> bytes:
    """Put wrong ids, lengths or lines in an Arrow stream, or change its columns."""
    table = pa.ipc.open_stream(content).read_all()
    rows = table.to_pylist()
    names = table.schema.names
    name = random.choice(names)
    number = random.choice((0, 1, -1, 2**31 - 1, 10**6))
    changed_rows = rows
    if random.random() >= 0.3:
        changed_rows = [random.choice(rows)]
    for row in changed_rows:
        if isinstance(row[name], list):
            row[name] = random.choice(([number], [], [number] * 3000))
        else:
            row[name] = number
    table = pa.Table.from_pylist(rows, schema=table.schema)
    tables = [
        table.drop_columns([name]),
        table.rename_columns([*names[1:], names[0]]),
        table.slice(0, 0),
    ]
    tables += [table] * 7
    table = random.choice(tables)
    options = pa.ipc.IpcWriteOptions(compression=random.choice((None, None, "zstd")))
    file = pa.BufferOutputStream()
    with pa.ipc.new_stream(file, table.schema, options=options) as writer:
        writer.write_table(table)
    return file.getvalue().to_pybytes()


VALUE_MUTATIONS = {
    "model.npz": [npz_settings],
    "metrics.csv": [csv_cells],
    ".json": [json_values],
    ".safetensors": [tensors_header, tensors_header, tensors_numbers],
    ".ckpt": [checkpoint_values, checkpoint_values, checkpoint_archive],
    ".arrow": [table_values],
    ".whl": [wheel_members],
    ".yml": [yaml_values],
    ".yaml": [yaml_values],
    ".txt": [lines],
    ".tsv": [lines],
    ".jsonl": [lines],
    ".mrg": [lines],
    ".trees": [lines],
    ".en": [lines],
    ".de": [lines],
    ".md": [lines],
}
"""Mutations of the values in a file, by its name or suffix."""


def remove(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink()


def link_targets(path: Path, outside: Path) -> list[Path]:
    return [
        outside / path.name,  # of the same kind, twice as often
        outside / path.name,
        outside / "secret.txt",
        Path("/dev/zero"),
        outside / "no",  # does not exist
        path,
    ]


def replace_path(path: Path, random: Random, is_named: bool) -> str:
    """Put something else in the place of a file or folder, and return what.

    A path that the user has named does not become a pipe, because the command would wait for it.
    """
    kinds = ["link", "link", "folder", "nothing"]
    if not path.is_dir():
        kinds.append("other")
    if not is_named:
        kinds.append("pipe")
    kind = random.choice(kinds)
    outside = next(parent / "outside" for parent in path.parents if (parent / "outside").is_dir())
    neighbors = [file for file in path.parent.iterdir() if file.is_file() and file != path]
    if kind == "link" and not (outside / path.name).exists():
        shutil.move(path, outside / path.name)
    elif kind != "other":
        remove(path)
    if kind == "link":
        path.symlink_to(random.choice(link_targets(path, outside)))
    elif kind == "pipe":
        os.mkfifo(path)
    elif kind == "folder":
        path.mkdir()
        (path / "file").touch()
    elif kind == "other" and neighbors:
        path.write_bytes(random.choice(neighbors).read_bytes())
    return kind


def mutate(path: Path, random: Random, is_named: bool) -> str:
    """Change a file or folder, and return a word that says how."""
    if path.is_dir() or random.random() < 0.2:
        return replace_path(path, random, is_named)
    value_mutations = VALUE_MUTATIONS.get(path.name) or VALUE_MUTATIONS.get(path.suffix) or BYTES
    (mutations,) = random.choices((value_mutations, BYTES), (5, 3))
    mutation = random.choice(mutations)
    path.write_bytes(mutation(path.read_bytes(), random))
    return mutation.__name__
