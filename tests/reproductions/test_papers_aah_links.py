"""`aah1986` Tables 4 and 5 and Figure 8: golden numbers."""

from __future__ import annotations

import numpy as np
import pytest

from papers import aah_links


@pytest.fixture(scope="module")
def rows() -> list[dict]:
    return aah_links.rows()


def test_only_the_papers_own_slips_differ(rows):
    differing = {r["quantity"] for r in rows if r["verdict"] == "differs"}
    assert differing == {
        "SP2 = Ixx3 − Iyy3, CAD",
        "SP4 = Izz1 + Ixx2 + Ixx3 + m3·l2², identified",
    }
    assert all(r["note"] for r in rows if r["verdict"] == "differs")


def test_smallest_eigenvalue_on_the_planned_motion():
    K = aah_links.nominal_regressor()
    assert K.shape == (1800, 30)
    eigenvalues = np.linalg.eigvalsh(K.T @ K)
    assert eigenvalues[15] == pytest.approx(2935, abs=1)  # page 3.3: 3395 as measured
    assert eigenvalues[14] < 1e-6


def test_combinations_have_the_variance_of_their_sum():
    found = aah_links.recover()
    value, std, true = found.combination({"link_2.mx": 2.0})
    single = found.combination({"link_2.mx": 1.0})
    assert (value, std, true) == pytest.approx(tuple(2.0 * x for x in single))
    assert true == pytest.approx(2 * -0.1591)


def test_errors_scatter_as_their_standard_errors_say():
    z = np.concatenate(
        [aah_links.recover(seed).normalised_errors() for seed in range(4)]
    )
    assert 0.5 < np.sqrt(np.mean(z**2)) < 1.5
    assert np.abs(z).max() < 4.5


def test_the_estimated_model_beats_the_cad_model():
    estimated, cad = aah_links.prediction_errors(aah_links.recover())
    assert np.all(estimated < 0.2 * cad)
