# Strange: it is a Python program, of which one module is compiled.
import sys

sys.path.insert(0, ".")
import extension


def build(count):
    return [extension.square(n) for n in range(count)]


print(sum(build(5000)), extension.keep(1000))
