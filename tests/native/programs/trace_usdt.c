/* USDT probes as the header sys/sdt.h of SystemTap makes them, without it: a note for each tells its place and name. */
#define PROBE(name)                                                                                              \
  __asm__ volatile("990: nop\n"                                                                                  \
                   ".pushsection .note.stapsdt, \"\", \"note\"\n.balign 4\n"                                     \
                   ".4byte 992f - 991f, 994f - 993f, 3\n"                                                        \
                   "991: .asciz \"stapsdt\"\n992: .balign 4\n"                                                   \
                   "993: .8byte 990b, base_of_probes, 0\n.asciz \"app\"\n.asciz \"" #name "\"\n.asciz \"\"\n"    \
                   "994: .balign 4\n.popsection")

__asm__(".pushsection .stapsdt.base, \"aG\", \"progbits\", .stapsdt.base, comdat\n"
        ".weak base_of_probes\n.hidden base_of_probes\nbase_of_probes: .space 1\n.popsection");

volatile int n;

int main(void) {
  for (int i = 0; i < 12; i++) {
    PROBE(sort_begin);
    n += i;
    PROBE(sort_end);
    PROBE(tick);
  }
  return 0;
}
