"""Filters a lock file on its way through: leaves out torch and the packages that only its GPU build needs."""

import re
import sys

_GPU = re.compile(r"^(torch|triton|nvidia-[a-z0-9-]+|cuda-[a-z0-9-]+)==")

keep = True
for line in sys.stdin:
    if not line.startswith((" ", "#")):
        keep = _GPU.match(line) is None
    if keep:
        sys.stdout.write(line)
