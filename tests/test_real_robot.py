"""`examples/real/uacdpr.py` on poses made here."""

import sys
from pathlib import Path

import numpy as np
import pytest

EXAMPLES = Path(__file__).parents[1] / "examples" / "real"


@pytest.fixture
def uacdpr(monkeypatch):
    monkeypatch.syspath_prepend(EXAMPLES)
    import uacdpr

    return uacdpr


def test_the_axis_that_made_the_lengths_is_found(uacdpr, tmp_path):
    rng = np.random.default_rng(1)
    pose = 0.1 * rng.normal(size=(50, 6)) + [0.0, 0.0, 0.6, 0.0, 0.0, 0.0]
    b = uacdpr.points(pose, uacdpr.attachments(0.280))
    np.savez(
        tmp_path / "free_motion_25s.npz",
        vicon_pose_mm_rad=pose * [1e3, 1e3, 1e3, 1, 1, 1],
        vicon_index=np.arange(50),
        swivel_rel=uacdpr.angles(uacdpr.FREE, uacdpr.OUT, b) - 0.3,
    )
    still = uacdpr.points(pose[:1], uacdpr.attachments(0.266))
    measured = np.asarray(uacdpr.lengths(uacdpr.STILL, uacdpr.OUT, still))
    np.savez(
        tmp_path / "static_selfcalibration_27.npz",
        zeta_0_real=pose[0],
        cable_length_meas=measured.T,
    )
    found = uacdpr.main(str(tmp_path))
    np.testing.assert_allclose(found["x, outwards"]["off"], 0.0, atol=1e-12)
    np.testing.assert_allclose(found["x, outwards"]["alike"], 1.0, atol=1e-12)
    for name in ("vertical, from below", "vertical, from above", "x, inwards"):
        assert np.abs(found[name]["off"]).max() > 1e-3


def test_without_data_it_says_where_they_are(uacdpr, tmp_path):
    assert str(EXAMPLES) in sys.path
    with pytest.raises(SystemExit, match="UACDPR_SelfCalibration"):
        uacdpr.main(str(tmp_path))
