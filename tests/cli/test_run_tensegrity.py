"""`cordax run tensegrity`."""

from cordax.cli import main


def test_strut(tmp_path, capsys):
    code = main(
        ["run", "tensegrity", "--duration", "0.04", "--save-every", "10", "--film", "none",
         "--amplitude", "0.0", "--output", str(tmp_path)]
    )  # fmt: skip
    printed = capsys.readouterr().out
    assert code == 0
    assert "11 bodies, 9 constraints" in printed
    # upright with equal strains is an equilibrium, which the torques must hold
    assert float(printed.split("at most ")[1].split()[0]) < 1e-9
    names = {path.name for path in tmp_path.iterdir()}
    assert names == {"tensegrity.png", "tensegrity_motion.png", "tensegrity.npz"}
