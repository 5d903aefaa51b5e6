/* Users of std::vector and std::map, and a class with a size of its own. */
#include <cstdlib>
#include <map>
#include <vector>

class Bag {
 public:
  __attribute__((noinline)) void add(int value) { values_.push_back(value); }
  __attribute__((noinline)) bool has(int value) const {
    for (int one : values_)
      if (one == value) return true;
    return false;
  }

 private:
  std::vector<int> values_;
};

__attribute__((noinline)) long total(const std::vector<long> &values) {
  long sum = 0;
  for (long value : values) sum += value;
  return sum;
}

__attribute__((noinline)) bool find(const std::map<int, int> &known, int key) { return known.count(key) != 0; }

int main(int count, char **arguments) {
  int most = count > 1 ? std::atoi(arguments[1]) : 100;
  std::vector<long> values;
  std::map<int, int> known;
  Bag bag;
  long sum = 0;
  for (int value = 0; value < most; value++) {
    sum += total(values) + find(known, value) + bag.has(-1);
    values.push_back(value);
    known[value] = 1;
    bag.add(value);
  }
  return sum > 0 ? 0 : 1;
}
