/* Packs a file's worth of bytes in eight threads: each works on a structure behind a pointer, as zlib does. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { THREADS = 8, WINDOW = 4096 };

struct stream {
  const unsigned char *next;
  unsigned size;
  unsigned char *out;
  unsigned used;
  unsigned check;
};

static unsigned update(unsigned check, const unsigned char *from, unsigned count) {
  unsigned low = check & 0xffff, high = check >> 16;
  while (count--) {
    low = (low + *from++) % 65521;
    high = (high + low) % 65521;
  }
  return high << 16 | low;
}

static unsigned longest_match(const struct stream *stream) {
  unsigned length = 1;
  while (length < stream->size && length < 255 && stream->next[length] == stream->next[0]) length++;
  return length;
}

static void put(struct stream *stream, unsigned char byte) { stream->out[stream->used++] = byte; }

static void pack(struct stream *stream) {
  while (stream->size) {
    unsigned length = longest_match(stream);
    put(stream, length);
    put(stream, *stream->next);
    stream->check = update(stream->check, stream->next, length);
    stream->next += length;
    stream->size -= length;
  }
}

static void *work(void *argument) {
  struct stream *stream = argument;
  unsigned char window[WINDOW], *out = malloc(2 * WINDOW);
  for (unsigned i = 0; i < WINDOW; i++) window[i] = i / (stream->check % 7 + 1) % 11;
  for (int round = 0; round < 5; round++) {
    stream->next = window;
    stream->size = WINDOW;
    stream->out = out;
    stream->used = 0;
    pack(stream);
  }
  free(out);
  return NULL;
}

int main(void) {
  pthread_t threads[THREADS];
  struct stream streams[THREADS];
  memset(streams, 0, sizeof streams);
  for (int i = 0; i < THREADS; i++) {
    streams[i].check = i + 1;
    pthread_create(&threads[i], NULL, work, &streams[i]);
  }
  unsigned check = 0;
  for (int i = 0; i < THREADS; i++) {
    pthread_join(threads[i], NULL);
    check = check * 31 + streams[i].check;
  }
  printf("%u\n", check);
  return 0;
}
