"""Runs: a tool for what is left when a program ends.

How does a training survive a crash, and go on as if nothing had happened?

    saving        a file is written whole or not at all
    checkpoints   the model, the optimizer and the random numbers, in one file
    memory        what an allocation costs, and how to pay it once
    sweeps        one measurement, many settings, on one processor or on many computers
"""
