"""`python -m examples.shop.demo`, from the root of the repository."""

from __future__ import annotations

import sys

from examples.shop.demo.story import main

sys.exit(main())
