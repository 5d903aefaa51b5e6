/* What the programs of the zoo share: functions that are really called, and memory that is really asked for. */
#ifndef ZOO_H
#define ZOO_H
#include <stdio.h>
#include <stdlib.h>
#define CALLED __attribute__((noinline))
#define TIMES 20

static volatile int kept;

/* Allocates and releases a block; the recorder of allocations counts these calls. */
static CALLED void keep(int size) {
  volatile char *block = (volatile char *)malloc(size);
  block[0] = 1;
  kept += block[0];
  free((void *)block);
}
#endif
