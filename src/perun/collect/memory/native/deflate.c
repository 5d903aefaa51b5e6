#include "deflate.h"

#include <string.h>

#define MATCH_LEAST 4
#define MATCH_MOST 258
#define WINDOW 32768
#define TOKEN_MATCH 0x80000000u /* a token is a byte, or this, length << 16 and distance - 1 */

enum { LITERALS = 286, DISTANCES = 30, LENGTH_CODES = 19, END_OF_BLOCK = 256 };

/* -- codes of lengths and distances (RFC 1951, 3.2.5) ------------------------------------------------------- */

static const uint16_t length_base[29] = {3,  4,  5,  6,  7,  8,  9,  10, 11,  13,  15,  17,  19,  23, 27,
                                         31, 35, 43, 51, 59, 67, 83, 99, 115, 131, 163, 195, 227, 258};
static const uint8_t length_extra[29] = {0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 2,
                                         2, 3, 3, 3, 3, 4, 4, 4, 4, 5, 5, 5, 5, 0};

static unsigned log2_of(uint32_t value) { return 31u - (unsigned)__builtin_clz(value); }

static unsigned length_code(unsigned length) {
  if (length == MATCH_MOST) return 28;
  unsigned value = length - 3;
  if (value < 8) return value;
  unsigned extra = log2_of(value) - 2;
  return 4 * extra + (value >> extra);
}

static unsigned distance_code(unsigned less_one) {
  if (less_one < 4) return less_one;
  unsigned extra = log2_of(less_one) - 1;
  return 2 * extra + (less_one >> extra);
}

static unsigned distance_extra(unsigned code) { return code < 4 ? 0 : code / 2 - 1; }

static unsigned distance_base(unsigned code) {
  return code < 4 ? code : (2u + (code & 1)) << (code / 2 - 1);
}

/* -- bits --------------------------------------------------------------------------------------------------- */

static void put(struct deflate *to, uint32_t value, unsigned count) {
  to->bits |= (uint64_t)value << to->bit_count;
  to->bit_count += count;
  if (to->bit_count < 32) return;
  for (unsigned byte = 0; byte < 4 && to->out < to->out_end; byte++) *to->out++ = (uint8_t)(to->bits >> 8 * byte);
  to->bits >>= 32;
  to->bit_count -= 32;
}

/* -- Huffman codes ------------------------------------------------------------------------------------------ */

struct code {
  uint16_t bits[LITERALS]; /* reversed, as they are written */
  uint8_t length[LITERALS];
};

/* Lengths of an optimal prefix code by the two-queue method, then limited to `most` bits. */
static void code_lengths(const uint32_t *counts, unsigned symbols, unsigned most, uint8_t *lengths) {
  uint32_t sorted[LITERALS]; /* count << 9 | symbol would overflow: symbols ordered by count */
  uint32_t weight[2 * LITERALS];
  uint16_t parent[2 * LITERALS];
  unsigned used = 0;
  memset(lengths, 0, symbols);
  for (unsigned symbol = 0; symbol < symbols; symbol++)
    if (counts[symbol]) sorted[used++] = counts[symbol] << 9 | symbol;
  if (used == 0) return;
  if (used == 1) {
    lengths[sorted[0] & 511] = 1;
    return;
  }
  for (unsigned gap = used / 2 ? used / 2 : 1; gap; gap /= 2) /* Shell's method: few symbols, no recursion */
    for (unsigned i = gap; i < used; i++) {
      uint32_t value = sorted[i];
      unsigned j = i;
      for (; j >= gap && sorted[j - gap] > value; j -= gap) sorted[j] = sorted[j - gap];
      sorted[j] = value;
    }
  for (unsigned i = 0; i < used; i++) weight[i] = sorted[i] >> 9;
  unsigned leaf = 0, inner = used, nodes = used;
  while (nodes < 2 * used - 1) {
    uint32_t sum = 0;
    for (int side = 0; side < 2; side++) {
      unsigned least = leaf < used && (inner >= nodes || weight[leaf] <= weight[inner]) ? leaf++ : inner++;
      sum += weight[least];
      parent[least] = (uint16_t)nodes;
    }
    weight[nodes++] = sum;
  }
  uint8_t depth[2 * LITERALS];
  unsigned of_length[32] = {0};
  depth[nodes - 1] = 0;
  for (unsigned node = nodes - 1; node-- > 0;) {
    depth[node] = (uint8_t)(depth[parent[node]] + 1);
    if (node < used) of_length[depth[node] < most ? depth[node] : most]++;
  }
  /* Kraft's sum in units of 2^-most; too long codes were cut, so others must give way. */
  uint32_t sum = 0;
  for (unsigned length = 1; length <= most; length++) sum += of_length[length] << (most - length);
  while (sum > 1u << most) {
    unsigned length = most - 1;
    while (!of_length[length]) length--;
    of_length[length]--;
    of_length[length + 1] += 2;
    of_length[most]--;
    sum--;
  }
  unsigned next = 0;
  for (unsigned length = most; length > 0; length--)
    for (unsigned i = of_length[length]; i > 0; i--) lengths[sorted[next++] & 511] = (uint8_t)length;
}

static void code_make(struct code *code, const uint32_t *counts, unsigned symbols, unsigned most) {
  code_lengths(counts, symbols, most, code->length);
  unsigned of_length[16] = {0}, next[16];
  for (unsigned symbol = 0; symbol < symbols; symbol++) of_length[code->length[symbol]]++;
  of_length[0] = 0;
  unsigned first = 0;
  for (unsigned length = 1; length < 16; length++) {
    first = (first + of_length[length - 1]) << 1;
    next[length] = first;
  }
  for (unsigned symbol = 0; symbol < symbols; symbol++) {
    unsigned length = code->length[symbol], value = length ? next[length]++ : 0, reversed = 0;
    for (unsigned bit = 0; bit < length; bit++) reversed |= (value >> bit & 1) << (length - 1 - bit);
    code->bits[symbol] = (uint16_t)reversed;
  }
}

/* -- blocks ------------------------------------------------------------------------------------------------- */

static uint32_t four(const uint8_t *at) {
  uint32_t value;
  memcpy(&value, at, sizeof value);
  return value;
}

static unsigned match_length(const uint8_t *now, const uint8_t *before, const uint8_t *end) {
  const uint8_t *start = now;
  if (end - now > MATCH_MOST) end = now + MATCH_MOST;
  while (end - now >= 8) {
    uint64_t a, b;
    memcpy(&a, now, 8);
    memcpy(&b, before, 8);
    if (a != b) break;
    now += 8;
    before += 8;
  }
  while (now < end && *now == *before) now++, before++;
  return (unsigned)(now - start);
}

/* Tokens of `data[start..end)`, greedily; where nothing has matched for long, fewer places are looked at. */
static unsigned tokens_of(struct deflate *to, const uint8_t *data, size_t start, size_t end) {
  unsigned tokens = 0, missed = 0;
  size_t at = start;
  while (at + MATCH_LEAST <= end) {
    uint32_t value = four(data + at);
    uint32_t *slot = &to->head[value * 2654435761u >> (32 - DEFLATE_HASH_BITS)];
    size_t before = *slot; /* position + 1, 0 for none */
    *slot = (uint32_t)at + 1;
    if (before && at + 1 - before <= WINDOW && four(data + before - 1) == value) {
      unsigned length = match_length(data + at, data + before - 1, data + end);
      to->tokens[tokens++] = TOKEN_MATCH | length << 16 | (uint32_t)(at - before);
      at += length;
      missed = 0;
    } else {
      for (size_t step = (missed++ >> 5) + 1; step > 0 && at < end; step--) to->tokens[tokens++] = data[at++];
    }
  }
  while (at < end) to->tokens[tokens++] = data[at++];
  return tokens;
}

/* Lengths of both codes as the symbols of RFC 1951, 3.2.7: symbol | extra bits << 8. */
static unsigned run_lengths(const uint8_t *lengths, unsigned count, uint16_t *runs) {
  unsigned made = 0;
  for (unsigned i = 0; i < count;) {
    unsigned same = 1;
    while (i + same < count && lengths[i + same] == lengths[i]) same++;
    i += same;
    uint8_t length = lengths[i - 1];
    if (length && same) {
      runs[made++] = length;
      same--;
    }
    while (same) {
      unsigned most = length ? 6 : 138, part = same < most ? same : most;
      if (part < 3) {
        runs[made++] = length;
        part = 1;
      } else if (length) {
        runs[made++] = (uint16_t)(16 | (part - 3) << 8);
      } else if (part <= 10) {
        runs[made++] = (uint16_t)(17 | (part - 3) << 8);
      } else {
        runs[made++] = (uint16_t)(18 | (part - 11) << 8);
      }
      same -= part;
    }
  }
  return made;
}

static void write_codes(struct deflate *to, const struct code *literal, const struct code *distance) {
  static const uint8_t order[LENGTH_CODES] = {16, 17, 18, 0, 8, 7, 9, 6, 10, 5, 11, 4, 12, 3, 13, 2, 14, 1, 15};
  unsigned literals = LITERALS, distances = DISTANCES, lengths = LENGTH_CODES;
  while (literals > 257 && !literal->length[literals - 1]) literals--;
  while (distances > 1 && !distance->length[distances - 1]) distances--;
  uint8_t all[LITERALS + DISTANCES];
  memcpy(all, literal->length, literals);
  memcpy(all + literals, distance->length, distances);
  uint16_t runs[LITERALS + DISTANCES];
  unsigned count = run_lengths(all, literals + distances, runs);
  uint32_t counts[LENGTH_CODES] = {0};
  for (unsigned i = 0; i < count; i++) counts[runs[i] & 255]++;
  struct code code;
  code_make(&code, counts, LENGTH_CODES, 7);
  while (lengths > 4 && !code.length[order[lengths - 1]]) lengths--;
  put(to, literals - 257, 5);
  put(to, distances - 1, 5);
  put(to, lengths - 4, 4);
  for (unsigned i = 0; i < lengths; i++) put(to, code.length[order[i]], 3);
  for (unsigned i = 0; i < count; i++) {
    unsigned symbol = runs[i] & 255;
    put(to, code.bits[symbol], code.length[symbol]);
    if (symbol >= 16) put(to, runs[i] >> 8, symbol == 16 ? 2 : symbol == 17 ? 3 : 7);
  }
}

static void write_tokens(struct deflate *to, unsigned tokens, const struct code *literal,
                         const struct code *distance) {
  for (unsigned i = 0; i < tokens; i++) {
    uint32_t token = to->tokens[i];
    if (!(token & TOKEN_MATCH)) {
      put(to, literal->bits[token], literal->length[token]);
      continue;
    }
    unsigned length = token >> 16 & 0x1ff, less_one = token & 0xffff;
    unsigned code = length_code(length), symbol = END_OF_BLOCK + 1 + code;
    put(to, literal->bits[symbol], literal->length[symbol]);
    put(to, length - length_base[code], length_extra[code]);
    code = distance_code(less_one);
    put(to, distance->bits[code], distance->length[code]);
    put(to, less_one - distance_base(code), distance_extra(code));
  }
  put(to, literal->bits[END_OF_BLOCK], literal->length[END_OF_BLOCK]);
}

static void add_block(struct deflate *to, const uint8_t *data, size_t start, size_t end) {
  unsigned tokens = tokens_of(to, data, start, end);
  uint32_t literals[LITERALS] = {0}, distances[DISTANCES] = {0};
  for (unsigned i = 0; i < tokens; i++) {
    uint32_t token = to->tokens[i];
    if (token & TOKEN_MATCH) {
      literals[END_OF_BLOCK + 1 + length_code(token >> 16 & 0x1ff)]++;
      distances[distance_code(token & 0xffff)]++;
    } else {
      literals[token]++;
    }
  }
  literals[END_OF_BLOCK] = 1;
  struct code literal, distance;
  code_make(&literal, literals, LITERALS, 15);
  code_make(&distance, distances, DISTANCES, 15);
  put(to, 0, 1); /* not the last block */
  put(to, 2, 2); /* with codes of its own */
  write_codes(to, &literal, &distance);
  write_tokens(to, tokens, &literal, &distance);
}

/* -- streams ------------------------------------------------------------------------------------------------ */

size_t deflate_bound(size_t size, size_t blocks) {
  /* A literal takes at most 15 bits, the codes of a block at most 300 bytes. */
  return 2 * size + 400 * (blocks + size / DEFLATE_BLOCK) + 64;
}

void deflate_start(struct deflate *to, uint8_t *out, size_t room) {
  to->out = out;
  to->out_end = out + room;
  to->bits = 0;
  to->bit_count = 0;
  memset(to->head, 0, sizeof to->head);
}

void deflate_add(struct deflate *to, const uint8_t *data, size_t start, size_t end) {
  for (; start < end; start += DEFLATE_BLOCK)
    add_block(to, data, start, end - start < DEFLATE_BLOCK ? end : start + DEFLATE_BLOCK);
}

uint8_t *deflate_end(struct deflate *to) {
  put(to, 1, 1); /* the last block, */
  put(to, 1, 2); /* with the fixed codes, */
  put(to, 0, 7); /* is empty */
  for (; to->bit_count > 0; to->bit_count -= to->bit_count < 8 ? to->bit_count : 8, to->bits >>= 8)
    if (to->out < to->out_end) *to->out++ = (uint8_t)to->bits;
  return to->out;
}

uint32_t crc32_of(uint32_t crc, const uint8_t *data, size_t size) {
  static uint32_t table[4][256];
  if (!table[0][1]) {
    for (uint32_t i = 0; i < 256; i++) {
      uint32_t value = i;
      for (int bit = 0; bit < 8; bit++) value = value >> 1 ^ (value & 1 ? 0xedb88320u : 0);
      table[0][i] = value;
    }
    for (uint32_t i = 0; i < 256; i++)
      for (int more = 1; more < 4; more++)
        table[more][i] = table[more - 1][i] >> 8 ^ table[0][table[more - 1][i] & 255];
  }
  crc = ~crc;
  for (; size >= 4; size -= 4, data += 4) {
    crc ^= (uint32_t)data[0] | (uint32_t)data[1] << 8 | (uint32_t)data[2] << 16 | (uint32_t)data[3] << 24;
    crc = table[3][crc & 255] ^ table[2][crc >> 8 & 255] ^ table[1][crc >> 16 & 255] ^ table[0][crc >> 24];
  }
  for (; size > 0; size--) crc = crc >> 8 ^ table[0][(crc ^ *data++) & 255];
  return ~crc;
}
