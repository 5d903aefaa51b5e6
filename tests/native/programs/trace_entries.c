/* Functions whose first instructions are of all kinds, each called as often as the argument says, and with the number
 * of the call. What is said of each is where a probe of its entry may stand. */
#include <stdlib.h>

#define FUNCTION(name, code)                                                                                       \
  __asm__(".text\n.p2align 4\n.globl " #name "\n.type " #name ",@function\n" #name ":\n" code "\n.size " #name   \
          ",.-" #name);                                                                                            \
  long name(long number);

/* At the emulated instruction. */
FUNCTION(saves, "push %rbx\n mov %rdi,%rbx\n mov %rbx,%rax\n pop %rbx\n ret")
FUNCTION(tests, "test %rdi,%rdi\n je 1f\n lea 1(%rdi),%rax\n ret\n1: xor %eax,%eax\n ret")
FUNCTION(goes_far, "xor %eax,%eax\n cmp $1000000,%rdi\n jg 1f\n.skip 200,0x90\n1: ret")
FUNCTION(calls, "lea 3(%rdi),%rax\n call saves\n ret")
FUNCTION(jumps, "mov %rdi,%rax\n jmp tests")
FUNCTION(only_jumps, "jmp tests")
FUNCTION(pads, ".byte 0x0f,0x1f,0x44,0,0\n mov %rdi,%rax\n ret")
FUNCTION(pads_and_saves, ".byte 0x0f,0x1f,0x44,0,0\n push %rbx\n mov %rdi,%rax\n pop %rbx\n ret")
FUNCTION(loops_after, "xor %eax,%eax\n test %rdi,%rdi\n je 2f\n1: inc %rax\n cmp $9,%rax\n jne 1b\n2: ret")
FUNCTION(marked, ".byte 0xf3,0x0f,0x1e,0xfa\n xor %eax,%eax\n test %rdi,%rdi\n js 1f\n1: ret")

/* At the first instruction, as a loop begins before the emulated one. */
FUNCTION(loops_at_once, "mov $5,%eax\n1: dec %eax\n jne 1b\n ret")
FUNCTION(loops_to_test, "mov $5,%eax\n1: test %eax,%eax\n je 2f\n dec %eax\n jmp 1b\n2: ret")
FUNCTION(loops_to_jump, "mov $5,%eax\n test %eax,%eax\n1: je 2f\n dec %eax\n jmp 1b\n2: ret")
FUNCTION(marked_loop, ".byte 0xf3,0x0f,0x1e,0xfa\n1: sub $1,%rdi\n jns 1b\n ret")
FUNCTION(jumps_by_table, "mov $2,%eax\n1: dec %eax\n js 2f\n lea 1b(%rip),%rdx\n jmp *%rdx\n2: ret")
FUNCTION(comes_back, "mov $3,%eax\nagain: dec %eax\n jns comes_back.cold\n ret")
__asm__(".section .text.unlikely,\"ax\",@progbits\n.type comes_back.cold,@function\ncomes_back.cold: nop\n"
        " jmp again\n.size comes_back.cold,.-comes_back.cold\n.text");

/* At the first instruction, as there is none that is emulated. */
FUNCTION(computes, "lea 1(%rdi,%rdi,2),%rax\n sar $5,%rdi\n add %rdi,%rax\n ret")
FUNCTION(makes_room, "sub $24,%rsp\n test %rdi,%rdi\n je 1f\n1: add $24,%rsp\n ret")

/* Where the size is read from rdi, at the first instruction; else at the jump. */
FUNCTION(changes, "mov $7,%edi\n test %rdi,%rdi\n je 1f\n1: ret")
FUNCTION(changes_memory, "subq $8,(%rdi)\n je 1f\n1: mov (%rdi),%rax\n ret")

int main(int count, char **arguments) {
  long most = count > 1 ? atol(arguments[1]) : 10, room;
  for (long number = 0; number < most; number++) {
    saves(number);
    tests(number);
    goes_far(number);
    calls(number);
    jumps(number);
    only_jumps(number);
    pads(number);
    pads_and_saves(number);
    loops_after(number);
    marked(number);
    loops_at_once(number);
    loops_to_test(number);
    loops_to_jump(number);
    marked_loop(number);
    jumps_by_table(number);
    comes_back(number);
    computes(number);
    makes_room(number);
    changes(number);
    room = number + 8;
    changes_memory((long)&room);
  }
  return 0;
}
