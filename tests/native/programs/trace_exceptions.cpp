/* Exceptions that go through frames, with and without something to destroy. */
#include <cstdlib>
#include <stdexcept>
#include <string>

int thrower(int value) {
  if (value % 2) throw std::runtime_error("odd");
  return value;
}

int middle(int value) { return thrower(value) + 1; }

int with_destructor(int value) {
  std::string text(100, 'x');
  return middle(value) + static_cast<int>(text.size());
}

int catcher(int value) {
  try {
    return with_destructor(value);
  } catch (const std::runtime_error &) {
    return -1;
  }
}

int main(int count, char **arguments) {
  int most = count > 1 ? std::atoi(arguments[1]) : 100, failed = 0;
  for (int value = 0; value < most; value++) failed += catcher(value) < 0;
  return failed == most / 2 ? 0 : 1;
}
