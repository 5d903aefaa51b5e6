/* Strange: it has no debug information. */
#include "ordinary.h"
