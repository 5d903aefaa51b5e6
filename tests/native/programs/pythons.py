"""Functions that use known shares of the CPU time, called in the way that the first argument says."""

import sys

ROUNDS = 60
WORK = """
def share{0}(count):
    total = 0
    for number in range(count):
        total += number * number % 7
    return total

def calls{0}(count):
    return share{0}(count)
"""
exec(compile("".join(WORK.format(k) for k in range(10)), __file__, "exec"))
CALLS = [globals()[f"calls{k}"] for k in range(10)]


def turn():
    for k in range(10):
        CALLS[k](2000 * (k + 1))


def rounds(count=ROUNDS):
    for _ in range(count):
        turn()


def deep(depth):
    return deep(depth - 1) if depth else rounds(ROUNDS)


def generated(count):
    for _ in range(count):
        yield turn()


def delegated(count):
    yield from generated(count)


async def waited(count):
    import asyncio

    for _ in range(count):
        turn()
        await asyncio.sleep(0)


async def gathered():
    import asyncio

    await asyncio.gather(waited(ROUNDS // 2), waited(ROUNDS // 2))


def compared(one, other):
    turn()
    return one[0] - other[0]


def called_back():
    import ctypes

    numbers = (ctypes.c_int * 24)(*range(24, 0, -1))
    form = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.POINTER(ctypes.c_int), ctypes.POINTER(ctypes.c_int))
    ctypes.CDLL(None).qsort(numbers, 24, 4, form(compared))


def packed():
    import zlib

    for _ in range(ROUNDS):
        turn()
        zlib.compress(bytes(range(256)) * 300, 9)


class Holder:
    def method(self):
        rounds()


def main(mode):
    if mode == "threads":
        import threading

        threads = [threading.Thread(target=rounds, args=(ROUNDS // 3,)) for _ in range(3)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    elif mode == "fork":
        import os

        for _ in range(2):
            child = os.fork()
            if not child:
                rounds(ROUNDS // 3)
                os._exit(0)
            os.waitpid(child, 0)
        rounds(ROUNDS // 3)
    elif mode == "thread-fork":
        import os
        import threading

        def forked():
            child = os.fork()
            if not child:
                rounds()
                os._exit(0)
            os.waitpid(child, 0)

        thread = threading.Thread(target=forked)
        thread.start()
        thread.join()
    elif mode == "spawn":
        import multiprocessing

        with multiprocessing.get_context("spawn").Pool(2) as pool:
            pool.map(rounds, [ROUNDS // 2] * 2, chunksize=1)
    elif mode == "deep":
        deep(200)
    elif mode == "generators":
        list(delegated(ROUNDS))
    elif mode == "asyncio":
        import asyncio

        asyncio.run(gathered())
    elif mode == "back":
        called_back()
    elif mode == "packed":
        packed()
    elif mode == "method":
        Holder().method()
    elif mode == "forever":
        while True:
            turn()
    else:
        rounds()
    print("done", mode)


if __name__ == "__main__":
    main(sys.argv[1])
