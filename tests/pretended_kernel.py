"""What a kernel runs first if PYTHONSTARTUP names this file: from then on it has a GPU, which is pretended.

`pytest --nbval --pretend cuda` starts its kernels so.
"""

import os

import pretended_device

from minimind_edu.measure import machine

machine.SIDE["gpu"] = machine.SIDE["cpu"]  # what keeps a GPU busy would take a CPU minutes
pretended_device.from_now_on(os.environ["PRETENDED_DEVICE"])
del machine, os, pretended_device
