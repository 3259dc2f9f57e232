"""Checks: believe no derivative that you have not tested.

How do you find out that a derivation is wrong? Not by reading it again, but by comparing it with
something that knows nothing of it.

    4.1  differences   a numerical derivative to twelve digits, and how far to believe it
    4.2  claims        what exactly is compared, of first and of second order
    4.3  checking      gradcheck: a million derivatives along one random direction

Two tools: `rounding` finds how small a slope a difference can show, and `comparing` compares each
gradient with differences.

And when it is wrong, what is the mistake? Four more tools are needed only when a check fails:

    culprit       which rule of a composed function it is
    mistakes      what is wrong in the rule: a sign, a factor, a transpose, the wrong axis, …
    explaining    the message that says all this
    agreeing      which gradients a wrong rule spoils, and by how much
"""
