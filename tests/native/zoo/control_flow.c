/* Strange: each function begins with endbr64 (CET). */
#include "ordinary.h"
