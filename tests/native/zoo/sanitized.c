/* Strange: it is built with AddressSanitizer, which replaces the allocator and wants to be loaded first. */
#include "ordinary.h"
