"""The engine: the record, and the way back through it.

What lies between the forty lines of chapter 0 and an engine that other programs can rely on?
Chapter 1 is the forward pass, which writes the record; chapter 2 is the backward pass, which reads
it.

    1.1  tensor        an array, and where it came from
    1.2  record        what an operation stores, and how to compute without a record
    1.3  rules         a value and its derivatives become an operation
    1.4  words         operators, methods and NumPy's functions find their operations
    2.1  replay        back through the record, the newest result first
    2.2  autograd      backward and gradients
    2.3  derivatives   grad, vjp, jvp, jacobian, hessian, hvp
    2.4  recomputing   memory for time

Five tools, to be used and not read: `safety` looks for arrays that change and for the first NaN,
`hints` says what to write instead of a word of PyTorch's, `options` checks numbers and dtypes,
`slips` explains errors in a VJP, and `freeing` frees a long record in a loop.
In each file the lesson comes first, up to the line "A first reading may stop here".
"""
