/* Strange: its debug information is in another file (-gsplit-dwarf). */
#include "ordinary.h"
