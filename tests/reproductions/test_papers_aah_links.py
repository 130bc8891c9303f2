"""`aah1986` Tables 4 and 5 and Figure 8: golden numbers."""

from __future__ import annotations

import numpy as np
import pytest

from papers import aah_links


@pytest.fixture(scope="module")
def rows() -> list[dict]:
    return aah_links.rows()


def test_the_papers_own_slips_and_the_eigenvalue(rows):
    verdicts = {r["quantity"]: r["verdict"] for r in rows}
    assert {q for q, v in verdicts.items() if v == "paper's slip"} == {
        "SP2 = Ixx3 − Iyy3, from Table 3 (CAD)",
        "SP4 = Izz1 + Ixx2 + Ixx3 + m3·l2², from Table 4",
    }
    assert {q for q, v in verdicts.items() if v == "differs"} == {
        "smallest non-zero eigenvalue of KᵀK"
    }


def test_the_closed_form_of_appendix_i_is_the_regressor():
    printed, ours = aah_links.closed_form()
    assert len(printed) == 28
    for key, term in printed.items():
        np.testing.assert_allclose(ours[key], term, atol=1e-12, err_msg=str(key))


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
