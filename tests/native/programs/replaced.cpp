// A program with its own operator new: it is the one that is called, for arrays too.
#include <cstdio>
#include <cstdlib>
#include <new>
#include <string>

static int calls;

void *operator new(std::size_t size) {
  calls++;
  return std::malloc(size + 8);
}

void operator delete(void *memory) noexcept {
  calls += 1000;
  std::free(memory);
}

void operator delete(void *memory, std::size_t) noexcept { operator delete(memory); }

int main() {
  delete new int;
  delete[] new int[4];
  delete new std::string(100, 'x');
  std::printf("%d\n", calls);
}
