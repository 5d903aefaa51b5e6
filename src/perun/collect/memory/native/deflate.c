#include "deflate.h"

#include <stdbool.h>
#include <string.h>

#define MATCH_LEAST 4
#define MATCH_MAX 258
#define WINDOW 32768
#define MATCH_GOOD 48   /* with such a match, the next position is not searched for a better one (lazy matching) */
#define MATCH_ENOUGH 200/* such a match ends the search at its position */
#define CHAIN 12        /* most earlier positions that a search compares with */
#define FEW_TOKENS 400  /* for fewer tokens the fixed codes may be better */
#define MISSED_MANY 64  /* after so many positions without a match, a search compares with one position only */
#define BIT 16          /* costs are in units of 1/16 bit */
#define TOKEN_MATCH 0x80000000u /* a token is a byte, or this, length << 16 and distance - 1 */

enum { LITERALS = 286, FIXED_LITERALS = 288, DISTANCES = 30, LENGTH_CODES = 19, END_OF_BLOCK = 256 };

/* -- codes of lengths and distances (RFC 1951, 3.2.5) ------------------------------------------------------- */

static const uint16_t length_base[29] = {3,  4,  5,  6,  7,  8,  9,  10, 11,  13,  15,  17,  19,  23, 27,
                                         31, 35, 43, 51, 59, 67, 83, 99, 115, 131, 163, 195, 227, 258};
static const uint8_t length_extra[29] = {0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 2,
                                         2, 3, 3, 3, 3, 4, 4, 4, 4, 5, 5, 5, 5, 0};

static unsigned log2_of(uint32_t value) { return 31u - (unsigned)__builtin_clz(value); }

static unsigned length_code(unsigned length) {
  if (length == MATCH_MAX) return 28;
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

static inline void put(struct deflate *to, uint32_t value, unsigned count) {
  to->bits |= (uint64_t)value << to->bit_count;
  to->bit_count += count;
  if (to->bit_count < 32) return;
  uint8_t *out = to->out;
  uint32_t bits = (uint32_t)to->bits;
  if (to->out_end - out >= 4) {
    out[0] = (uint8_t)bits;
    out[1] = (uint8_t)(bits >> 8);
    out[2] = (uint8_t)(bits >> 16);
    out[3] = (uint8_t)(bits >> 24);
    to->out = out + 4;
  }
  to->bits >>= 32;
  to->bit_count -= 32;
}

/* Write the remaining bits, up to a whole byte. */
static void put_rest(struct deflate *to) {
  for (; to->bit_count > 0; to->bit_count -= to->bit_count < 8 ? to->bit_count : 8, to->bits >>= 8)
    if (to->out < to->out_end) *to->out++ = (uint8_t)to->bits;
}

/* -- Huffman codes ------------------------------------------------------------------------------------------ */

struct code {
  uint16_t bits[FIXED_LITERALS]; /* reversed, as they are written */
  uint8_t length[FIXED_LITERALS];
};

/* Lengths of an optimal prefix code by the two-queue method, which are then limited to `most` bits. */
static void code_lengths(const uint32_t *counts, unsigned symbols, unsigned most, uint8_t *lengths) {
  static uint32_t sorted[LITERALS]; /* count << 9 | symbol would overflow: symbols ordered by count */
  static uint32_t weight[2 * LITERALS];
  static uint16_t parent[2 * LITERALS];
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
  static uint8_t depth[2 * LITERALS];
  unsigned of_length[32] = {0};
  depth[nodes - 1] = 0;
  for (unsigned node = nodes - 1; node-- > 0;) {
    depth[node] = (uint8_t)(depth[parent[node]] + 1);
    if (node < used) of_length[depth[node] < most ? depth[node] : most]++;
  }
  /* The sum of Kraft's inequality in units of 2^-most. Cutting codes that were too long has raised it above 1; other
   * codes become longer until it is 1 again. */
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

/* Assign the codes of these lengths (RFC 1951, 3.2.2). */
static void code_assign(struct code *code, unsigned symbols) {
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

static void code_make(struct code *code, const uint32_t *counts, unsigned symbols, unsigned most) {
  code_lengths(counts, symbols, most, code->length);
  code_assign(code, symbols);
}

/* The codes that need not be written (RFC 1951, 3.2.6). */
static void code_make_fixed(struct code *literal, struct code *distance) {
  for (unsigned symbol = 0; symbol < FIXED_LITERALS; symbol++)
    literal->length[symbol] = symbol < 144 ? 8 : symbol < 256 ? 9 : symbol < 280 ? 7 : 8;
  memset(distance->length, 5, DISTANCES);
  code_assign(literal, FIXED_LITERALS);
  code_assign(distance, DISTANCES);
}

static uint32_t code_size(const struct code *code, const uint32_t *counts, unsigned symbols) {
  uint32_t size = 0;
  for (unsigned symbol = 0; symbol < symbols; symbol++) size += counts[symbol] * code->length[symbol];
  return size;
}

/* -- blocks ------------------------------------------------------------------------------------------------- */

static uint32_t four(const uint8_t *at) {
  uint32_t value;
  memcpy(&value, at, sizeof value);
  return value;
}

static unsigned match_length(const uint8_t *now, const uint8_t *before, const uint8_t *end) {
  const uint8_t *start = now;
  if (end - now > MATCH_MAX) end = now + MATCH_MAX;
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

/* The expected cost of each byte as a literal: its information content, but at least one bit. `to->costs` gets the
 * running sums. */
static void find_costs(struct deflate *to, const uint8_t *data, size_t size) {
  static uint32_t counts[256], costs[256];
  uint32_t sum = 0;
  memset(counts, 0, sizeof counts);
  for (size_t i = 0; i < size; i++) counts[data[i]]++;
  for (unsigned byte = 0; byte < 256; byte++) {
    if (!counts[byte]) continue;
    uint32_t share = (uint32_t)((size << 8) / counts[byte]); /* logarithm: linear between the powers of 2 */
    unsigned whole = log2_of(share);
    costs[byte] = BIT * (whole - 8) + ((share << 5 >> whole) - 32) * BIT / 32;
    if (costs[byte] < BIT) costs[byte] = BIT;
  }
  for (size_t i = 0; i < size; i++) {
    to->costs[i] = sum;
    sum += costs[data[i]];
  }
  to->costs[size] = sum;
}

struct match {
  unsigned length, distance;
  int32_t gain; /* cost that it saves */
};

static int32_t match_cost(unsigned length, unsigned distance) {
  unsigned code = length_code(length);
  return BIT * (int32_t)(6 + length_extra[code] + distance_extra(distance_code(distance - 1)));
}

static uint32_t *slot_of(struct deflate *to, const uint8_t *at) {
  return &to->head[four(at) * 2654435761u >> (32 - DEFLATE_HASH_BITS)];
}

static void remember(struct deflate *to, const uint8_t *data, size_t at) {
  uint32_t *slot = slot_of(to, data + at); /* position + 1, 0 for none */
  size_t back = *slot ? at + 1 - *slot : 0;
  to->back[at % WINDOW] = back < WINDOW ? (uint16_t)back : 0;
  *slot = (uint32_t)at + 1;
}

/* The match at `at` that saves most; its length is 0 if there is none. `costs` begins at `at`. */
static struct match find_match(struct deflate *to, const uint8_t *data, size_t at, size_t end, const uint32_t *costs,
                               unsigned tries) {
  struct match best = {0, 0, 0};
  size_t before = *slot_of(to, data + at);
  for (; before && at + 1 - before < WINDOW && tries; tries--) {
    const uint8_t *candidate = data + before - 1;
    if (four(candidate) == four(data + at)) {
      unsigned length = match_length(data + at, candidate, data + end), distance = (unsigned)(at + 1 - before);
      int32_t gain = (int32_t)(costs[length] - costs[0]) - match_cost(length, distance);
      if (gain > best.gain) best = (struct match){length, distance, gain};
      if (length >= MATCH_ENOUGH) break;
    }
    unsigned back = to->back[(before - 1) % WINDOW];
    if (!back) break;
    before -= back;
  }
  return best;
}

/* Make the tokens of `data[start..end)`. The longer nothing has matched, the fewer positions are searched. */
static unsigned tokens_of(struct deflate *to, const uint8_t *data, size_t start, size_t end) {
  unsigned tokens = 0, missed = 0;
  size_t at = start;
  const uint32_t *costs = to->costs;
  find_costs(to, data + start, end - start);
  while (at + MATCH_LEAST <= end) {
    struct match match = find_match(to, data, at, end, costs + (at - start), missed < MISSED_MANY ? CHAIN : 1);
    remember(to, data, at);
    if (!match.length) {
      for (size_t step = (missed++ >> 4) + 1; step > 0 && at < end; step--) to->tokens[tokens++] = data[at++];
      continue;
    }
    unsigned saved = (unsigned)match.gain / (3 * BIT); /* a match that saves little counts as a miss */
    missed = saved == 0 ? missed + 1 : missed < saved ? 0 : missed - saved;
    while (match.length < MATCH_GOOD && at + 1 + MATCH_LEAST <= end) {
      struct match next = find_match(to, data, at + 1, end, costs + (at + 1 - start), missed < MISSED_MANY ? CHAIN : 1);
      if (next.gain <= match.gain) break;
      to->tokens[tokens++] = data[at++];
      remember(to, data, at);
      match = next;
    }
    to->tokens[tokens++] = TOKEN_MATCH | match.length << 16 | (match.distance - 1);
    size_t past = at + match.length;
    while (++at < past)
      if (at + MATCH_LEAST <= end) remember(to, data, at);
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

/* How to write the codes of a block: their lengths, by a third code (RFC 1951, 3.2.7). */
struct plan {
  unsigned literals, distances, lengths, run_count;
  uint16_t runs[LITERALS + DISTANCES];
  struct code code;
  uint32_t size; /* in bits */
};

static unsigned extra_of_run(unsigned symbol) { return symbol < 16 ? 0 : symbol == 16 ? 2 : symbol == 17 ? 3 : 7; }

static const uint8_t length_order[LENGTH_CODES] = {16, 17, 18, 0, 8, 7, 9, 6, 10, 5, 11, 4, 12, 3, 13, 2, 14, 1, 15};

static void make_plan(struct plan *plan, const struct code *literal, const struct code *distance) {
  plan->literals = LITERALS;
  plan->distances = DISTANCES;
  plan->lengths = LENGTH_CODES;
  while (plan->literals > 257 && !literal->length[plan->literals - 1]) plan->literals--;
  while (plan->distances > 1 && !distance->length[plan->distances - 1]) plan->distances--;
  static uint8_t all[LITERALS + DISTANCES];
  memcpy(all, literal->length, plan->literals);
  memcpy(all + plan->literals, distance->length, plan->distances);
  plan->run_count = run_lengths(all, plan->literals + plan->distances, plan->runs);
  uint32_t counts[LENGTH_CODES] = {0};
  for (unsigned i = 0; i < plan->run_count; i++) counts[plan->runs[i] & 255]++;
  code_make(&plan->code, counts, LENGTH_CODES, 7);
  while (plan->lengths > 4 && !plan->code.length[length_order[plan->lengths - 1]]) plan->lengths--;
  plan->size = 14 + 3 * plan->lengths + code_size(&plan->code, counts, LENGTH_CODES);
  for (unsigned symbol = 16; symbol < LENGTH_CODES; symbol++) plan->size += counts[symbol] * extra_of_run(symbol);
}

static void write_codes(struct deflate *to, const struct plan *plan) {
  put(to, plan->literals - 257, 5);
  put(to, plan->distances - 1, 5);
  put(to, plan->lengths - 4, 4);
  for (unsigned i = 0; i < plan->lengths; i++) put(to, plan->code.length[length_order[i]], 3);
  for (unsigned i = 0; i < plan->run_count; i++) {
    unsigned symbol = plan->runs[i] & 255;
    put(to, plan->code.bits[symbol], plan->code.length[symbol]);
    if (symbol >= 16) put(to, plan->runs[i] >> 8, extra_of_run(symbol));
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

static void write_stored(struct deflate *to, const uint8_t *data, size_t size) {
  put(to, 0, 2);
  put_rest(to);
  put(to, (uint32_t)size, 16);
  put(to, ~(uint32_t)size & 0xffff, 16);
  put_rest(to);
  if (size > (size_t)(to->out_end - to->out)) size = (size_t)(to->out_end - to->out);
  memcpy(to->out, data, size);
  to->out += size;
}

static void add_block(struct deflate *to, const uint8_t *data, size_t start, size_t end) {
  unsigned tokens = tokens_of(to, data, start, end);
  static uint32_t literals[LITERALS], distances[DISTANCES];
  memset(literals, 0, sizeof literals);
  memset(distances, 0, sizeof distances);
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
  static struct code literal, distance;
  code_make(&literal, literals, LITERALS, 15);
  code_make(&distance, distances, DISTANCES, 15);
  static struct plan plan;
  make_plan(&plan, &literal, &distance);
  plan.size += code_size(&literal, literals, LITERALS) + code_size(&distance, distances, DISTANCES);
  put(to, 0, 1); /* not the last block */
  if (plan.size >= 8 * (end - start)) {
    write_stored(to, data + start, end - start);
    return;
  }
  static struct code fixed_literal, fixed_distance;
  bool fixed = false;
  if (tokens < FEW_TOKENS) {
    code_make_fixed(&fixed_literal, &fixed_distance);
    fixed = code_size(&fixed_literal, literals, LITERALS) + code_size(&fixed_distance, distances, DISTANCES) < plan.size;
  }
  put(to, fixed ? 1 : 2, 2);
  if (!fixed) write_codes(to, &plan);
  write_tokens(to, tokens, fixed ? &fixed_literal : &literal, fixed ? &fixed_distance : &distance);
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
  put_rest(to);
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
