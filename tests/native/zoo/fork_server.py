# Strange: processes of a pool are forked by a server, which has begun anew with another interpreter.
import multiprocessing

METHOD = "forkserver"


def build(count):
    with open("fork_server.txt", "a", buffering=1) as file:
        for number in range(count):
            file.write(f"{number}\n")
    return list(range(count * 1000))[count]


if __name__ == "__main__":
    with multiprocessing.get_context(METHOD).Pool(2) as pool:
        print(sum(pool.map(build, [5, 5])), build(10))
