// Containers, every form of new and delete, exceptions and threads; with an argument, none that memory is short.
#include <cstdio>
#include <list>
#include <map>
#include <memory>
#include <new>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

struct alignas(64) Wide {
  char bytes[192];
};

struct Counted {
  int value = 3;
  ~Counted() { value = 0; }
};

template <class Type> static Type *kept(Type *made) { // else the compiler may leave out new and its delete
  Type *volatile memory = made;
  return memory;
}

static void forms() {
  delete kept(new int(5));
  delete[] kept(new Counted[10]);
  delete kept(new Wide);
  delete[] kept(new Wide[3]);
  operator delete(operator new(21, std::nothrow), std::nothrow);
  operator delete[](operator new[](22, std::nothrow), std::nothrow);
  operator delete(operator new(23), std::size_t(23));
  operator delete(operator new(64, std::align_val_t(32), std::nothrow), std::align_val_t(32), std::nothrow);
  operator delete[](operator new[](64, std::align_val_t(32)), std::align_val_t(32));
  operator delete(operator new(0));
}

static long containers(int size) {
  std::map<int, std::string> names;
  std::list<std::vector<long>> rows;
  for (int i = 0; i < size; i++) {
    names[i * 7919 % size] = std::string(20 + i % 50, 'x');
    rows.emplace_back(i % 13, i);
  }
  long sum = 0;
  for (auto &entry : names) sum += entry.second.size();
  for (auto &row : rows) sum += row.size();
  return sum;
}

static int thrown(int depth) {
  auto local = std::make_unique<std::string>(100, 'y');
  if (depth == 0) throw std::runtime_error("a message that is too long to be kept inside of the string");
  try {
    return thrown(depth - 1) + 1;
  } catch (const std::invalid_argument &) {
    return -1;
  }
}

static volatile std::size_t too_much = std::size_t(-1) / 4;

int main(int argc, char **) {
  forms();
  long sum = containers(1000);
  for (int i = 0; i < 100; i++) {
    try {
      thrown(i % 10);
    } catch (const std::runtime_error &error) {
      sum += error.what()[0] == 'a';
    }
  }
  if (argc == 1) {
    try {
      sum += ::operator new(too_much) == nullptr;
    } catch (const std::bad_alloc &) {
      sum++;
    }
    if (!::operator new[](too_much, std::nothrow)) sum++;
  }
  std::vector<std::thread> threads;
  long sums[4] = {};
  for (int i = 0; i < 4; i++) threads.emplace_back([&sums, i] { sums[i] = containers(500 + i); });
  for (auto &thread : threads) thread.join();
  for (long one : sums) sum += one;
  std::printf("%ld\n", sum);
}
