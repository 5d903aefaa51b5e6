/* Compress the input in pieces of as many bytes as the argument says; writes its CRC-32 first. */
#include "deflate.h"

#include <stdio.h>
#include <stdlib.h>

int main(int argc, char **argv) {
  static struct deflate deflate;
  static uint8_t data[1 << 20];
  size_t size = fread(data, 1, sizeof data, stdin), piece = argc > 1 ? strtoul(argv[1], NULL, 10) : 1000;
  size_t room = deflate_bound(size, size / piece + 1);
  uint8_t *out = malloc(room);
  if (!out) return 1;
  deflate_start(&deflate, out, room);
  for (size_t at = 0; at < size; at += piece) deflate_add(&deflate, data, at, at + piece < size ? at + piece : size);
  uint8_t *end = deflate_end(&deflate);
  uint32_t checksum = crc32_of(crc32_of(0, data, size / 2), data + size / 2, size - size / 2);
  fwrite(&checksum, 4, 1, stdout);
  fwrite(out, 1, (size_t)(end - out), stdout);
  free(out);
  return 0;
}
