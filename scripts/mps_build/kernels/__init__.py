"""The Metal kernels of a wheel, executed on this machine.

    read → code (bitcode to machine code) → machine (launches, guarded memory) → execution → report

Code and machine run in closed processes; a worker that never holds a wheel's code compares and decides (execution/,
docs/inspect/kernels_threats.md).

A *family* is a folder of families/: what is known of kernels that belong together, older forms beside newer ones.

- family.yaml, `contracts`: how each form is launched. A contract is matched by the kernel's own signature: the names of
  its buffers in order (`arguments`), optionally its built-in arguments (`builtins`) and the types of single arguments
  (`types`), and the pattern of its name (`name`, families/shared/contracts.compile_pattern). No kernel has two.
- __init__.py: *binders*, pure generators `(Kernel, Case) -> Iterator[Program]`, named by the contracts. Everything they
  need is in the two: `kernel.pack("params", {...})` fills a struct by the field names of this kernel's own metadata,
  `kernel.dtype("input")` gives an element type, `kernel.parts` the groups of the name's pattern, `case.values` seeded
  inputs, `case.companion(name)` another kernel of the library (the contract's `companions` name it beforehand).
- family.yaml, `references`: what is right, as an expression of torch or a function of references.py, which runs where
  torch is: in float64 beside the CPU's own type, exact for integers and bools.
- family.yaml, `large`: what torch's host code does with large tensors (families/shared/large.py).

A *program* (program/launch.py) is launches over Buffers and what must hold afterwards: `Same` (bits equal to the dense
form), `Known` (exact bytes), `Reference` (of the family's references).

Every program runs at least two times: forward with the buffers' ends at a protected page, and again under the checks of
machine/checks.py: with their beginnings at one, other poison in outputs and threadgroup memory, other threadgroups
where threads are `free`. Kernels whose threads work together run two times more, and all their loads and stores are
watched for races.
"""
