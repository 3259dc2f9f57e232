"""4 · Checks: believe no derivative that you have not tested.

How do you find out that a derivation is wrong? Not by reading it again, but by comparing it with
something that knows nothing of it.

    4.1  differences   a numerical derivative to twelve digits, and how far to believe it
    4.2  claims        what exactly is compared, of first and of second order
    4.3  checking      gradcheck: a million derivatives along one random direction

And when it is wrong, what is the mistake? What follows is needed only when a check fails:

    4.4  culprit       which rule of a composed function it is
    4.5  mistakes      a lost sign, a factor, g ignored, the gradient of another input
    4.6  places        right numbers in the wrong places: transposed, or along another axis
    4.7  shares        several uses, or several copies, of which only some are counted
    4.8  cuts          a record that was left, in f or in a VJP
    4.9  doubts        kinks, rounding, float32: where the check itself cannot be trusted
    4.10 explaining    the message that says all this
"""
