"""9 · Runs: what is left when a program ends.

How does a training survive a crash, and go on as if nothing had happened?

    9.1  saving        a file is written whole or not at all
    9.2  checkpoints   the model, the optimizer and the random numbers, in one file
    9.3  memory        what an allocation costs, and how to pay it once
"""
