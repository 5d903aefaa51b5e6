/* Strange: it has another C library than glibc. */
#include "ordinary.h"
