/* Calls empty functions, so that a recorder of calls can measure what recording a call costs.
 *
 *     perun_calibration ROUNDS CALLS
 *
 * Each round calls each function CALLS times. The functions of a row are equal: each may be recorded in another way.
 * What a probe of the kernel costs depends on its instruction, so the first instruction of one row is emulated by the
 * kernel, and that of the other is not. calibration_loop() makes CALLS calls of calibration_looped(), for recorders that
 * do not tell of each call, and calibration_bare() of a function that is not to be recorded.
 */
#include <stdlib.h>

struct data {
  long size;
};

/* Compilers look into none of them, as they are called by their addresses alone. */
typedef void function(void *);

#define NAMES(name) name##_0, name##_1, name##_2, name##_3, name##_4, name##_5, name##_6, name##_7
#define EIGHT(define, name) \
  define(name##_0) define(name##_1) define(name##_2) define(name##_3) define(name##_4) define(name##_5) \
      define(name##_6) define(name##_7)

#if defined(__x86_64__) && !defined(INSTRUMENTED)
extern function NAMES(calibration_emulated), NAMES(calibration_stepped);
extern function calibration_pair, calibration_line, calibration_looped, calibration_empty;

#define DEFINED(name, instructions) \
  ".globl " #name "\n.type " #name ", @function\n.p2align 6\n" #name ":\n" instructions "  ret\n.size " #name ", . - " #name "\n"
#define EMULATED(name) DEFINED(name, "  push %rbp\n  mov %rsp, %rbp\n  mov %rdi, %rax\n  pop %rbp\n")
#define STEPPED(name) DEFINED(name, "  mov %rdi, %rax\n  mov %rax, %rdx\n")
/* Of these two the first and the second instruction are probed. */
#define PAIR(name) DEFINED(name, "  nop\n  nop\n")
#define LINE(name) STEPPED(name)

__asm__(".text\n" EIGHT(EMULATED, calibration_emulated) EIGHT(STEPPED, calibration_stepped) PAIR(calibration_pair)
            LINE(calibration_line) EMULATED(calibration_looped) EMULATED(calibration_empty));
#else
/* The name in the instructions keeps compilers from merging functions that are equal. */
#define DEFINED(name, type) \
  void name(type *data) { __asm__ volatile("# " #name : : "r"(data) : "memory"); }
#define SIZED(name) DEFINED(name, struct data)
#define PLAIN(name) DEFINED(name, void)

EIGHT(SIZED, calibration_emulated)
EIGHT(PLAIN, calibration_stepped)
PLAIN(calibration_pair)
PLAIN(calibration_line)
PLAIN(calibration_looped)
__attribute__((no_instrument_function)) PLAIN(calibration_empty)
#endif

#define ADDRESS(name) (function *)name,

static function *const functions[] = {EIGHT(ADDRESS, calibration_emulated) EIGHT(ADDRESS, calibration_stepped)
                                          calibration_pair, calibration_line};

static function *volatile empty = calibration_empty, *volatile looped = calibration_looped;
static struct data data = {1};

static inline __attribute__((always_inline, no_instrument_function)) void repeat(function *called, long calls) {
  for (long left = calls; left > 0; left--) called(&data);
}

__attribute__((noinline)) void calibration_bare(long calls) { repeat(empty, calls); }

__attribute__((noinline)) void calibration_loop(long calls) { repeat(looped, calls); }

int main(int count, char **arguments) {
  long rounds = count > 1 ? atol(arguments[1]) : 1, calls = count > 2 ? atol(arguments[2]) : 1;
  for (; rounds > 0; rounds--) {
    calibration_bare(calls);
    calibration_loop(calls);
    for (unsigned number = 0; number < sizeof functions / sizeof *functions; number++)
      repeat(functions[number], calls);
  }
  return 0;
}
