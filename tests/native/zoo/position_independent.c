/* Strange: it lies at another address in each run (PIE). */
#include "ordinary.h"
