"""`perun fuzz`: the search of :mod:`perun.fuzz`, in a version of the project, with collectors and checks.

`options` say what the user asks for, `place` where the program is and how it is built, `testing` measures
what was found beside its seed, `fuzz` does it all and returns the results.
"""
