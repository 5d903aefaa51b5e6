// What programs do with memory: `allocations KIND COUNT`. Prints how much memory it took at most, in kB.
//
// pairs       memory of many sizes is allocated and soon released, some functions deep
// deep        the same, 30 functions deep
// containers  maps, lists and strings grow and are destroyed
// held        much is held, and released in another order
// threads     four threads allocate at once, and release what others have allocated

#include <atomic>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <list>
#include <map>
#include <string>
#include <thread>
#include <vector>

#define KEPT __attribute__((noinline)) static

namespace {

std::uint64_t state = 1;

// Without a period that a compressor could find (splitmix64).
unsigned next(std::uint64_t &seed) {
  std::uint64_t value = seed += 0x9e3779b97f4a7c15u;
  value = (value ^ value >> 30) * 0xbf58476d1ce4e5b9u;
  value = (value ^ value >> 27) * 0x94d049bb133111ebu;
  return static_cast<unsigned>(value >> 33);
}

void *volatile sink;

KEPT void *inner(std::size_t size) {
  sink = std::malloc(size);
  return sink;
}

KEPT void *middle(std::size_t size) {
  sink = inner(size);
  return sink;
}

KEPT void pairs(int count) {
  for (int i = 0; i < count; i++) std::free(middle(16 + next(state) % 512));
}

KEPT int deep(int depth, int count) {
  if (depth == 0) {
    pairs(count);
    return 0;
  }
  int result = deep(depth - 1, count) + 1;
  sink = &result;
  return result;
}

KEPT void containers(int count) {
  for (int round = 0; round < 10; round++) {
    std::map<int, std::string> names;
    std::list<std::vector<int>> rows;
    for (int i = 0; i < count / 40; i++) {
      names[static_cast<int>(next(state))] = std::string(16 + next(state) % 60, 'x');
      rows.emplace_back(1 + next(state) % 20, i);
    }
  }
}

KEPT void held(int count) {
  std::vector<void *> blocks(100000);
  for (int i = 0; i < count; i++) {
    void *&block = blocks[next(state) % blocks.size()];
    std::free(block);
    block = middle(16 + next(state) % 512);
  }
  for (void *block : blocks) std::free(block);
}

std::atomic<void *> slots[256];

KEPT void exchange(std::uint64_t seed, int count) {
  for (int i = 0; i < count; i++) std::free(slots[next(seed) % 256].exchange(std::malloc(16 + next(seed) % 512)));
}

KEPT void threads(int count) {
  std::vector<std::thread> all;
  for (unsigned i = 0; i < 4; i++) all.emplace_back(exchange, i + 1, count / 4);
  for (auto &thread : all) thread.join();
  for (auto &slot : slots) std::free(slot.exchange(nullptr));
}

void print_peak() {
  char line[256];
  std::FILE *status = std::fopen("/proc/self/status", "r");
  while (status && std::fgets(line, sizeof line, status))
    if (std::strncmp(line, "VmHWM:", 6) == 0) std::printf("%ld\n", std::atol(line + 6));
  if (status) std::fclose(status);
}

}  // namespace

int main(int argc, char **argv) {
  if (argc != 3) return 2;
  int count = std::atoi(argv[2]);
  std::string kind = argv[1];
  if (kind == "pairs") pairs(count);
  else if (kind == "deep") deep(30, count);
  else if (kind == "containers") containers(count);
  else if (kind == "held") held(count);
  else if (kind == "threads") threads(count);
  else return 2;
  print_peak();
}
