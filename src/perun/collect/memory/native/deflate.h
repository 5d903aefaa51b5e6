/* Compression into one raw deflate stream (RFC 1951), without any library and in fixed memory. zlib can read the
 * recording, but need not be loaded into the recorded program. */
#ifndef PERUN_MEMORY_DEFLATE_H
#define PERUN_MEMORY_DEFLATE_H

#include <stddef.h>
#include <stdint.h>

#define DEFLATE_HASH_BITS 13
#define DEFLATE_BLOCK 32768 /* most bytes of one block: also the most tokens */

/* The state of one stream, and scratch memory. Must be zeroed once; may be reused. A process can have one at a time,
 * because more scratch memory is static: the stacks of threads may be small. */
struct deflate {
  uint8_t *out;
  uint8_t *out_end;
  uint64_t bits;
  unsigned bit_count; /* < 32 between two calls */
  uint32_t head[1 << DEFLATE_HASH_BITS];
  uint16_t back[32768]; /* distance from each position to the previous one with the same hash; 0 for none */
  uint32_t tokens[DEFLATE_BLOCK];
  uint32_t costs[DEFLATE_BLOCK + 1];
};

/* Most bytes that `size` bytes in `blocks` calls of deflate_add can take. */
size_t deflate_bound(size_t size, size_t blocks);

/* Start a stream that is written to `out`, which has room for `deflate_bound` bytes. */
void deflate_start(struct deflate *, uint8_t *out, size_t room);

/* Compress `data[start..end)` in blocks of its own; matches may reach back to `data[0]`. The same `data` must be
 * given for the whole stream, continuing where the call before ended. */
void deflate_add(struct deflate *, const uint8_t *data, size_t start, size_t end);

/* End the stream; returns the position after its last byte. */
uint8_t *deflate_end(struct deflate *);

/* CRC-32 as zlib's; `crc` is that of the bytes before, 0 at first. */
uint32_t crc32_of(uint32_t crc, const uint8_t *data, size_t size);

#endif
