"""The pages of the paper's tables: its own numbers, ours where they were measured, and where these come from."""

import re
from html.parser import HTMLParser

import pytest

from nmt.errors import NMTError
from nmt.report.markup import Markup
from nmt.reproduce.document import Document, Grid, Line
from nmt.reproduce.origin import commit, in_words, origin
from nmt.reproduce.render import markdown, page, write_pages
from nmt.reproduce.results import Result, read_results, write_result
from nmt.reproduce.scales import LAPTOP, PAPER
from nmt.reproduce.table2 import TABLE as TABLE2
from nmt.reproduce.table3 import TABLE as TABLE3

# BLEU en-de, en-fr, FLOPs en-de, en-fr; read off the paper.
PRINTED2 = """
ByteNet (published) | 23.75 | – | – | –
Deep-Att + PosUnk (published) | – | 39.2 | – | 1.0e20
GNMT + RL (published) | 24.6 | 39.92 | 2.3e19 | 1.4e20
ConvS2S (published) | 25.16 | 40.46 | 9.6e18 | 1.5e20
MoE (published) | 26.03 | 40.56 | 2.0e19 | 1.2e20
Deep-Att + PosUnk ensemble (published) | – | 40.4 | – | 8.0e20
GNMT + RL ensemble (published) | 26.30 | 41.16 | 1.8e20 | 1.1e21
ConvS2S ensemble (published) | 26.36 | 41.29 | 7.7e19 | 1.2e21
Transformer (base) | 27.3 | 38.1 | 3.3e18 | 3.3e18
Transformer (big) | 28.4 | 41.8 | 2.3e19 | 2.3e19
"""  # noqa: RUF001
# Row, perplexity, BLEU, millions of parameters.
PRINTED3 = """
base 4.92 25.8 65 A 5.29 24.9 – A 5.00 25.5 – A 4.91 25.8 – A 5.01 25.4 – B 5.16 25.1 58 B 5.01 25.4 60
C 6.11 23.7 36 C 5.19 25.3 50 C 4.88 25.5 80 C 5.75 24.5 28 C 4.66 26.0 168 C 5.12 25.4 53 C 4.75 26.2 90
D 5.77 24.6 – D 4.95 25.5 – D 4.67 25.3 – D 5.47 25.7 – E 4.92 25.7 – big 4.33 26.4 213
"""  # noqa: RUF001
MACHINE = {"processor": "Abacus", "cores": 2, "memory_gib": 24.0, "gpus": ["Loom", "Loom"]}
ORIGIN = {"commit": "abc123", "machine": MACHINE, "packages": {"torch": "2.13"}}


def result(row: str, table: str = "table2", **figures: float) -> Result:
    scores = [
        {"metric": "bleu", "name": "BLEU", "value": 11.239, "signature": "nrefs:1|tok:13a"},
        {"metric": "split", "name": "BLEU (split)", "value": 12.346, "signature": "nrefs:1|split:hyphen"},
    ]
    seconds = {"preprocess en-de": 12.0, f"train {row}": 300.0}
    return Result(table, row, "laptop", 7, ["nmt train <&>"], [ORIGIN], seconds, "1 x cpu", scores, figures)


def grid(text: str, title: str) -> list[dict[str, str]]:
    """The rows of a Markdown page's table under a heading."""
    lines = text.split(f"## {title}\n\n")[1].split("\n\n")[0].splitlines()
    head, _, *rows = [[cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]] for line in lines]
    return [dict(zip(head, row, strict=True)) for row in rows]


def test_table_2_has_the_papers_numbers_and_says_what_was_not_run():
    text = markdown(TABLE2.document(LAPTOP, {}))
    bleus, costs = grid(text, "BLEU"), grid(text, "Training cost in FLOPs")
    found = [
        " | ".join([b["system"], b["en-de, paper"], b["en-fr, paper"], c["en-de, paper"], c["en-fr, paper"]])
        for b, c in zip(bleus, costs, strict=True)
    ]
    assert found == PRINTED2.strip().splitlines()
    for row in (*bleus, *costs):
        ours = {cell for column, cell in row.items() if "ours" in column}
        assert ours == ({"–"} if "published" in row["system"] else {"not run"})  # noqa: RUF001


def test_table_3_has_the_papers_numbers_and_says_what_was_not_run():
    text = markdown(TABLE3.document(PAPER, {}))
    rows = grid(text, "Perplexity, BLEU, parameters")
    found = [cell for row in rows for cell in (row["row"], row["PPL, paper"], row["BLEU, paper"])]
    found_parameters = [row["parameters (M), paper"] for row in rows]
    printed = PRINTED3.split()
    assert found == [cell for place, cell in enumerate(printed) if place % 4 != 3]
    assert found_parameters == printed[3::4]
    for title in ("Perplexity, BLEU, parameters", "Differences to base", "Other attention functions"):
        ours = {cell for row in grid(text, title) for column, cell in row.items() if "ours" in column}
        assert ours == {"not run"}


def test_ours_stand_where_they_belong():
    measured = result("en-de-big", training_cost=1.26e15, training_flops=9.94e14)
    text = markdown(TABLE2.document(LAPTOP, {"en-de-big": measured}))
    base, big = grid(text, "BLEU")[-2:]
    assert (big["en-de, ours, paper's protocol"], big["en-de, ours, sacreBLEU"]) == ("12.35", "11.24")
    assert base["en-de, ours, sacreBLEU"] == big["en-fr, ours, sacreBLEU"] == "not run"
    cost = grid(text, "Training cost in FLOPs")[-1]
    assert (cost["en-de, ours, paper's formula"], cost["en-de, ours, counted"]) == ("1.3e15", "9.9e14")
    for word in ("nrefs:1|tok:13a", "abc123", "seed: 7", "Abacus, 2 cores, 24 GiB, 2 x Loom", "train <&>", "5 min"):
        assert word in text


def test_differences_are_to_our_own_base():
    base = result("table3-base", "table3", perplexity=30.0, parameters=2_000_000, training_seconds=60.0)
    wide = result("table3-c_d_ff_4096", "table3", perplexity=27.5, parameters=3_500_000, training_seconds=60.0)
    wide.scores[1]["value"] = 10.0
    text = markdown(TABLE3.document(LAPTOP, {"table3-base": base, "table3-c_d_ff_4096": wide}))
    rows = {row["changed from base"]: row for row in grid(text, "Differences to base")}
    row = rows["d_ff 4096"]
    assert [row[f"{name}, paper"] for name in ("PPL", "BLEU", "parameters (M)")] == ["−0.17", "+0.4", "+25"]  # noqa: RUF001
    assert [row[f"{name}, ours"] for name in ("PPL", "BLEU", "parameters (M)")] == ["−2.50", "−2.35", "+1.50"]  # noqa: RUF001
    assert rows["N 2"]["PPL, ours"] == "not run"
    alone = markdown(TABLE3.document(LAPTOP, {"table3-c_d_ff_4096": wide}))
    assert grid(alone, "Differences to base")[-7]["PPL, ours"] == "not run"  # d_ff 4096, without a base of ours


class Cells(HTMLParser):
    """The words of every cell of the tables of figures, and every address that a page names."""

    def __init__(self) -> None:
        super().__init__()
        self.words: list[str] = []
        self.addresses: list[str] = []
        self.inside = False

    def handle_starttag(self, tag, attributes):
        self.addresses += [value for key, value in attributes if key in ("src", "href")]
        if tag in ("th", "td"):
            self.inside = True
            self.words.append("")

    def handle_endtag(self, tag):
        self.inside = self.inside and tag not in ("th", "td")

    def handle_data(self, data):
        if self.inside:
            self.words[-1] += data


@pytest.mark.parametrize(("table", "row"), [(TABLE2, "en-de-base"), (TABLE3, "table3-base")])
def test_both_pages_tell_the_same(table, row):
    found = {row: result(row, table.name, perplexity=3.0, parameters=1, training_seconds=1.0)}
    document = table.document(LAPTOP, found)
    cells = Cells()
    cells.feed(page(document))
    shown = [cell for one in document.grids for line in one.lines for cell in line.cells]
    own = [word.removesuffix(" published") for word in cells.words]
    assert [word for word in own if word in shown] == [
        cell for one in document.grids for cells_of in (one.columns, *(line.cells for line in one.lines))
        for cell in cells_of if cell in shown
    ]  # fmt: skip
    assert cells.addresses == ["data:,"]
    for text in (markdown(document), page(document)):
        assert "Scale: laptop" in text
        assert "cannot be compared with the paper" in text


def test_cells_are_escaped_and_pictures_go_along(tmp_path):
    picture = Markup("<svg></svg>")
    hostile = [Grid("Grid", ["a", "b"], [Line(["x|y", "<script>"])])]
    document = Document("table9", "Table <9>", "laptop", "small", [], hostile, [], {"Time & more": picture})
    paths = write_pages(tmp_path, document)
    assert grid(paths[0].read_text(), "Grid") == [{"a": "x\\|y", "b": "\\<script\\>"}]
    assert "<script>" not in paths[1].read_text()
    assert (tmp_path / "table9-time-more.svg").read_text() == "<svg></svg>\n"
    assert "](table9-time-more.svg)" in paths[0].read_text()


def test_a_result_of_somebody_else_stays_words():
    strange = result("en-de-base")
    strange.row, strange.devices, strange.commands = "x\n# y", "<b>|`z`", ["nmt train", "```", "# not a heading"]
    strange.scores[0]["signature"] = "a`b\n# c"
    text = markdown(Document("table9", "Table 9", "laptop", "small", [], [], [strange]))
    assert "### x # y\n" in text
    assert r"trained on: \<b\>\|\`z\`" in text
    assert "``a`b # c``" in text
    assert "````\nnmt train\n```\n# not a heading\n````" in text


def test_big_below_base_is_explained_where_it_is_so():
    bleu = {"en-de-base": 16.7, "en-de-big": 10.9, "en-fr-base": 29.2, "en-fr-big": 34.8}
    results = {row: result(row) for row in bleu}
    assert "no finding" not in markdown(TABLE2.document(LAPTOP, results))
    for row, value in bleu.items():
        results[row].scores[0]["value"] = value
    assert "2,400 updates are too few" in markdown(TABLE2.document(LAPTOP, results))
    assert "no finding" not in markdown(TABLE2.document(PAPER, results))


def test_results_are_read_as_they_were_written(tmp_path):
    written = result("en-de-base", perplexity=3.25)
    write_result(tmp_path, written)
    assert read_results(tmp_path, seed=7) == {"en-de-base": written}
    assert read_results(tmp_path, seed=1) == {}  # one seed is not compared with another
    (tmp_path / "broken.json").write_text("{}")
    with pytest.raises(NMTError, match=r"broken\.json"):
        read_results(tmp_path, seed=7)


def test_a_commit_is_said_to_be_dirty_only_where_the_code_is(tmp_path):
    import subprocess

    def git(*words: str) -> str:
        about = ["-c", "user.name=x", "-c", "user.email=x@y"]
        return subprocess.run(["git", *about, *words], cwd=tmp_path, check=True, capture_output=True, text=True).stdout

    (tmp_path / "nmt").mkdir()
    (tmp_path / "nmt" / "__init__.py").write_text("")
    assert commit(tmp_path).startswith("nmt ")  # no repository
    git("init", "-q")
    git("add", ".")
    git("commit", "-qm", "x")
    head = git("rev-parse", "HEAD").strip()
    assert commit(tmp_path) == head
    (tmp_path / "recipes").mkdir()
    (tmp_path / "recipes" / "result.json").write_text("")
    assert commit(tmp_path) == head
    (tmp_path / "nmt" / "new.py").write_text("")
    assert commit(tmp_path) == f"{head}-dirty"
    environment = tmp_path / ".venv"
    (environment / "nmt").mkdir(parents=True)
    (environment / "nmt" / "__init__.py").write_text("")
    assert commit(environment).startswith("nmt ")  # a wheel in somebody's repository


def test_the_origin_names_this_machine():
    here = origin()
    assert here["packages"]["torch"].startswith("2.")
    assert str(here["machine"]["cores"]) in in_words(here["machine"])
