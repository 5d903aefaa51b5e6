#include "callgraph_same.h"

__attribute__((noinline, noipa)) static int compare(int x) { return x * 5; }
int main(int argc, char **argv) { return compare(argc) + second(argc); }
