"""Names that users reach after `import cordax` alone."""

import subprocess
import sys


def test_packages_are_there_when_asked_for_and_not_before():
    program = (
        "import sys, cordax\n"
        "assert 'matplotlib' not in sys.modules and 'cordax.systems' not in sys.modules\n"
        "cordax.workspace.box_grid, cordax.plot.animate, cordax.systems.Neck, cordax.io.read_csv\n"
        "assert {'plot', 'control', 'reduce', 'sweeps'} <= set(dir(cordax))\n"
        "try:\n    cordax.nothing\n"
        "except AttributeError as error:\n    print(error)\n"
    )
    said = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert "no attribute 'nothing'" in said.stdout, said.stderr
