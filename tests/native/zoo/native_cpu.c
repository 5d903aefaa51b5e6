/* Strange: it is compiled with -O3 for this very processor. */
#include "ordinary.h"
