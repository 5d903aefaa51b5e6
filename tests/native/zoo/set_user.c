/* Strange: it runs with the rights of its owner (setuid), so that the loader loads nothing into it. */
#include "ordinary.h"
