"""Rates clips by PESQ in the narrow band: MOS-LQO of ITU-T P.862.1, from 1 to 4.6.

Reads pairs until there are no more: a line with the number of samples, then those of the original and of what became of it,
16 bits each at 8 kHz, the low byte first. Answers each pair with a line.
"""

import sys

import numpy
from pesq import pesq


def samples(count):
    return numpy.frombuffer(sys.stdin.buffer.read(2 * count), dtype="<i2")


while line := sys.stdin.buffer.readline():
    count = int(line)
    print(pesq(8000, samples(count), samples(count), "nb"), flush=True)
