"""The Metal kernels of a wheel, executed on this machine.

    library → metadata → code (bitcode to machine code) → machine (launches, guarded memory) → examine → verdict

Code and machine run in closed processes, examine in a worker that never holds a wheel's code (execution/,
docs/inspect/kernels_threats.md).

A *contract* (contracts/*.yaml) says how a family of kernels is launched and judged. It is matched by the kernel's own
signature: the names of its buffers in order (`arguments`), optionally its built-in arguments (`builtins`) and the types
of single arguments (`types`), and the pattern of its name (`name`, binding/contracts.compile_pattern). Files are read
in the order of their names, rows in the order of their lines; the first that matches holds.

A *binder* (binding/binders/*.py, named `module.function` by the row) is a pure generator
`(Kernel, Case) -> Iterator[Program]`. Everything it needs is in the two: `kernel.pack("params", {...})` fills a struct
by the field names of this kernel's own metadata, `kernel.dtype("input")` gives an element type, `kernel.parts` the
groups of the name's pattern, `case.values` seeded inputs, `case.companion(name)` another kernel of the library (the
row's `companions` name it beforehand).

A *program* (program.py) is launches over Buffers and what must hold afterwards: `Same` (bits equal to the dense form),
`Known` (exact bytes), `Reference` (a row of references/*.yaml, an expression of torch, or a function of
judge/functions.py; computed in float64 beside the CPU's own type, exact for integers and bools).

Every program runs at least twice: forward with the buffers' ends at a protected page, and backward with their
beginnings at one, other poison in outputs and threadgroup memory, other threadgroups where threads are `free`.
Cooperative kernels run twice more (simdgroups in turn, shuffled), with all loads and stores watched for races.
"""
