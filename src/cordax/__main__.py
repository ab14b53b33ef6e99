"""`python -m cordax` is `cordax`."""

import sys

from .cli import main

sys.exit(main())
