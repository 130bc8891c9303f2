"""Sums of chunks add up, and come back as they were or not at all."""

from __future__ import annotations

import io
import stat
from dataclasses import replace

import numpy as np
import pytest

import armwise as aw
from armwise.errors import FileError
from armwise.fleets.hierarchy import coarsened, fit, total
from armwise.fleets.job import ChunkSums, join, read_sums, sum_samples
from armwise.identification import Columns
from armwise.identification.problem import pose_problem
from armwise.jobs import ResultFolder
from armwise.regression.accumulator import accumulate
from tests.fleets.conftest import motion_and_torque


@pytest.fixture(scope="module")
def samples(arm):
    table = motion_and_torque(arm, 1, 2500)
    q, tau = (
        np.stack([table[f"{name}_{j + 1}"] for j in range(arm.dof)], axis=1)
        for name in ("q", "tau")
    )
    recording = aw.Recording.from_arrays(table["time"], q=q, tau=tau)
    return aw.prepare(recording, 10.0, arm=arm)


def part_of(arm, samples, stretches=7):
    return sum_samples(Columns(arm), samples, stretches)


def test_stretches_add_up_to_the_accumulator_of_all(arm, samples):
    part = part_of(arm, samples)
    whole = total(part)
    direct = accumulate(Columns(arm), samples)
    assert part.samples.sum() == direct.samples == len(samples)
    for one, other in zip(whole.factors, direct.factors, strict=True):
        np.testing.assert_allclose(one[0].T @ one[0], other.T @ other, rtol=1e-10)
    trust = np.vstack([block.trust for block in Columns(arm).blocks([samples])])
    np.testing.assert_allclose(part.trusted.sum(axis=0), trust.sum(axis=0))
    np.testing.assert_allclose(
        part.torque.sum(axis=0), (trust * samples.tau).sum(axis=0)
    )


def test_long_stretches_are_summed_up_as_well(arm):
    rng = np.random.default_rng(0)
    q, qd, qdd, tau = rng.normal(size=(4, 13_000, arm.dof))
    time = 0.01 * np.arange(13_000)
    samples = aw.Samples(time=time, q=q, qd=qd, qdd=qdd, tau=tau)
    part = sum_samples(Columns(arm), samples, 3)
    direct = accumulate(Columns(arm), samples)
    assert part.trusted.sum(axis=0).tolist() == [13_000.0] * arm.dof
    for one, other in zip(total(part).factors, direct.factors, strict=True):
        np.testing.assert_allclose(
            one[0].T @ one[0], other.T @ other, rtol=1e-9, atol=1e-8
        )


def test_a_fit_of_sums_is_the_fit_of_samples(arm, samples):
    # A fleet's delay is one for all robots and taken as known.
    samples = replace(samples, preparation=replace(samples.preparation, lag_std=None))
    found = fit(pose_problem(Columns(arm), ()), part_of(arm, samples, 40)).estimate
    # Nor does it doubt torque constants, which single robots are told apart by.
    direct = aw.identify(
        arm, samples, aw.WeightedLeastSquares(), friction="linear", gain_std=0.0
    )
    np.testing.assert_allclose(found.base_values, direct.base_values, rtol=1e-10)
    np.testing.assert_allclose(found.base_std, direct.base_std, rtol=0.3)
    errors = samples.tau - direct.predict(samples)
    trust = np.vstack([block.trust for block in Columns(arm).blocks([samples])])
    kept = [(trust[:, j] > 0, j) for j in range(arm.dof)]
    rmse = [np.sqrt(np.mean(errors[rows, j] ** 2)) for rows, j in kept]
    np.testing.assert_allclose(found.fit.rmse, rmse, rtol=1e-8)
    spread = [np.var(samples.tau[rows, j]) for rows, j in kept]
    np.testing.assert_allclose(found.fit.r2, 1 - np.square(rmse) / spread, rtol=1e-10)


def test_many_stretches_are_merged_without_loss(arm, samples):
    part = part_of(arm, samples, 300)
    few = coarsened(part)
    assert (len(part.samples), len(few.samples)) == (300, 40)
    assert few.samples.sum() == len(samples)
    for one, other in zip(total(few).factors, total(part).factors, strict=True):
        np.testing.assert_allclose(one[0].T @ one[0], other[0].T @ other[0], rtol=1e-9)
    np.testing.assert_allclose(total(few).torque, total(part).torque)


def test_more_stretches_than_samples_are_no_trouble(arm, samples):
    few = samples[:5]
    part = sum_samples(Columns(arm), few, 40)
    assert part.samples.tolist() == [1.0] * 5


def test_a_part_comes_back_bit_by_bit(arm, samples, tmp_path):
    folder = ResultFolder(tmp_path / "parts")
    part = part_of(arm, samples)
    folder.write("key", part.to_bytes())
    back = read_sums(folder, "key")
    assert back.rows == 2500
    for one, other in zip(back.factors, part.factors, strict=True):
        np.testing.assert_array_equal(one, other)
    both = join([part, back])
    assert both.samples.size == 2 * part.samples.size


def test_what_was_changed_or_renamed_is_not_used(arm, samples, tmp_path):
    folder = ResultFolder(tmp_path / "parts")
    folder.write("key", part_of(arm, samples).to_bytes())
    file = tmp_path / "parts" / "key.part"
    sound = file.read_bytes()
    (tmp_path / "parts" / "other.part").write_bytes(sound)
    file.write_bytes(sound[:-3] + b"xyz")
    assert folder.read("key") is None
    assert folder.read("other") is None
    file.write_bytes(sound[:100])
    assert folder.read("key") is None
    assert folder.read("never") is None
    file.write_bytes(sound)
    assert folder.read("key") is not None


def test_pickled_objects_are_never_loaded(tmp_path):
    folder = ResultFolder(tmp_path / "parts")
    archive = io.BytesIO()
    evil = np.array([{"a": 1}], dtype=object)
    np.savez(archive, trusted=evil, torque=np.zeros((1, 0)), rows=np.array(1))
    folder.write("key", archive.getvalue())
    assert folder.read("key") is not None
    assert read_sums(folder, "key") is None
    with pytest.raises(ValueError, match="allow_pickle"):
        ChunkSums.from_bytes(archive.getvalue())


def test_the_folder_is_private(tmp_path):
    (tmp_path / "open").mkdir(mode=0o777)
    ResultFolder(tmp_path / "open")
    assert stat.S_IMODE((tmp_path / "open").stat().st_mode) == 0o700


def test_a_file_or_a_link_is_no_folder(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(FileError):
        ResultFolder(tmp_path / "file")
    (tmp_path / "link").symlink_to(tmp_path)
    with pytest.raises(FileError, match="not a folder of yours"):
        ResultFolder(tmp_path / "link")
