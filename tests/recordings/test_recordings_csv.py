from __future__ import annotations

import tracemalloc

import numpy as np
import pytest

from armwise.arms import load_arm
from armwise.errors import RecordingError
from armwise.recordings import read_recording
from armwise.recordings.formats import csv

HEADER = "time,q_1,q_2,tau_1,tau_2"


def rows(count=20):
    values = np.arange(count * 5, dtype=float).reshape(count, 5) * 0.01
    values[:, 0] = np.arange(count) * 0.1
    return values


def log(tmp_path, text, name="log.csv"):
    path = tmp_path / name
    path.write_text(text)
    return path


def lines(values=None, separator=","):
    values = rows() if values is None else values
    return [separator.join(f"{x:.12g}" for x in row) for row in values]


def standard(tmp_path, body, header=HEADER):
    return log(tmp_path, "\n".join([header, *body]) + "\n")


def test_reads_the_standard_log(tmp_path):
    rec = read_recording(standard(tmp_path, lines()))
    assert list(rec.channels) == ["q_1", "q_2", "tau_1", "tau_2"]
    np.testing.assert_allclose(rec["tau_2"].values, rows()[:, 4])
    assert rec["q_1"].time is rec["tau_2"].time


@pytest.mark.parametrize("separator", [";", "\t", "|", " ", "   ", ", "])
def test_finds_the_separator(tmp_path, separator):
    text = "\n".join([HEADER.replace(",", separator), *lines(separator=separator)])
    rec = read_recording(log(tmp_path, text))
    np.testing.assert_allclose(rec["q_2"].values, rows()[:, 2])


def test_reads_decimal_commas(tmp_path):
    body = [line.replace(".", ",") for line in lines(separator=";")]
    rec = read_recording(standard(tmp_path, body, HEADER.replace(",", ";")))
    np.testing.assert_allclose(rec["q_1"].values, rows()[:, 1])


def test_comments_blank_lines_windows_ends_quotes_and_a_mark(tmp_path):
    body = lines()
    body[3] += "\n# paused here\n\n% and here"
    text = "\ufeff# my log\n" + "\r\n".join([HEADER, *body])
    rec = read_recording(log(tmp_path, text))
    np.testing.assert_allclose(rec["q_1"].values, rows()[:, 1])
    quoted = [",".join(f'"{x}"' for x in line.split(",")) for line in lines()]
    rec = read_recording(standard(tmp_path, quoted))
    np.testing.assert_allclose(rec["q_1"].values, rows()[:, 1])


@pytest.mark.parametrize(
    "head",
    [
        "time [ms],q_1 [deg],q_2 [deg],tau_1 [N m],tau_2 (mNm)",
        HEADER + "\nms,deg,deg,N.m,mNm",
    ],
)
def test_units_beside_or_under_the_headings(tmp_path, head):
    rec = read_recording(standard(tmp_path, lines(), head))
    np.testing.assert_allclose(rec["q_1"].time, rows()[:, 0] * 1e-3)
    np.testing.assert_allclose(rec["q_1"].values, np.deg2rad(rows()[:, 1]))
    np.testing.assert_allclose(rec["tau_2"].values, rows()[:, 4] * 1e-3)


def test_joint_names_stand_for_numbers_in_the_arms_order(tmp_path):
    arm = load_arm("ur10")
    names = list(arm.coordinate_names)[::-1]
    header = ",".join(
        ["time", *(f"q_{n}" for n in names), *(f"tau_{n}" for n in names)]
    )
    values = np.zeros((20, 13))
    values[:, 0] = np.arange(20) * 0.1
    values[:, 1:] = np.arange(12) * 0.1
    rec = read_recording(standard(tmp_path, lines(values), header), arm)
    assert rec["q_6"].values[0] == pytest.approx(0.0)
    assert rec["q_1"].values[0] == pytest.approx(0.5)
    assert rec["tau_1"].values[0] == pytest.approx(1.1)
    assert rec.joint_names == arm.coordinate_names


def test_other_columns_are_kept_and_may_have_holes(tmp_path):
    body = [
        line + ("," if i == 4 else ",2.5") + ",auto" for i, line in enumerate(lines())
    ]
    rec = read_recording(standard(tmp_path, body, HEADER + ",volts,mode"))
    assert rec["volts"].values[0] == 2.5
    assert np.isnan(rec["volts"].values[4])


def test_columns_may_be_named_by_the_user(tmp_path):
    path = standard(tmp_path, lines(), "time,q_1,q_2,tau_1,motor")
    rec = read_recording(path, columns={"tau_2": "motor"})
    np.testing.assert_allclose(rec["tau_2"].values, rows()[:, 4])
    with pytest.raises(RecordingError, match='has no column "gone" for tau_2'):
        read_recording(path, columns={"tau_2": "gone"})


BAD_ROWS = {
    "truncated": ("0.5,0.1", "line 7: 2 of 5 values; the row is truncated"),
    "too long": ("0.5,0.1,0.1,0.1,0.1,9", "line 7: 6 of 5 values; there are too many"),
    "text": ("0.5,0.1,oops,0.1,0.1", "line 7: column \"q_2\": 'oops' is not a number"),
    "empty": ("0.5,0.1,0.1,,0.1", 'line 7: column "tau_1": the cell is empty'),
    "nan": ("0.5,0.1,0.1,nan,0.1", 'line 7: column "tau_1": nan is not finite'),
    "inf": ("0.5,0.1,0.1,0.1,-inf", 'line 7: column "tau_2": -inf is not finite'),
    "not UTF-8": ("0.5,0.1,\udcff,0.1,0.1", 'line 7: column "q_2"'),
}


@pytest.mark.parametrize("kind", BAD_ROWS)
@pytest.mark.parametrize("piece", [80, 1 << 20])
def test_bad_rows_are_named_or_skipped_and_counted(tmp_path, monkeypatch, kind, piece):
    monkeypatch.setattr(csv, "CHUNK", piece)
    row, message = BAD_ROWS[kind]
    body = lines()
    body[5] = row
    path = tmp_path / "log.csv"
    text = "\n".join([HEADER, *body])
    path.write_bytes(text.encode("utf-8", "surrogateescape"))
    with pytest.raises(RecordingError) as error:
        read_recording(path)
    assert message in str(error.value)
    assert str(path) in str(error.value)
    assert "--skip-bad-rows" in str(error.value)
    rec = read_recording(path, skip_bad_rows=True)
    assert rec.skipped_rows == 1
    np.testing.assert_allclose(rec["q_1"].values, np.delete(rows()[:, 1], 5))


def test_pieces_join_without_a_seam(tmp_path, monkeypatch):
    values = np.random.default_rng(0).normal(size=(500, 5))
    values[:, 0] = np.arange(500)
    path = standard(tmp_path, lines(values))
    whole = read_recording(path)
    shares = []
    monkeypatch.setattr(csv, "CHUNK", 777)
    cut = read_recording(path, progress=lambda what, share: shares.append(share))
    for name in whole.channels:
        np.testing.assert_array_equal(whole[name].values, cut[name].values)
    assert shares == sorted(shares)
    assert shares[-1] == pytest.approx(1.0)


def test_time_running_backwards(tmp_path):
    values = rows()
    values[8, 0] = 0.05
    path = standard(tmp_path, lines(values))
    with pytest.raises(RecordingError, match=r"log.csv, row 9: time runs backwards"):
        read_recording(path)
    rec = read_recording(path, skip_bad_rows=True)
    assert (rec.skipped_rows, rec["q_1"].time.size) == (1, 19)


def test_an_endless_line_is_refused_without_eating_memory(tmp_path):
    path = tmp_path / "log.csv"
    with path.open("wb") as file:
        file.write((HEADER + "\n" + lines()[0] + "\n").encode() + b"1" * 9000)
        file.seek(2 << 30)  # sparse: two gigabytes without a line end
        file.write(b"1")
    tracemalloc.start()
    with pytest.raises(RecordingError, match=r"line 3: longer than 1 MiB"):
        read_recording(path)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 64 << 20
    only = tmp_path / "one.csv"
    only.write_bytes(b"1" * (3 << 20))
    with pytest.raises(RecordingError, match=r"line 1: longer than 1 MiB"):
        read_recording(only)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "is empty"),
        ("# only\n# comments\n", "holds no rows"),
        (HEADER + "\n", "no row of numbers"),
        ("a,b\nc,d\ne,f\n", "no row of numbers"),
        ("time,q_1\n0,1,2\n", "names 2 columns, but line 2 has 3"),
        ("time,q_1,q_1\n0,1,2\n", "two columns called 'q_1'"),
        ("time,q_1\nx,y\n0,1\n", "neither numbers nor units"),
        ("q_1,tau_1\n0,1\n", 'has no column "time"'),
        ("0,1\n0,1\n", "no column that is understood"),
        ("time,q_1 [furlong]\n0,1\n", "unit 'furlong' is not known"),
        ("\0\0\0\0binary\n", "is not a text file"),
    ],
)
def test_logs_that_make_no_sense(tmp_path, text, message):
    with pytest.raises(RecordingError) as error:
        read_recording(log(tmp_path, text))
    assert message in str(error.value)
    assert "log.csv" in str(error.value)


def test_files_that_are_not_there_or_not_logs(tmp_path):
    with pytest.raises(RecordingError, match="does not exist"):
        read_recording(tmp_path / "gone.csv")
    with pytest.raises(RecordingError, match=r"ending '.docx' is not known"):
        read_recording(log(tmp_path, "x", "log.docx"))
    with pytest.raises(RecordingError, match="is a folder, but no bag"):
        read_recording(tmp_path)
    with pytest.raises(RecordingError, match="not a readable ROS bag"):
        read_recording(log(tmp_path, "x", "run.bag"))
