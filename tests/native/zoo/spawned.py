# Strange: processes of a pool are spawned, so that they begin anew with another interpreter.
import multiprocessing

METHOD = "spawn"


def build(count):
    with open("spawned.txt", "a", buffering=1) as file:
        for number in range(count):
            file.write(f"{number}\n")
    return list(range(count * 1000))[count]


if __name__ == "__main__":
    with multiprocessing.get_context(METHOD).Pool(2) as pool:
        print(sum(pool.map(build, [5, 5])), build(10))
