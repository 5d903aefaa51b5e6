/* Strange: each function calls hooks when it is entered and left (-finstrument-functions), as tracers want it. */
#include "ordinary.h"
