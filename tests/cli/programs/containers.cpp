#include <map>
#include <string>
#include <thread>
#include <vector>
static void worker(int count) {
    std::map<int, std::string> known;
    for (int i = 0; i < count; i++) known[i] = std::string(100, 'x');
    try { throw known.at(0); } catch (std::string &) { }
}
int main() {
    std::vector<std::thread> threads;
    for (int i = 0; i < 3; i++) threads.emplace_back(worker, 100);
    for (auto &one : threads) one.join();
    auto *leaked = new std::vector<long>(1000);
    return leaked->size() != 1000;
}
