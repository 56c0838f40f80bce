"""The tables and figures that scripts/reproduce.py runs, one file per paper."""

from . import asyncsparse, esmm, hpckernelbench, rsh

PROTOCOL = "hpckernelbench"  # has a table for each variant instead of published values
TARGETS = {**rsh.TARGETS, **esmm.TARGETS, **asyncsparse.TARGETS}
