/* Strange: its debug information is compressed. */
#include "ordinary.h"
