"""A bad cell is named by its file, line and column, however deep it is."""

import gzip

import numpy as np
import pytest

pytest.importorskip("pyarrow")

import pyarrow as pa
from pyarrow import feather, parquet

from leanrank.data import RankingData, load, write_store
from leanrank.data.tables.csv_files import csv_line, first_text
from leanrank.data.tables.layout import Place
from leanrank.errors import InputError

HEADER = "label,qid,bm25,length\n"


def stored(path, **options):
    """Read a file as large data are, block by block."""
    target = path.with_name("stored.arrow")
    write_store(path, target, **options)
    return RankingData.open(target)


READERS = [load, stored]


@pytest.mark.parametrize("read", READERS)
@pytest.mark.parametrize(
    ("text", "line", "found"),
    [
        (HEADER + "0,1,0.5,3\n1,1,high,4\n", 3, "'high'"),
        (HEADER + "0,1,0.5,3\n1,1,\udcff,4\n", 3, "'\\\\xff'"),
        (HEADER + '"0","1","0.5",3\n"1","1","hi, ""you""",4\n', 3, "'hi, \"you\"'"),
        ("\n" + HEADER + "\n\n0,1,,3\n\r\n1,1,NA,4\n\n1,1,1_000,4\n", 9, "'1_000'"),
        (HEADER.replace("\n", "\r\n") + "0,1,1,3\r\n\r\n1,1,1.5.1,4", 4, "'1.5.1'"),
        ("\ufeff" + HEADER + "0,1, 2 ,3\n1,1, ,4\n", 3, "' '"),
    ],
)
def test_a_cell_of_csv_that_is_no_number(tmp_path, read, text, line, found):
    path = tmp_path / "a.csv"
    path.write_bytes(text.encode("utf-8", "surrogateescape"))
    with pytest.raises(InputError) as error:
        read(path)
    start = f"column 'bm25' of {path} holds {found} in line {line}, not a number: correct it"
    assert str(error.value).startswith(start)
    assert "`doc_id='bm25'`" in str(error.value)


@pytest.mark.parametrize("read", READERS)
@pytest.mark.parametrize("name", ["a.csv", "a.csv.gz"])
def test_a_cell_beyond_the_first_block(tmp_path, read, name):
    n_rows = 120_000  # Arrow decides by a block of 1 MiB at first
    lines = [f"{row % 3},{row // 10},{row / 7:.9f},{row}\n" for row in range(n_rows)]
    lines[100_000] = '1,10000,"12;5",4\n'
    lines[50_000] += "\n"
    text = (HEADER + "".join(lines)).encode()
    assert text.index(b"12;5") > 2 << 20
    path = tmp_path / name
    path.write_bytes(gzip.compress(text) if name.endswith("gz") else text)
    message = f"column 'bm25' of {path} holds '12;5' in line 100003, not a number: correct it"
    options = {"chunk_bytes": 1 << 20} if read is stored else {}
    with pytest.raises(InputError) as error:
        read(path, **options)
    assert str(error.value).startswith(message)


@pytest.mark.parametrize("read", READERS)
def test_other_cells_of_csv_are_named_by_their_line(tmp_path, read):
    path = tmp_path / "a.csv"
    for cells, words in {
        "two,1,1,1": r"column 'label' of .*a\.csv holds 'two' in line 4, .* with `label=…`",
        "1,1,-inf,1": r"column 'bm25' of .*a\.csv is -inf in line 4: a feature is a finite",
        "1,,1,1": r"column 'qid' of .*a\.csv has no value in line 4: fill or drop",
        "1,1,1": r"a\.csv, line 4: 3 cells where 4 are expected: correct the line",
    }.items():
        path.write_text(f"{HEADER}\n1,1,2,2\n{cells}\n")
        with pytest.raises(InputError, match=words):
            read(path)


@pytest.mark.parametrize("read", READERS)
def test_csv_without_names(tmp_path, read):
    path = tmp_path / "a.csv"
    path.write_text("0,1,0.5\n1,1,x\n")
    with pytest.raises(InputError, match=r"column '3' of .*a\.csv holds 'x' in line 2"):
        read(path, header=False, label="1", qid="2")


def test_blocks_of_csv_may_differ_in_kind(tmp_path):
    path = tmp_path / "a.csv"
    rows = [f"{row % 2},{row // 4},true,{row}\n" for row in range(100)]
    path.write_text(HEADER + "".join(rows) + "0.5,25,false,1.5\n")
    data = stored(path, chunk_bytes=200)
    np.testing.assert_array_equal(data.X, load(path).X)
    assert data.y[-1] == 0.5
    path.write_text(HEADER + "".join(rows) + "1,A7,true,1\n")
    assert stored(path, chunk_bytes=200).query_ids.tolist() == [*map(str, range(25)), "A7"]
    path.write_text(HEADER + "".join(rows) + "1,7,true,A7\n")
    with pytest.raises(InputError, match=r"'length' of .* holds 'A7' in line 102"):
        stored(path, chunk_bytes=200)


@pytest.mark.parametrize("read", READERS)
@pytest.mark.parametrize("name", ["a.parquet", "a.arrow"])
def test_a_text_column_of_a_binary_file(tmp_path, read, name):
    table = pa.table({"label": [0, 1], "qid": [1, 1], "bm25": ["1", "high"]})
    write = parquet.write_table if name == "a.parquet" else feather.write_feather
    for column in (table.column(2), pa.array([1, 2], pa.timestamp("ms"))):
        write(table.set_column(2, "bm25", column), tmp_path / name)
        with pytest.raises(InputError, match=rf"'bm25' of .*{name} holds [st]"):
            read(tmp_path / name)


def test_records_of_csv(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text('a,b\n\n1,"two\nlines"\n3,4\n')
    assert [csv_line(str(path), record) for record in range(4)] == [1, 3, 5, None]
    assert csv_line("-", 0) is None
    assert csv_line(str(tmp_path / "none.csv"), 0) is None
    assert Place(str(tmp_path / "none.csv"), 3, True).row(4) == "row 7 (counted from 0)"
    assert first_text(str(path), 1, True) == (3, "two\nlines")
    assert first_text(str(path), 0, True) is None
    path.write_text(f"a,b\n{'x' * 200_000},1\n")
    assert csv_line(str(path), 1) is None
