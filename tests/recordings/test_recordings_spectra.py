from __future__ import annotations

import numpy as np
import pytest

from armwise.errors import ArgumentError
from armwise.recordings import noise_spectra
from armwise.recordings.spectra import motion_band


def made(mass=2.5, rate=200.0, rows=400_000):
    """A mass pushed at random; white noise on force, coloured noise on velocity."""
    rng = np.random.default_rng(0)
    frequency = np.fft.rfftfreq(rows, 1 / rate)
    shape = np.where((frequency > 0.05) & (frequency < 60), 1 / (1 + frequency / 3), 0)
    spectrum = shape * (rng.normal(size=shape.size) + 1j * rng.normal(size=shape.size))
    v = np.fft.irfft(spectrum * np.sqrt(rows), rows)
    f = mass * np.fft.irfft(2j * np.pi * frequency * spectrum * np.sqrt(rows), rows)
    slow = np.convolve(rng.normal(size=rows), np.ones(10) / 10, "same")
    return f + rng.normal(0, 20.0, rows), v + slow, mass, rate


def test_noise_of_force_and_velocity_is_told_apart():
    """`atkeson1986` Eq. 5.58–5.67 with H = jωm."""
    force, velocity, mass, rate = made()
    found = noise_spectra(velocity, force, rate, gain=mass, segment=2000)
    band = (found.frequency > 1.0) & (found.frequency < 50.0)
    white = 2 * 20.0**2 / rate
    assert np.median(found.second_noise[band]) == pytest.approx(white, rel=0.15)
    x = np.pi * found.frequency[band] / rate
    coloured = 2 / rate * (np.sin(10 * x) / (10 * np.sin(x))) ** 2
    strong = coloured > 0.1 * coloured.max()
    ratio = found.first_noise[band][strong] / coloured[strong]
    assert np.median(ratio) == pytest.approx(1.0, abs=0.15)


def test_signals_without_noise_have_none():
    rng = np.random.default_rng(1)
    a = rng.normal(size=20_000)
    found = noise_spectra(a, 3.0 * a, 100.0, gain=3.0, derivatives=0)
    assert found.first_noise.max() < 1e-12
    np.testing.assert_allclose(found.coherence, 1.0)
    with pytest.raises(ArgumentError, match="one length"):
        noise_spectra(a, a[:-1], 100.0)


def test_wrong_mass_shows_as_noise_that_is_not_there():
    force, velocity, mass, rate = made()
    right = noise_spectra(velocity, force, rate, gain=mass)
    wrong = noise_spectra(velocity, force, rate, gain=0.5 * mass)
    low = right.frequency < 10.0
    assert wrong.second_noise[low].sum() > 2.0 * right.second_noise[low].sum()


def test_the_band_lies_between_motion_and_noise():
    rng = np.random.default_rng(0)
    time = np.arange(20_000) / 1000.0
    for noise, most in ((1e-6, 60.0), (1e-4, 20.0)):
        q = np.sin(2 * np.pi * 0.8 * time) + 0.1 * np.sin(2 * np.pi * 1.5 * time)
        band = motion_band((q + rng.normal(0, noise, q.size))[None], 1000.0)
        assert 4.0 <= band.least <= band.most < most
