/* Strange: it is linked statically, so that no library can be loaded into it. */
#include "ordinary.h"
