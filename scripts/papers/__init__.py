"""The tables and figures that scripts/reproduce.py runs, one file per paper."""

from . import asyncsparse, esmm, rsh

TARGETS = {**rsh.TARGETS, **esmm.TARGETS, **asyncsparse.TARGETS}
