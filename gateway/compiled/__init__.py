"""Whether modules run compiled, and compiled loops that have a pure version elsewhere.

Scanners, and what they read and write, are modules of Python that Cython compiles by the types in a
`.pxd` beside each: one source for both. They are built where a C compiler is, and an installation
without one is complete.
"""

from gateway._pure import WHY_PURE as WHY_PURE

COMPILED = not WHY_PURE
IMPLEMENTATION = "compiled" if COMPILED else "pure"
