/* Strange: it lies at the address that the linker chose (no PIE). */
#include "ordinary.h"
