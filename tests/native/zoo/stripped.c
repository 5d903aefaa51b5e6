/* Strange: it has no symbols. */
#include "ordinary.h"
