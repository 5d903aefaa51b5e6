/* Calls empty functions, so that a recorder of calls can measure what recording a call costs.
 *
 *     perun_calibration ROUNDS CALLS
 *
 * Each round calls each function CALLS times. The functions of a row are equal: each may be recorded in another way.
 * What a probe of the kernel costs depends on its instruction, so the first instruction of one row is emulated by the
 * kernel, and that of the other is not. calibration_bare() makes CALLS calls of a function that is not to be recorded.
 */
#include <stdlib.h>

struct data {
  long size;
};

/* Compilers look into none of them, as they are called by their addresses alone. */
typedef void function(struct data *);

#define ROW(name) \
  extern function name##_0, name##_1, name##_2, name##_3, name##_4, name##_5, name##_6, name##_7
#define NAMES(name) name##_0, name##_1, name##_2, name##_3, name##_4, name##_5, name##_6, name##_7
#define TEXTS(define, name) \
  define(#name "_0") define(#name "_1") define(#name "_2") define(#name "_3") define(#name "_4") define(#name "_5") \
      define(#name "_6") define(#name "_7")

ROW(calibration_emulated);
ROW(calibration_stepped);
extern function calibration_pair, calibration_line, calibration_empty;

#if defined(__x86_64__) && !defined(INSTRUMENTED)
#define BEGIN(name) ".globl " name "\n.type " name ", @function\n.p2align 6\n" name ":\n"
#define END(name) "  ret\n.size " name ", . - " name "\n"
#define EMULATED(name) BEGIN(name) "  push %rbp\n  mov %rsp, %rbp\n  mov %rdi, %rax\n  pop %rbp\n" END(name)
#define STEPPED(name) BEGIN(name) "  mov %rdi, %rax\n  mov %rax, %rdx\n" END(name)
__asm__(".text\n" TEXTS(EMULATED, calibration_emulated) TEXTS(STEPPED, calibration_stepped)
            EMULATED("calibration_empty")
        /* A probe at the first instruction, and one at the second. */
        BEGIN("calibration_pair") "  nop\n  nop\n" END("calibration_pair")
        STEPPED("calibration_line"));
#else
/* The name in the instructions keeps compilers from merging functions that are equal. */
#define EMPTY(name) \
  void name(struct data *data) { __asm__ volatile("# " #name : : "r"(data) : "memory"); }
#define EMPTIES(name) \
  EMPTY(name##_0) EMPTY(name##_1) EMPTY(name##_2) EMPTY(name##_3) EMPTY(name##_4) EMPTY(name##_5) EMPTY(name##_6) \
      EMPTY(name##_7)
EMPTIES(calibration_emulated)
EMPTIES(calibration_stepped)
EMPTY(calibration_pair)
EMPTY(calibration_line)
__attribute__((no_instrument_function)) EMPTY(calibration_empty)
#endif

static function *const functions[] = {NAMES(calibration_emulated), NAMES(calibration_stepped), calibration_pair,
                                      calibration_line};

static function *volatile empty = calibration_empty;
static struct data data = {1};

static inline __attribute__((always_inline, no_instrument_function)) void repeat(function *called, long calls) {
  for (long left = calls; left > 0; left--) called(&data);
}

__attribute__((noinline)) void calibration_bare(long calls) { repeat(empty, calls); }

int main(int count, char **arguments) {
  long rounds = count > 1 ? atol(arguments[1]) : 1, calls = count > 2 ? atol(arguments[2]) : 1;
  for (; rounds > 0; rounds--) {
    calibration_bare(calls);
    for (unsigned number = 0; number < sizeof functions / sizeof *functions; number++)
      repeat(functions[number], calls);
  }
  return 0;
}
